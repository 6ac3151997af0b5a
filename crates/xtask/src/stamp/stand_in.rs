//! A stand-in for a process of a stamp, to rehearse three processes before the server knows `--stamp`: it
//! answers 503 `ServerBusy` until it holds a lock in the store's folder, and then becomes an ordinary server
//! on that folder.
//!
//! What always holds: the lock goes with the process, so a kill or a SIGTERM hands over. A process that is
//! paused keeps it: that round must fail, since nothing serves again before the pause ends.

use crate::Outcome;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Between two tries to get the lock.
const TRY_INTERVAL: Duration = Duration::from_millis(50);
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a request's body that are read before it is refused.
const BODY_SIZE_BYTES_MAX: u64 = 8 << 20;
/// Flags of a stamp, which an ordinary server does not know.
const STAMP_FLAGS: [&str; 4] = ["--stamp", "--store", "--etcd", "--lease"];
const PORT_FLAGS: [&str; 4] = ["--table-port", "--blob-port", "--queue-port", "--admin-port"];

#[derive(clap::Args)]
pub(crate) struct StandInArguments {
    /// The ordinary server.
    #[arg(long)]
    server: PathBuf,
    /// What a process of a stamp is started with.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Stands by, and then becomes the server; returns only if it can't.
pub(crate) fn run(arguments: &StandInArguments) -> Outcome<()> {
    let (store, ports, flags) = translate(&arguments.arguments)?;
    for port in ports {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A client that goes away is no concern of a stand-by.
                std::thread::spawn(move || refuse(&connection));
            }
        });
    }
    let lock = File::options().create(true).truncate(false).write(true).open(store.join("lock"))?;
    while lock.try_lock().is_err() {
        std::thread::sleep(TRY_INTERVAL);
    }
    // The server inherits it, and with it the lock; the listeners close.
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
    let data = store.join("data");
    Err(Command::new(&arguments.server).args(flags).arg("--data").arg(data).exec().into())
}

/// The store's folder, the ports, and the arguments of an ordinary server.
fn translate(arguments: &[String]) -> Outcome<(PathBuf, Vec<u16>, Vec<String>)> {
    let (mut store, mut ports, mut kept) = (None, Vec::new(), Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if PORT_FLAGS.contains(&argument.as_str()) {
            let port = rest.next().ok_or("a flag without its port")?;
            ports.push(port.parse()?);
            kept.extend([argument.clone(), port.clone()]);
        } else if STAMP_FLAGS.contains(&argument.as_str()) {
            let value = rest.next().ok_or("a flag without its value")?;
            if argument == "--store" {
                store = value.strip_prefix("file://").map(|path| Path::new(path).to_path_buf());
            }
        } else {
            kept.push(argument.clone());
        }
    }
    Ok((store.ok_or("a stand-in needs --store file:///…")?, ports, kept))
}

/// Reads a request whole, and answers that another process serves.
fn refuse(connection: &TcpStream) -> std::io::Result<()> {
    connection.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut reader = BufReader::new(connection);
    let mut body_size_bytes = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            body_size_bytes = value.trim().parse().unwrap_or(0);
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.take(body_size_bytes.min(BODY_SIZE_BYTES_MAX)), &mut std::io::sink())?;
    let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>ServerBusy</Code></Error>";
    let mut writer = connection;
    write!(
        writer,
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::translate;
    use std::path::PathBuf;

    #[test]
    fn flags_of_a_stamp_become_a_folder() {
        let line = "serve --host 127.0.0.1 --table-port 1 --admin-port 4 --stamp s --etcd http://a,http://b \
                    --lease 4s --max-ranges 20 --store file:///x/store";
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let (store, ports, kept) = translate(&arguments).expect("it is understood");
        assert_eq!((store, ports), (PathBuf::from("/x/store"), vec![1, 4]));
        assert_eq!(kept.join(" "), "serve --host 127.0.0.1 --table-port 1 --admin-port 4 --max-ranges 20");
        assert!(translate(&["--store".to_owned(), "s3://bucket".to_owned()]).is_err());
    }
}
