//! What is done to a stamp under load, and how it ends.
//!
//! What always holds: a fault that is struck ends before the next one; which process, member or OSD it hits
//! is found when it strikes.

use super::cluster::{Cluster, Store};
use super::fault_kind::Fault;
use super::lost_etcd;
use crate::Outcome;
use std::time::{Duration, Instant};

/// A pause or a cut lasts so many leases.
const LEASES: u32 = 3;
/// A member of etcd or an OSD stays dead at least so long.
const DEAD_FOR_MIN: Duration = Duration::from_secs(10);
const GATEWAY_STOPPED_FOR: Duration = Duration::from_secs(20);
/// What a take-over may take beyond a lease.
pub(super) const TAKE_OVER_BEYOND_LEASE: Duration = Duration::from_secs(3);

const ALL: [Fault; 10] = [
    Fault::Kill,
    Fault::Pause,
    Fault::HandOver,
    Fault::CutEtcd,
    Fault::CutStore,
    Fault::KillEtcd,
    Fault::KillOsd,
    Fault::StopGateway,
    Fault::LoseEtcd,
    Fault::CutClients,
];

/// A fault under way.
pub(super) struct Struck {
    fault: Fault,
    /// The process, member or OSD that it hits.
    index: usize,
    /// When it hit.
    at: Instant,
    /// How long from then on the store itself answered nobody, as far as it was tried.
    store_away_for: Duration,
    /// How long it lasts.
    pub(super) lasts_for: Duration,
    /// The process that served is paused, too, and wakes up later.
    is_paused: bool,
}

impl Fault {
    /// All that this cluster can suffer.
    pub(super) fn all_of(cluster: &Cluster) -> Vec<Fault> {
        ALL.into_iter().filter(|fault| fault.is_for(cluster)).collect()
    }

    pub(super) fn is_for(self, cluster: &Cluster) -> bool {
        let is_rehearsal = matches!(cluster.store, Store::Rehearsal);
        let is_ceph = matches!(cluster.store, Store::Ceph(_));
        match self {
            Fault::Kill | Fault::Pause => true,
            Fault::HandOver | Fault::CutEtcd => !is_rehearsal,
            Fault::LoseEtcd => !is_rehearsal && !cluster.has_stand_ins,
            Fault::KillEtcd => cluster.etcd.as_ref().is_some_and(|etcd| etcd.addresses().len() > 1),
            Fault::CutStore | Fault::KillOsd | Fault::StopGateway => is_ceph,
            Fault::CutClients => is_rehearsal,
        }
    }

    /// Whether it hits all processes until it ends, so that its end counts.
    fn hits_all(self, cluster: &Cluster) -> bool {
        matches!(self, Fault::StopGateway | Fault::LoseEtcd) || matches!(cluster.store, Store::Rehearsal)
    }

    fn lasts_for(self, cluster: &Cluster) -> Duration {
        let leases = cluster.lease * LEASES;
        match self {
            Fault::Kill | Fault::HandOver if self.hits_all(cluster) => Duration::ZERO,
            Fault::Kill | Fault::HandOver => cluster.lease + TAKE_OVER_BEYOND_LEASE,
            Fault::Pause | Fault::CutEtcd | Fault::CutStore | Fault::CutClients => leases,
            Fault::KillEtcd | Fault::KillOsd => leases.max(DEAD_FOR_MIN),
            Fault::StopGateway => GATEWAY_STOPPED_FOR,
            Fault::LoseEtcd => Duration::ZERO,
        }
    }

