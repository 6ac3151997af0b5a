//! Listening sockets that a service manager has opened and passed (`LISTEN_FDS`, as in `sd_listen_fds(3)`):
//! they are there while the server starts anew, and clients wait instead of being refused.
//!
//! What always holds: only sockets that were passed to this very process are taken, each for one service;
//! what has no name of a service is a mistake that ends the start.

use rustix::net::sockopt::socket_acceptconn;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::RawFd;

/// The first descriptor that is passed.
const FIRST_FD: RawFd = 3;
/// Sockets that are passed at most: one for each service, and one for the admin side.
const SERVICES: [&str; 4] = ["blob", "queue", "table", "admin"];

/// Why what was passed can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PassedError {
    #[error("LISTEN_FDS and LISTEN_FDNAMES: {0}")]
    Words(String),
    #[error("the socket that was passed as {name} can't be used: {error}")]
    Socket { name: &'static str, error: io::Error },
}

/// Sockets that were passed, by their services.
#[derive(Debug, Default)]
pub(crate) struct PassedSockets(Vec<(&'static str, TcpListener)>);

impl PassedSockets {
    /// Takes those that were passed to this process.
    pub(crate) fn take(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, PassedError> {
        let text = |name| environment(name).map(|value| value.to_string_lossy().into_owned());
        let names = names_of(
            text("LISTEN_PID").as_deref(),
            text("LISTEN_FDS").as_deref(),
            text("LISTEN_FDNAMES").as_deref(),
            std::process::id(),
        );
        let mut sockets = Vec::new();
        for (name, fd) in names.map_err(PassedError::Words)?.into_iter().zip(FIRST_FD..) {
            let socket = socket_of(fd).map_err(|error| PassedError::Socket { name, error })?;
            sockets.push((name, socket));
        }
        Ok(PassedSockets(sockets))
    }

    /// The socket of a service, once.
    pub(crate) fn of(&mut self, service: &str) -> Option<TcpListener> {
        let index = self.0.iter().position(|(name, _)| *name == service)?;
        Some(self.0.swap_remove(index).1)
    }
}

/// The services that sockets were passed for, in the order of their descriptors.
fn names_of(
    pid: Option<&str>,
    count: Option<&str>,
    names: Option<&str>,
    own_pid: u32,
) -> Result<Vec<&'static str>, String> {
    let (Some(pid), Some(count)) = (pid, count) else { return Ok(Vec::new()) };
    // Those of a process further up.
    if pid != own_pid.to_string() {
        return Ok(Vec::new());
    }
    let count: usize = count.parse().map_err(|_| "the number of sockets is none".to_owned())?;
    if count == 0 {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = names.unwrap_or_default().split(':').collect();
    if names.len() != count {
        return Err(format!(
            "there are {count} sockets and {} names; give each FileDescriptorName=",
            names.len()
        ));
    }
    let mut found = Vec::new();
    for name in names {
        let Some(service) = SERVICES.into_iter().find(|service| *service == name) else {
            return Err(format!("a socket has none of the names {}", SERVICES.join(", ")));
        };
        if found.contains(&service) {
            return Err(format!("there are two sockets for {service}"));
        }
        found.push(service);
    }
    Ok(found)
}

/// A descriptor that was passed, as a listener of its own.
fn socket_of(fd: RawFd) -> io::Result<TcpListener> {
    let own = pidfd_open(getpid(), PidfdFlags::empty())?;
    let listener = TcpListener::from(pidfd_getfd(&own, fd, PidfdGetfdFlags::empty())?);
    // Of what is no socket of an address it fails.
    listener.local_addr()?;
    if !socket_acceptconn(&listener)? {
        return Err(io::Error::other("it does not listen; use ListenStream= and Accept=no"));
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn sockets_are_known_by_their_names() {
        for (pid, count, names, expected) in [
            (None, None, None, Ok(vec![])),
            (Some("7"), Some("0"), None, Ok(vec![])),
            (Some("8"), Some("1"), Some("blob"), Ok(vec![])),
            (Some("7"), Some("2"), Some("table:blob"), Ok(vec!["table", "blob"])),
            (
                Some("7"),
                Some("4"),
                Some("blob:queue:table:admin"),
                Ok(vec!["blob", "queue", "table", "admin"]),
            ),
            (Some("7"), Some("x"), Some("blob"), Err("the number of sockets is none")),
            (Some("7"), Some("1"), None, Err("a socket has none of the names")),
            (Some("7"), Some("2"), Some("blob"), Err("2 sockets and 1 names")),
            (Some("7"), Some("1"), Some("larimar.socket"), Err("a socket has none of the names")),
            (Some("7"), Some("2"), Some("blob:blob"), Err("two sockets for blob")),
        ] {
            match (names_of(pid, count, names, 7), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(mistake), Err(part)) => assert!(mistake.contains(part), "{mistake}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    }

    #[test]
    fn what_does_not_listen_is_refused() {
        let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let error = socket_of(datagrams.as_raw_fd()).expect_err("refused").to_string();
        assert!(error.contains("it does not listen"), "{error}");
    }

    #[test]
    fn a_descriptor_is_a_listener_of_its_own() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        match socket_of(listener.as_raw_fd()) {
            Ok(taken) => {
                drop(listener);
                assert_eq!(taken.local_addr().expect("an address"), address);
                std::net::TcpStream::connect(address).expect("it listens");
            }
            // A sandbox may forbid it.
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied),
        }
        assert!(socket_of(1000).is_err());
    }
}
