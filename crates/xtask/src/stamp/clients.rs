//! The official Python clients' tests of tables, queues and blobs, against servers that are each a process of
//! a stamp of its own, on the store and the etcd of the trial.
//!
//! What always holds: the tests are those of `cargo xtask test python`; left out is only what looks into data
//! folders, at the command line, or at the admin side.

use super::arguments::{Plan, StoreKind};
use super::ceph::{self, Ceph};
use super::etcd::{self, Etcd};
use crate::programs::finish;
use crate::{Outcome, suite, workspace};
use std::path::Path;

/// Files of tests that are about other things than the services.
const LEFT_OUT: [&str; 5] =
    ["test_admin_api.py", "test_az.py", "test_command_line.py", "test_readme.py", "test_shard_map.py"];

/// Runs the tests; an error if one fails.
pub(super) fn run(plan: &Plan, binary: &Path, folder: &Path) -> Outcome<()> {
    etcd::set_up()?;
    let metadata = Etcd::start(plan.etcd_members, folder)?;
    let members: Vec<_> = metadata.addresses().iter().map(|address| format!("http://{address}")).collect();
    let lease = plan.lease.as_secs();
    let mut arguments = format!("--etcd {} --lease {lease}s", members.join(","));
    let mut store = None;
    match plan.store {
        StoreKind::File => {
            let objects = folder.join("store");
            std::fs::create_dir_all(&objects)?;
            arguments += &format!(" --store file://{}", objects.display());
        }
        StoreKind::Ceph => {
            ceph::set_up()?;
            let ceph = Ceph::start(folder)?;
            arguments += &format!(
                " --store s3://{}/clients --store-endpoint http://{} --store-region {} --store-path-style",
                ceph::BUCKET,
                ceph.address,
                ceph::REGION
            );
            store = Some(ceph);
        }
    }
    let mut pytest = suite::pytest(&workspace::root()?, binary)?;
    for left_out in LEFT_OUT {
        pytest.args(["--ignore", left_out]);
    }
    pytest.env("LARIMAR_STAMP_ARGUMENTS", arguments);
    pytest.env("AWS_ACCESS_KEY_ID", ceph::ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", ceph::SECRET_KEY);
    let outcome = finish(&mut pytest);
    drop(store);
    outcome
}
