//! One server of a folder or of a stamp, on ports of its own. What always holds: it serves when its value is
//! there, and ends with it.

use crate::Outcome;
use crate::stamp::child::{Service, free_port, wait_for};
use crate::stamp::cluster::{KEYS, Ports, here, port_flags};
use crate::stamp::etcd::plain_request;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Time that it has until it serves.
const SERVED_WITHIN: Duration = Duration::from_secs(300);

pub(super) struct Served {
    service: Service,
    pub(super) tables: SocketAddr,
    pub(super) blobs: SocketAddr,
    pub(super) queues: SocketAddr,
}

impl Served {
    /// Starts it with these flags, and waits until it serves.
    pub(super) fn start(name: &str, binary: &Path, folder: &Path, flags: Vec<String>) -> Outcome<Self> {
        let ports: Ports = [free_port()?, free_port()?, free_port()?, free_port()?];
        let tokens = folder.join(format!("{name}.tokens")).display().to_string();
        let mut arguments = vec!["serve".to_owned()];
        arguments.extend(port_flags(ports));
        arguments.extend(["--admin-token-file".to_owned(), tokens]);
        arguments.extend(flags);
        let service = Service::new(name, binary, arguments, folder).with_variables(&KEYS);
        let [tables, blobs, queues, admin] = ports.map(here);
        let mut served = Served { service, tables, blobs, queues };
        served.service.start()?;
        let waited = wait_for(&format!("the server of the {name} serves"), SERVED_WITHIN, || {
            let is_ready = plain_request(admin, "GET", "/ready", "").is_ok_and(|answer| answer.status == 200);
            Ok(is_ready || !served.service.is_running())
        });
        served.service.check()?;
        waited.map_err(|error| format!("{error}; {}", served.service.said()))?;
        Ok(served)
    }

    /// SIGTERM, and it has ended when this returns.
    pub(super) fn stop(mut self) -> Outcome<()> {
        self.service.terminate()
    }
}
