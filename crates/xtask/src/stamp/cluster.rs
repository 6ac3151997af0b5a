//! The processes of a stamp with all that they need: etcd, a store, and a proxy on each way between them.
//!
//! What always holds: a process that is started again has its former ports; what it reaches of etcd and of
//! the store goes through proxies of its own, so that it alone can be cut off. In a rehearsal there is one
//! ordinary process on a data folder, and the proxies stand between the clients and it.

use super::arguments::{Plan, StoreKind};
use super::ceph::{self, Ceph};
use super::child::{Service, free_port, wait_for};
use super::etcd::{Etcd, plain_request};
use super::proxy::Proxy;
use crate::Outcome;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Processes of a stamp.
const PROCESS_COUNT: usize = 3;
const SERVING_WITHIN: Duration = Duration::from_secs(120);
const STAMP: &str = "trial";
/// Credentials of the store, as variables of the environment.
pub(super) const KEYS: [(&str, &str); 2] =
    [("AWS_ACCESS_KEY_ID", ceph::ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", ceph::SECRET_KEY)];

/// What the processes keep their bytes in.
pub(super) enum Store {
    /// A data folder of one process.
    Rehearsal,
    Folder,
    Ceph(Box<Ceph>),
}

/// All of it. Fields end in this order: the processes first.
pub(super) struct Cluster {
    pub(super) processes: Vec<Process>,
    pub(super) etcd: Option<Etcd>,
    pub(super) store: Store,
    pub(super) lease: Duration,
    pub(super) has_stand_ins: bool,
    binary: PathBuf,
    folder: PathBuf,
}

/// One process, running or not.
pub(super) struct Process {
    pub(super) service: Service,
    pub(super) admin: SocketAddr,
    /// The file with the tokens of its admin side.
    tokens: PathBuf,
    /// Where clients reach it, in a rehearsal through proxies.
    pub(super) tables: SocketAddr,
    pub(super) blobs: SocketAddr,
    pub(super) queues: SocketAddr,
    pub(super) etcd_ways: Vec<Proxy>,
    pub(super) store_ways: Vec<Proxy>,
    pub(super) client_ways: Vec<Proxy>,
}

/// Ports of a process: tables, blobs, queues, admin side.
pub(super) type Ports = [u16; 4];

pub(super) fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl Cluster {
    /// Starts all, and waits until one serves.
    pub(super) fn start(plan: &Plan, binary: &Path, folder: &Path) -> Outcome<Self> {
        let (etcd, store) = match plan.is_rehearsal {
            true => (None, Store::Rehearsal),
            false => {
                super::etcd::set_up()?;
                let etcd = Some(Etcd::start(plan.etcd_members, folder)?);
                let store = match plan.store {
                    StoreKind::File => Store::Folder,
                    StoreKind::Ceph => {
                        ceph::set_up()?;
                        Store::Ceph(Box::new(Ceph::start(folder)?))
                    }
                };
                (etcd, store)
            }
        };
        let mut cluster = Cluster {
            processes: Vec::new(),
            etcd,
            store,
            lease: plan.lease,
            has_stand_ins: plan.has_stand_ins,
            binary: binary.to_path_buf(),
            folder: folder.to_path_buf(),
        };
        let count = if plan.is_rehearsal { 1 } else { PROCESS_COUNT };
        for index in 0..count {
            let process = cluster.new_process(index, plan, binary, folder)?;
            cluster.processes.push(process);
        }
        for process in &mut cluster.processes {
            process.service.start()?;
        }
        cluster.wait_until_served()?;
        Ok(cluster)
    }

    fn new_process(&self, index: usize, plan: &Plan, binary: &Path, folder: &Path) -> Outcome<Process> {
        let name = format!("larimar{index}");
        let ports: Ports = [free_port()?, free_port()?, free_port()?, free_port()?];
        let (mut etcd_ways, mut store_ways, mut client_ways) = (Vec::new(), Vec::new(), Vec::new());
        let mut flags = port_flags(ports);
        let ready = folder.join(format!("{name}.ready.json")).display().to_string();
        flags.extend(["--ready-file".to_owned(), ready]);
        let tokens = folder.join(format!("{name}.tokens"));
        flags.extend(["--admin-token-file".to_owned(), tokens.display().to_string()]);
        flags.extend(plan.server_arguments.iter().cloned());
        for address in self.etcd.iter().flat_map(Etcd::addresses) {
            etcd_ways.push(Proxy::start(address)?);
        }
        let members: Vec<SocketAddr> = etcd_ways.iter().map(|way| way.address).collect();
        let mut gateway = None;
        match &self.store {
            Store::Rehearsal => {
                flags.extend(["--data".to_owned(), folder.join("data").display().to_string()]);
                for port in &ports[..3] {
                    client_ways.push(Proxy::start(here(*port))?);
                }
            }
            Store::Folder => std::fs::create_dir_all(folder.join("store"))?,
            Store::Ceph(ceph) => {
                let way = Proxy::start(ceph.address)?;
                gateway = Some(way.address);
                store_ways.push(way);
            }
        }
        flags.extend(self.stamp_flags(&members, gateway));
        let seen = |index: usize| client_ways.get(index).map_or(here(ports[index]), |way| way.address);
        let [tables, blobs, queues] = [seen(0), seen(1), seen(2)];
        let service = new_service(&name, plan, binary, flags, folder)?.with_variables(&KEYS);
        let admin = here(ports[3]);
        Ok(Process { service, admin, tokens, tables, blobs, queues, etcd_ways, store_ways, client_ways })
    }

    /// What names the stamp, by these addresses of etcd and of the gateway; in a rehearsal nothing.
    fn stamp_flags(&self, members: &[SocketAddr], gateway: Option<SocketAddr>) -> Vec<String> {
        let store = match (&self.store, gateway) {
            (Store::Rehearsal, _) => return Vec::new(),
            (Store::Ceph(_), Some(gateway)) => StoreFlags::Gateway(gateway),
            _ => StoreFlags::Folder(self.folder.join("store")),
        };
        stamp_flags(members, &store, self.lease)
    }

    /// A command of the program about this stamp, which no proxy stands in the way of.
    pub(super) fn command(&self, words: &[&str]) -> Command {
        let members = self.etcd.iter().flat_map(Etcd::addresses).collect::<Vec<_>>();
        let gateway = if let Store::Ceph(ceph) = &self.store { Some(ceph.address) } else { None };
        let mut command = Command::new(&self.binary);
        command.args(words).args(self.stamp_flags(&members, gateway)).envs(KEYS);
        command
    }

    /// Which process says that it serves.
    pub(super) fn serving(&mut self) -> Option<usize> {
        self.processes.iter_mut().position(Process::is_ready)
    }

    /// Waits until one serves, and answers which.
    pub(super) fn wait_until_served(&mut self) -> Outcome<usize> {
        let mut serving = None;
        let waited = wait_for("a process serves", SERVING_WITHIN, || {
            serving = self.serving();
            // One that has ended will not come: the check below says why.
            Ok(serving.is_some() || self.check().is_err())
        });
        self.check()?;
        let said: Vec<_> = self.processes.iter().map(|process| process.service.said()).collect();
        waited.map_err(|error| format!("{error}; {}", said.join("\n")))?;
        Ok(serving.ok_or("no process serves")?)
    }

    /// An error where a process has ended that should not have.
    pub(super) fn check(&mut self) -> Outcome<()> {
        self.processes.iter_mut().try_for_each(|process| process.service.check())
    }

    /// Ends all processes by SIGTERM.
    pub(super) fn stop(mut self) -> Outcome<()> {
        self.processes.iter_mut().try_for_each(|process| process.service.terminate())
    }
}

impl Process {
    fn is_ready(&mut self) -> bool {
        let answer = plain_request(self.admin, "GET", "/ready", "");
        self.service.is_running() && answer.is_ok_and(|answer| answer.status == 200)
    }

    /// The token of a role of its admin side.
    pub(super) fn token(&self, role: &str) -> Outcome<String> {
        let tokens = std::fs::read_to_string(&self.tokens)?;
        let token = tokens.lines().find_map(|line| line.strip_prefix(role));
        Ok(token.ok_or_else(|| format!("no token {role} in {}", self.tokens.display()))?.trim().to_owned())
    }

    /// Cuts, or heals, its ways to etcd.
    pub(super) fn set_etcd_cut(&self, cut: bool) {
        set_cut(&self.etcd_ways, cut);
    }

    /// Cuts, or heals, its ways to the store.
    pub(super) fn set_store_cut(&self, cut: bool) {
        set_cut(&self.store_ways, cut);
    }

    /// Cuts, or heals, the ways of its clients.
    pub(super) fn set_clients_cut(&self, cut: bool) {
        set_cut(&self.client_ways, cut);
    }
}

/// Where a stamp keeps its bytes, as flags name it.
pub(super) enum StoreFlags {
    Folder(PathBuf),
    Gateway(SocketAddr),
}

/// The flags that name the stamp of a trial.
pub(super) fn stamp_flags(members: &[SocketAddr], store: &StoreFlags, lease: Duration) -> Vec<String> {
    let members: Vec<_> = members.iter().map(|address| format!("http://{address}")).collect();
    let mut flags = ["--stamp", STAMP, "--etcd", &members.join(",")].map(str::to_owned).to_vec();
    flags.extend(["--lease".to_owned(), format!("{}s", lease.as_secs())]);
    match store {
        StoreFlags::Folder(folder) => {
            flags.extend(["--store".to_owned(), format!("file://{}", folder.display())]);
        }
        StoreFlags::Gateway(address) => {
            let (bucket, endpoint) = (format!("s3://{}/{STAMP}", ceph::BUCKET), format!("http://{address}"));
            let words = ["--store", &bucket, "--store-endpoint", &endpoint, "--store-region", ceph::REGION];
            flags.extend(words.map(str::to_owned));
            flags.push("--store-path-style".to_owned());
        }
    }
    flags
}

/// The server with its flags, or a stand-in for it.
fn new_service(
    name: &str,
    plan: &Plan,
    binary: &Path,
    flags: Vec<String>,
    folder: &Path,
) -> Outcome<Service> {
    let flags = std::iter::once("serve".to_owned()).chain(flags);
    if !plan.has_stand_ins {
        return Ok(Service::new(name, binary, flags.collect(), folder));
    }
    let before = ["stamp-stand-in", "--server", &binary.display().to_string(), "--"].map(str::to_owned);
    Ok(Service::new(name, &std::env::current_exe()?, before.into_iter().chain(flags).collect(), folder))
}

fn set_cut(ways: &[Proxy], cut: bool) {
    ways.iter().for_each(|way| if cut { way.cut() } else { way.heal() });
}

pub(super) fn port_flags(ports: Ports) -> Vec<String> {
    let names = ["--table-port", "--blob-port", "--queue-port", "--admin-port"];
    let pairs = names.iter().zip(ports).flat_map(|(name, port)| [(*name).to_owned(), port.to_string()]);
    ["--host".to_owned(), "127.0.0.1".to_owned()].into_iter().chain(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_named_by_its_etcd_and_its_store() {
        let line = |store| stamp_flags(&[here(1), here(2)], &store, Duration::from_secs(4)).join(" ");
        let stamp = "--stamp trial --etcd http://127.0.0.1:1,http://127.0.0.1:2 --lease 4s";
        let folder = line(StoreFlags::Folder(PathBuf::from("/x")));
        assert_eq!(folder, format!("{stamp} --store file:///x"));
        let gateway = "--store s3://larimar/trial --store-endpoint http://127.0.0.1:3 --store-region default";
        let found = line(StoreFlags::Gateway(here(3)));
        assert_eq!(found, format!("{stamp} {gateway} --store-path-style"));
    }
}