    /// Strikes now.
    pub(super) fn strike(self, cluster: &mut Cluster, round: usize) -> Outcome<Struck> {
        let index = match self {
            Fault::KillEtcd => cluster.etcd.as_ref().ok_or("no etcd")?.leader()?,
            Fault::KillOsd => round,
            Fault::StopGateway => 0,
            _ => cluster.serving().ok_or("no process serves before the fault")?,
        };
        let lasts_for = self.lasts_for(cluster);
        // In each second round a process of the time before wakes up after it.
        let is_paused = self == Fault::LoseEtcd && round.is_multiple_of(2);
        let (at, mut store_away_for) = (Instant::now(), Duration::ZERO);
        match (self, &mut cluster.store) {
            (Fault::Kill, _) => cluster.processes[index].service.kill(),
            (Fault::Pause, _) => cluster.processes[index].service.pause()?,
            (Fault::HandOver, _) => cluster.processes[index].service.terminate()?,
            (Fault::CutEtcd, _) => cluster.processes[index].set_etcd_cut(true),
            (Fault::CutStore, _) => cluster.processes[index].set_store_cut(true),
            (Fault::CutClients, _) => cluster.processes[index].set_clients_cut(true),
            (Fault::KillEtcd, _) => cluster.etcd.as_mut().ok_or("no etcd")?.kill(index)?,
            (Fault::KillOsd, Store::Ceph(ceph)) => {
                ceph.kill_osd(index);
                // Until the others have noticed it the store answers nobody.
                store_away_for = ceph.wait_until_it_creates()?;
            }
            (Fault::StopGateway, Store::Ceph(ceph)) => ceph.kill_gateway(),
            (Fault::LoseEtcd, _) => {
                if is_paused {
                    cluster.processes[index].service.pause()?;
                }
                cluster.etcd.as_mut().ok_or("no etcd")?.lose_all()?;
            }
            (Fault::KillOsd | Fault::StopGateway, _) => return Err("this fault needs --store ceph".into()),
        }
        Ok(Struck { fault: self, index, at, store_away_for, lasts_for, is_paused })
    }
}

impl Struck {
    /// When the time begins in which the stamp must serve again.
    pub(super) fn counts_from(&self, ended_at: Instant, cluster: &Cluster) -> Instant {
        match self.fault.hits_all(cluster) {
            true => ended_at,
            false => self.at + self.store_away_for,
        }
    }

    /// What is said of a store that was away.
    pub(super) fn remark(&self) -> Option<String> {
        let seconds = self.store_away_for.as_secs_f64();
        (self.fault == Fault::KillOsd).then(|| {
            format!(
                "the store itself was away for {seconds:.1} s from the kill, and the time counts from then on"
            )
        })
    }

    /// Ends it, and waits until what was hit runs again; answers when it ended.
    pub(super) fn end(&self, cluster: &mut Cluster) -> Outcome<Instant> {
        let index = self.index;
        match (self.fault, &mut cluster.store) {
            (Fault::Kill | Fault::HandOver, _) => cluster.processes[index].service.start()?,
            (Fault::Pause, _) => cluster.processes[index].service.resume()?,
            (Fault::CutEtcd, _) => cluster.processes[index].set_etcd_cut(false),
            (Fault::CutStore, _) => cluster.processes[index].set_store_cut(false),
            (Fault::CutClients, _) => cluster.processes[index].set_clients_cut(false),
            (Fault::KillEtcd, _) => cluster.etcd.as_mut().ok_or("no etcd")?.start_again(index)?,
            (Fault::StopGateway, Store::Ceph(ceph)) => ceph.start_gateway()?,
            (Fault::LoseEtcd, _) => return self.restore_etcd(cluster),
            // An OSD stays dead as long as it is looked at.
            (Fault::KillOsd | Fault::StopGateway, _) => {}
        }
        Ok(Instant::now())
    }

    fn restore_etcd(&self, cluster: &mut Cluster) -> Outcome<Instant> {
        lost_etcd::restore(cluster)?;
        lost_etcd::start_ended(cluster)?;
        let ended_at = Instant::now();
        if self.is_paused {
            cluster.wait_until_served()?;
            cluster.processes[self.index].service.resume()?;
            println!("      process {}, which served before, woke up", self.index);
        }
        Ok(ended_at)
    }

    /// After the time in which it was looked at: a process that was to end by itself runs again, and so does
    /// an OSD, whose return holds the store up once more.
    pub(super) fn clean_up(&self, cluster: &mut Cluster) -> Outcome<()> {
        match (self.fault, &mut cluster.store) {
            (Fault::LoseEtcd, _) => lost_etcd::start_ended(cluster),
            (Fault::KillOsd, Store::Ceph(ceph)) => ceph.start_osd_again(self.index),
            _ => Ok(()),
        }
    }
}
