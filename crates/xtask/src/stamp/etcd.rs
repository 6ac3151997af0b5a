//! One or three members of etcd from Debian's package, on free ports of this machine.
//!
//! What always holds: they keep their data in the folder of the trial, and end with their value, also when
//! this program panics or is killed.

use super::child::{Service, free_port, wait_for};
use crate::Outcome;
use crate::client::http_client::{Answer, HttpClient};
use crate::client::shared_key::Signer;
use crate::programs::install_packages;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PACKAGES: [&str; 1] = ["etcd-server"];
const PROGRAM: &str = "/usr/bin/etcd";
const UP_WITHIN: Duration = Duration::from_secs(60);

/// Installs the package where it is missing, by root.
pub(crate) fn set_up() -> Outcome<()> {
    match Path::new(PROGRAM).is_file() {
        true => Ok(()),
        false => install_packages("the trial of a stamp", &PACKAGES),
    }
}

/// The members.
pub(crate) struct Etcd {
    members: Vec<Member>,
}

struct Member {
    service: Service,
    address: SocketAddr,
    data: PathBuf,
}

impl Etcd {
    /// Starts so many members, and waits until each says that it is well.
    pub(crate) fn start(count: usize, folder: &Path) -> Outcome<Self> {
        let mut ports = Vec::new();
        for _ in 0..count {
            ports.push((free_port()?, free_port()?));
        }
        let all: Vec<String> = ports
            .iter()
            .enumerate()
            .map(|(index, (_, peer_port))| format!("m{index}=http://127.0.0.1:{peer_port}"))
            .collect();
        let mut etcd = Etcd { members: Vec::new() };
        for (index, (client_port, peer_port)) in ports.into_iter().enumerate() {
            let (name, client) = (format!("m{index}"), format!("http://127.0.0.1:{client_port}"));
            let peer = format!("http://127.0.0.1:{peer_port}");
            let data = folder.join(format!("etcd-{name}"));
            let data_flag = data.display().to_string();
            let flags = [
                ("--name", name.as_str()),
                ("--data-dir", &data_flag),
                ("--listen-client-urls", &client),
                ("--advertise-client-urls", &client),
                ("--listen-peer-urls", &peer),
                ("--initial-advertise-peer-urls", &peer),
                ("--initial-cluster", &all.join(",")),
                ("--initial-cluster-state", "new"),
                ("--logger", "zap"),
                ("--log-level", "warn"),
            ];
            let flags = flags.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]);
            let service = Service::new(&format!("etcd-{name}"), Path::new(PROGRAM), flags.collect(), folder);
            let address = SocketAddr::from(([127, 0, 0, 1], client_port));
            etcd.members.push(Member { service, address, data });
        }
        etcd.start_all()?;
        Ok(etcd)
    }

    /// Starts all members, and waits until each says that it is well.
    pub(crate) fn start_all(&mut self) -> Outcome<()> {
        for member in &mut self.members {
            member.service.start()?;
        }
        (0..self.members.len()).try_for_each(|index| self.wait_until_well(index))
    }

    /// `kill -9` of all members, and all that they have kept is gone.
    pub(crate) fn lose_all(&mut self) -> Outcome<()> {
        self.members.iter_mut().for_each(|member| member.service.kill());
        Ok(self.members.iter().try_for_each(|member| std::fs::remove_dir_all(&member.data))?)
    }

    /// Where clients find the members.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.members.iter().map(|member| member.address).collect()
    }

    /// The member that leads, as the others say.
    pub(crate) fn leader(&self) -> Outcome<usize> {
        let mut ids = Vec::new();
        let mut leader = None;
        for member in &self.members {
            let answer = plain_request(member.address, "POST", "/v3/maintenance/status", "{}")?;
            let status: serde_json::Value = serde_json::from_slice(&answer.body)?;
            ids.push(status["header"]["member_id"].as_str().unwrap_or_default().to_owned());
            leader = status["leader"].as_str().map(str::to_owned).or(leader);
        }
        let found = ids.iter().position(|id| Some(id) == leader.as_ref());
        Ok(found.ok_or_else(|| format!("no member of etcd leads: {ids:?}, {leader:?}"))?)
    }

    /// `kill -9` of a member.
    pub(crate) fn kill(&mut self, index: usize) -> Outcome<()> {
        self.members.get_mut(index).ok_or("no such member of etcd")?.service.kill();
        Ok(())
    }

    /// Starts a member again, and waits until it says that it is well.
    pub(crate) fn start_again(&mut self, index: usize) -> Outcome<()> {
        self.members.get_mut(index).ok_or("no such member of etcd")?.service.start()?;
        self.wait_until_well(index)
    }

    fn wait_until_well(&mut self, index: usize) -> Outcome<()> {
        let member = self.members.get_mut(index).ok_or("no such member of etcd")?;
        let what = format!("member {index} of etcd is well");
        let waited = wait_for(&what, UP_WITHIN, || {
            let answer = plain_request(member.address, "GET", "/health", "");
            Ok(answer.is_ok_and(|answer| answer.text().contains("\"true\"")))
        });
        waited.map_err(|error| format!("{error}; {}", member.service.said()))?;
        Ok(())
    }
}

/// A request that nobody signs.
pub(crate) fn plain_request(address: SocketAddr, verb: &str, path: &str, body: &str) -> Outcome<Answer> {
    request_with_token(address, verb, path, body, None)
}

/// The same with a token of the admin side.
pub(crate) fn request_with_token(
    address: SocketAddr,
    verb: &str,
    path: &str,
    body: &str,
    token: Option<&str>,
) -> Outcome<Answer> {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let mut client = HttpClient::connect_within(address, Signer::new(), Duration::from_secs(2))?;
    let request = format!(
        "{verb} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{authorization}\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    Ok(client.exchange(request.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs Debian's package; the trial itself installs it.
    #[test]
    fn three_members_outlive_the_death_of_their_leader() {
        if !Path::new(PROGRAM).is_file() {
            println!("no {PROGRAM} here: nothing is tried");
            return;
        }
        let folder = crate::workspace::Scratch::create("etcd-test").expect("a folder");
        let mut etcd = Etcd::start(3, folder.path()).expect("it starts");
        let put = |address| plain_request(address, "POST", "/v3/kv/put", r#"{"key":"YQ==","value":"Yg=="}"#);
        let leader = etcd.leader().expect("one leads");
        etcd.kill(leader).expect("it dies");
        let other = etcd.addresses()[(leader + 1) % 3];
        let next = wait_for("a put", UP_WITHIN, || Ok(put(other)?.status == 200)).expect("it is written");
        println!("next write after {next:?}");
        etcd.start_again(leader).expect("it comes back");
        assert!(etcd.leader().expect("one leads") != leader);

        etcd.lose_all().expect("they are gone");
        etcd.start_all().expect("they start empty");
        let get = plain_request(other, "POST", "/v3/kv/range", r#"{"key":"YQ=="}"#).expect("it answers");
        assert!(!get.text().contains("Yg=="), "{}", get.text());
    }
}
