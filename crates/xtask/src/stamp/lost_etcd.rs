//! How a stamp comes back whose etcd has lost everything: an empty etcd, and `larimar stamp
//! restore-metadata`.
//!
//! What always holds: all processes go on meanwhile, or one of them is paused; the command waits for the
//! lease that they have had, since nobody has stopped them.

use super::cluster::Cluster;
use crate::Outcome;
use std::time::Instant;

/// Starts the members empty and restores the stamp.
pub(super) fn restore(cluster: &mut Cluster) -> Outcome<()> {
    cluster.etcd.as_mut().ok_or("no etcd")?.start_all()?;
    let started_at = Instant::now();
    let lease = format!("{}s", cluster.lease.as_secs());
    let words = ["stamp", "restore-metadata", "--json", "--quiet", "--longest-lease", &lease];
    let output = cluster.command(&words).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("larimar stamp restore-metadata: {}: {said}", output.status).into());
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    println!(
        "      etcd was lost, and restored in {:.1?} from the backup of revision {}: {} ranges, {} extents, {} of \
         them younger",
        started_at.elapsed(),
        report["backup_revision"],
        report["ranges"],
        report["extents"],
        report["younger_extents"],
    );
    Ok(())
}

/// Starts each process again that has ended.
pub(super) fn start_ended(cluster: &mut Cluster) -> Outcome<()> {
    for (index, process) in cluster.processes.iter_mut().enumerate() {
        if !process.service.is_running() {
            let said = process.service.said();
            let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
            println!("      process {index} had ended, and is started again: {last}");
            process.service.start()?;
        }
    }
    Ok(())
}
