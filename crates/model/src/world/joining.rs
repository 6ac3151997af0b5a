//! Processes that join again, under a new incarnation.
//!
//! What always holds: no incarnation is used twice; what a former one sent may still arrive.

use crate::setting::{Breach, Setting};
use crate::world::World;
use crate::world::process::Process;
use stamp::Incarnation;

impl World {
    /// The process drops everything, its key goes, and it is there as a new one.
    pub(crate) fn join_again(&mut self, process: usize) {
        self.stop_waiting(process, |_| true);
        let former = self.processes[process].incarnation;
        let incarnation = Incarnation(self.environment.next_incarnation);
        self.environment().next_incarnation += 1;
        *self.process(process) = Process::new(incarnation);
        self.metadata().expire(former);
        self.metadata().join(incarnation);
    }

    /// A process past its deadline that waits for nothing joins at once: until it acts it is as if it had
    /// not, and fewer states differ.
    pub(crate) fn join_idle(&mut self, setting: &Setting) {
        let acts_without_lease =
            [Breach::ReadWithoutLease, Breach::AcknowledgeWithoutLease, Breach::DeleteAtStart];
        if self.metadata.is_lost() || acts_without_lease.iter().any(|breach| setting.breaches.has(*breach)) {
            return;
        }
        for process in 0..self.processes.len() {
            let state = &self.processes[process];
            if !state.has_lease && state.awaited.is_empty() {
                self.join_again(process);
            }
        }
    }
}
