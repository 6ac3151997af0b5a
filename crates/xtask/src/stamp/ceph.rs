//! Ceph from Debian's packages: a monitor, a manager, three OSDs on plain files and a gateway that speaks S3,
//! all on this machine, without systemd and without keys between them. Needs root.
//!
//! What always holds: all of it lies in the folder of the trial, and ends with its value. The gateway speaks
//! to the monitor in clear (`ms_mon_client_mode`): what it would do by itself needs keys, and it waits for
//! ever.

use super::child::{Service, free_port, wait_for};
use crate::Outcome;
use crate::programs::install_packages;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PACKAGES: [&str; 8] =
    ["ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph-common", "ceph-base", "curl", "util-linux"];
const PROGRAMS: [&str; 7] = ["ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "curl"];
const OSD_COUNT: usize = 3;
/// Bytes of an OSD's file, which is sparse.
const OSD_SIZE_BYTES: u64 = 24 << 30;
/// An OSD that ends at its first start is started again so often.
const OSD_STARTS_MAX: usize = 5;
/// Threads of the gateway: with its 512 most of the time of two cores went to waking them.
const GATEWAY_THREADS: usize = 16;
/// What of its own doings each daemon would remember for a crash, which half of the processor's time of a
/// read in the gateway went to. Errors are still written.
const SILENT_LOGS: [&str; 17] = [
    "asok",
    "auth",
    "bdev",
    "bluefs",
    "bluestore",
    "filer",
    "mgrc",
    "monc",
    "ms",
    "objclass",
    "objecter",
    "osd",
    "perfcounter",
    "rados",
    "rgw",
    "rocksdb",
    "throttle",
];
const UP_WITHIN: Duration = Duration::from_secs(120);
/// An OSD that was killed reads all that it has before it is up; on a busy machine with gigabytes that takes
/// minutes.
const OSD_UP_AGAIN_WITHIN: Duration = Duration::from_secs(900);
/// Names that a probe creates: as many as reach all placement groups.
const PROBED_NAMES: usize = 24;
/// What takes longer is no answer of a store that is well.
const CREATE_SECONDS_MAX: &str = "1";
/// Seconds that a call of one of Ceph's commands may take.
const COMMAND_SECONDS_MAX: &str = "60";
pub(crate) const BUCKET: &str = "larimar";
pub(crate) const REGION: &str = "default";
/// Credentials of this cluster alone.
pub(crate) const ACCESS_KEY: &str = "TRIALACCESSKEY";
pub(crate) const SECRET_KEY: &str = "trial-secret-key";

/// Installs the packages where they are missing, by root.
pub(crate) fn set_up() -> Outcome<()> {
    let has = |program: &&str| Path::new("/usr/bin").join(program).is_file();
    match PROGRAMS.iter().all(has) {
        true => Ok(()),
        false => install_packages("the trial of a stamp on Ceph", &PACKAGES),
    }
}

/// A running cluster.
pub(crate) struct Ceph {
    folder: PathBuf,
    // In the order in which they end: those that serve before those that they need.
    gateway: Service,
    osds: Vec<Service>,
    _manager: Service,
    _monitor: Service,
    /// Where the gateway listens.
    pub(crate) address: SocketAddr,
}

impl Ceph {
    /// Starts all of it, makes a user and a bucket, and shows that a second create is refused.
    pub(crate) fn start(folder: &Path) -> Outcome<Self> {
        let folder = folder.join("ceph");
        for name in ["mon", "mgr", "rgw", "run", "log"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let (cluster, monitor_port, gateway_port) = (new_uuid()?, free_port()?, free_port()?);
        let configuration = configuration(&folder, &cluster, monitor_port, gateway_port);
        std::fs::write(folder.join("ceph.conf"), configuration)?;
        let map = folder.join("monmap").display().to_string();
        let monitor_address = format!("[v2:127.0.0.1:{monitor_port}]");
        run(
            "monmaptool",
            &["--create", "--clobber", "--fsid", &cluster, "--addv", "a", &monitor_address, &map],
        )?;
        let with = |program: &str, arguments: &[&str]| run_with(&folder, program, arguments);
        with("ceph-mon", &["--mkfs", "-i", "a", "--monmap", &map])?;
        let mut monitor = daemon(&folder, "ceph-mon", &["-i", "a"], "mon");
        monitor.start()?;
        let mut manager = daemon(&folder, "ceph-mgr", &["-i", "x"], "mgr");
        manager.start()?;
        let mut osds = Vec::new();
        for index in 0..OSD_COUNT {
            std::fs::create_dir_all(folder.join(format!("osd{index}")))?;
            let (uuid, number) = (new_uuid()?, index.to_string());
            with("ceph", &["osd", "new", &uuid])?;
            with("ceph-osd", &["-i", &number, "--mkfs", "--osd-uuid", &uuid])?;
            let mut osd = daemon(&folder, "ceph-osd", &["-i", &number], &format!("osd{index}"));
            osd.start()?;
            osds.push(osd);
        }
        let gateway = daemon(&folder, "radosgw", &["-n", "client.rgw"], "rgw");
        let address = SocketAddr::from(([127, 0, 0, 1], gateway_port));
        let mut ceph = Ceph { folder, gateway, osds, _manager: manager, _monitor: monitor, address };
        ceph.wait_for_osds(UP_WITHIN)?;
        ceph.start_gateway()?;
        ceph.make_bucket()?;
        Ok(ceph)
    }

    /// All of them up; one that has ended at its start (it may say `wrong fsid`) is started again.
    fn wait_for_osds(&mut self, within: Duration) -> Outcome<()> {
        let mut starts = vec![1; self.osds.len()];
        wait_for("three OSDs are up", within, || {
            for (osd, starts) in self.osds.iter_mut().zip(&mut starts) {
                if !osd.is_running() && *starts < OSD_STARTS_MAX {
                    *starts += 1;
                    osd.start()?;
                }
            }
            Ok(run_with(&self.folder, "ceph", &["osd", "stat"])?.contains(&format!("{OSD_COUNT} up")))
        })?;
        Ok(())
    }

    fn make_bucket(&self) -> Outcome<()> {
        let keys = ["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY];
        let user = ["-n", "client.rgw", "user", "create", "--uid", "trial", "--display-name", "trial"];
        run_with(&self.folder, "radosgw-admin", &[user.as_slice(), &keys].concat())?;
        let bucket = self.request(&["--request", "PUT"], BUCKET)?;
        if bucket != "200" {
            return Err(format!("the gateway answers {bucket} to a new bucket").into());
        }
        let create = ["--request", "PUT", "--header", "If-None-Match: *", "--data-binary", "probe"];
        let object = format!("{BUCKET}/probe-of-the-trial");
        let answers = (self.request(&create, &object)?, self.request(&create, &object)?);
        match (answers.0.as_str(), answers.1.as_str()) {
            ("200", "412") => Ok(()),
            other => Err(format!("two creates of an object are answered {other:?}, not 200 and 412").into()),
        }
    }

    /// Creates an object, and answers how long that took.
    pub(crate) fn create(&self, name: &str) -> Outcome<Duration> {
        let started_at = Instant::now();
        let create = ["--request", "PUT", "--header", "If-None-Match: *", "--data-binary", "probe"];
        match self.request(&create, &format!("{BUCKET}/{name}"))?.as_str() {
            "200" => Ok(started_at.elapsed()),
            other => Err(format!("a create is answered {other}").into()),
        }
    }

    /// Waits until objects of many names are created at once again; answers when the last one was not, from
    /// the start of the wait on, or zero if all were.
    pub(crate) fn wait_until_it_creates(&self) -> Outcome<Duration> {
        let (started_at, mut round, mut away_for) = (Instant::now(), 0, Duration::ZERO);
        wait_for("the store creates", UP_WITHIN, || {
            round += 1;
            let began = std::time::UNIX_EPOCH.elapsed()?.as_nanos();
            let create = ["--request", "PUT", "--data-binary", "probe", "--max-time", CREATE_SECONDS_MAX];
            let mut all = true;
            for number in 0..PROBED_NAMES {
                let name = format!("{BUCKET}/probe/{began:x}-{round}-{number}");
                if self.request(&create, &name)? != "200" {
                    (all, away_for) = (false, started_at.elapsed());
                }
            }
            Ok(all)
        })?;
        Ok(away_for)
    }

    /// The status of a signed request.
    fn request(&self, arguments: &[&str], path: &str) -> Outcome<String> {
        let (user, url) = (format!("{ACCESS_KEY}:{SECRET_KEY}"), format!("http://{}/{path}", self.address));
        let signed = ["--aws-sigv4", "aws:amz:default:s3", "--user", &user];
        // Debian's curl signs no hash of the body by itself.
        let unsigned_body = ["--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD"];
        let quiet = ["--silent", "--max-time", "30", "--output", "/dev/null", "--write-out", "%{http_code}"];
        run("curl", &[quiet.as_slice(), &signed, &unsigned_body, arguments, &[url.as_str()]].concat())
    }

    /// Starts the gateway, and waits until it answers.
    pub(crate) fn start_gateway(&mut self) -> Outcome<()> {
        self.gateway.start()?;
        let address = self.address;
        wait_for("the gateway answers", UP_WITHIN, || {
            // Refused until it has read its settings from the pools; 403 as long as there is no user.
            Ok(TcpStream::connect(address).is_ok()
                && ["200", "403"].contains(&self.request(&[], "")?.as_str()))
        })?;
        Ok(())
    }

    /// `kill -9` of the gateway.
    pub(crate) fn kill_gateway(&mut self) {
        self.gateway.kill();
    }

    /// `kill -9` of an OSD.
    pub(crate) fn kill_osd(&mut self, index: usize) {
        self.osds[index % OSD_COUNT].kill();
    }

    /// Starts an OSD again, and waits until all are up.
    pub(crate) fn start_osd_again(&mut self, index: usize) -> Outcome<()> {
        self.osds[index % OSD_COUNT].start()?;
        self.wait_for_osds(OSD_UP_AGAIN_WITHIN)
    }
}

fn configuration(folder: &Path, cluster: &str, monitor_port: u16, gateway_port: u16) -> String {
    let at = folder.display();
    let silent: String = SILENT_LOGS.iter().map(|log| format!("debug_{log} = 0/0\n")).collect();
    let mut text = format!(
        "[global]\nfsid = {cluster}\nmon_host = [v2:127.0.0.1:{monitor_port}]\nmon_initial_members = a\n\
         public_addr = 127.0.0.1\ncluster_addr = 127.0.0.1\nms_bind_ipv6 = false\nms_bind_msgr1 = false\n\
         auth_cluster_required = none\nauth_service_required = none\nauth_client_required = none\n\
         ms_mon_client_mode = crc\nosd_pool_default_size = 3\nosd_pool_default_min_size = 2\n\
         osd_pool_default_pg_num = 8\nosd_pool_default_pgp_num = 8\n\
         osd_pool_default_pg_autoscale_mode = off\n\
         osd_crush_chooseleaf_type = 0\nmon_osd_min_down_reporters = 1\nmon_max_pg_per_osd = 1000\n\
         mon_data_avail_warn = 1\nmon_data_avail_crit = 0\nosd_memory_target = 939524096\n\
         osd_objectstore = bluestore\nbluestore_block_size = {OSD_SIZE_BYTES}\n\
         bluestore_block_db_create = false\nbluestore_block_wal_create = false\n\
         run_dir = {at}/run\nadmin_socket = {at}/run/$name.asok\npid_file =\nlog_file = {at}/log/$name.log\n\
         crash_dir = {at}/log\n\
         {silent}\
         [mon.a]\nmon_data = {at}/mon\n[mgr.x]\nmgr_data = {at}/mgr\n\
         [client.rgw]\nrgw_data = {at}/rgw\n\
         rgw_frontends = beast endpoint=127.0.0.1:{gateway_port} tcp_nodelay=1\n\
         rgw_thread_pool_size = {GATEWAY_THREADS}\n"
    );
    for index in 0..OSD_COUNT {
        // Writing to a string can't fail.
        let _ = writeln!(text, "[osd.{index}]\nosd_data = {at}/osd{index}");
    }
    text
}

fn daemon(folder: &Path, program: &str, arguments: &[&str], name: &str) -> Service {
    let configuration = folder.join("ceph.conf").display().to_string();
    let arguments =
        ["-c", &configuration, "-f"].into_iter().chain(arguments.iter().copied()).map(str::to_owned);
    Service::new(name, &Path::new("/usr/bin").join(program), arguments.collect(), folder)
}

fn run_with(folder: &Path, program: &str, arguments: &[&str]) -> Outcome<String> {
    let configuration = folder.join("ceph.conf").display().to_string();
    run(program, &[&["-c", configuration.as_str()], arguments].concat())
}

/// Runs a command that ends by itself, and answers what it printed.
fn run(program: &str, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new("timeout").args([COMMAND_SECONDS_MAX, program]).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() || program == "curl" {
        return Ok(text);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} {}: {}\n{text}{said}", arguments.join(" "), output.status).into())
}

/// A new UUID of the kernel.
fn new_uuid() -> Outcome<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/uuid")?.trim().to_owned())
}
