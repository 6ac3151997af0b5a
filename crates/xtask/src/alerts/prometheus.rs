//! Debian's Prometheus and its `promtool`: what they accept, and one that runs and scrapes a server each
//! second.
//!
//! What always holds: a Prometheus that is dropped is ended, and it keeps what it has in a scratch folder.

use super::rules;
use crate::client::http_client::HttpClient;
use crate::client::shared_key::Signer;
use crate::{Outcome, programs};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What is before its address in its log; it is the only one that has both.
const LISTENING: &str = "msg=\"Listening on\" address=";

/// Installs Prometheus from Debian's packages where it is missing.
pub(super) fn set_up() -> Outcome<()> {
    let is_there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if is_there("prometheus") && is_there("promtool") {
        return Ok(());
    }
    programs::install_packages("the look at the alerts", &["prometheus"])
}

/// `promtool` accepts rules, their tests, the configuration and all queries of the dashboard.
pub(super) fn check_files(root: &Path, scratch: &Path) -> Outcome<()> {
    let folder = root.join("deploy/prometheus");
    let promtool = |arguments: [&str; 2], file: &Path| {
        programs::finish(Command::new("promtool").args(arguments).arg(file).stdout(Stdio::null()))
    };
    promtool(["check", "rules"], &folder.join("alerts.yml"))?;
    promtool(["test", "rules"], &folder.join("alerts-test.yml"))?;
    promtool(["check", "config"], &folder.join("prometheus.yml"))?;
    let dashboard = std::fs::read_to_string(root.join("deploy/grafana/larimar.json"))?;
    let queries = rules::queries(&serde_json::from_str(&dashboard)?);
    let recorded = scratch.join("dashboard.yml");
    std::fs::write(&recorded, rules::recorded(&queries))?;
    promtool(["check", "rules"], &recorded)?;
    println!("promtool takes {} queries of the dashboard", queries.len());
    Ok(())
}

/// `promtool` accepts the metrics of a server.
pub(super) fn check_metrics(admin: SocketAddr) -> Outcome<()> {
    let metrics = get(admin, "/metrics")?;
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("promtool takes no input")?;
    input.write_all(metrics.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let complaint = [output.stdout, output.stderr].concat();
    match output.status.success() && complaint.is_empty() {
        true => Ok(()),
        false => Err(format!("promtool check metrics: {}", String::from_utf8_lossy(&complaint)).into()),
    }
}

/// The body of an answer with 200.
pub(super) fn get(address: SocketAddr, path: &str) -> Outcome<String> {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let answer = HttpClient::connect(address, Signer::new())?.exchange(request.as_bytes())?;
    match answer.status {
        200 => Ok(answer.text()),
        status => Err(format!("GET {path}: {status} {}", answer.text()).into()),
    }
}

/// One that runs.
pub(super) struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts one in a folder, with these rules, that scrapes and judges the server each second.
    pub(super) fn start(folder: &Path, rules: &str, target: SocketAddr) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("alerts.yml"), rules)?;
        let configuration = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [alerts.yml]\n\
             scrape_configs: [{{ job_name: larimar, static_configs: [{{ targets: [\"{target}\"] }}] }}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), configuration)?;
        let log_file = folder.join("prometheus.log");
        let log = File::create(&log_file)?;
        let mut child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let started_at = Instant::now();
        loop {
            let text = std::fs::read_to_string(&log_file).unwrap_or_default();
            let address: Option<SocketAddr> =
                text.lines().find_map(|line| line.split_once(LISTENING)?.1.trim().parse().ok());
            // It listens before it answers.
            if let Some(address) = address.filter(|address| get(*address, "/-/ready").is_ok()) {
                return Ok(Prometheus { child, address });
            }
            if child.try_wait()?.is_some() || started_at.elapsed() > START_TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("prometheus does not start:\n{text}").into());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Names of the alerts that fire.
    pub(super) fn firing(&self) -> Outcome<Vec<String>> {
        let answer: Value = serde_json::from_str(&get(self.address, "/api/v1/alerts")?)?;
        let alerts = answer["data"]["alerts"].as_array().ok_or("no alerts")?;
        let mut names: Vec<String> = alerts
            .iter()
            .filter(|alert| alert["state"] == "firing")
            .filter_map(|alert| alert["labels"]["alertname"].as_str().map(str::to_owned))
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// The value of a metric that has one series; nothing while it is not there.
    pub(super) fn value(&self, metric: &str) -> Outcome<Option<f64>> {
        let answer: Value =
            serde_json::from_str(&get(self.address, &format!("/api/v1/query?query={metric}"))?)?;
        Ok(answer["data"]["result"][0]["value"][1].as_str().and_then(|value| value.parse().ok()))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
