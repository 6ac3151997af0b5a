//! The kinds of faults, as the command line and the table of verdicts name them. What always holds: how one
//! is made is not known here.

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Fault {
    /// `kill -9` of the process that serves.
    Kill,
    /// SIGSTOP of the process that serves for three leases, then SIGCONT.
    Pause,
    /// SIGTERM of the process that serves: it hands over.
    HandOver,
    /// The process that serves is cut off from etcd, connections left open.
    CutEtcd,
    /// The process that serves is cut off from the store, connections left open.
    CutStore,
    /// `kill -9` of the member of etcd that leads.
    KillEtcd,
    /// `kill -9` of an OSD.
    KillOsd,
    /// The gateway of the store is killed, and started again after 20 s.
    StopGateway,
    /// All members of etcd lose their data and start empty, and `larimar stamp restore-metadata` rebuilds the
    /// stamp while all processes go on.
    LoseEtcd,
    /// In a rehearsal: the clients are cut off from the process.
    CutClients,
}
