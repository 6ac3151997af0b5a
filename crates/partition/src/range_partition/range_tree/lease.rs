//! A range whose lease has ended drops what it has.
//!
//! What always holds: nothing is decided, read or acknowledged by a range that was dropped; operations that
//! gathered and were not appended end with that, those that were appended with an unknown outcome.

use super::{RangeTree, Standing};
use crate::error::PartitionError;
use crate::settings::PlantedFault;

impl RangeTree {
    /// Whether it may answer now.
    pub(crate) fn has_lease(&self) -> bool {
        self.shared.life.lease.holds()
            || self.shared.settings.planted_fault == Some(PlantedFault::IgnoredLease)
    }

    /// An error if it may not answer any more; then it is dropped. Not to be called in the serial section.
    pub(crate) fn check_lease(&self) -> Result<(), PartitionError> {
        if self.has_lease() {
            return Ok(());
        }
        self.drop_range();
        Err(PartitionError::NotMine)
    }

    fn drop_range(&self) {
        let mut serial = self.serial.lock();
        if matches!(serial.standing, Standing::Closed(_) | Standing::Gone) {
            return;
        }
        serial.standing = Standing::Closed(PartitionError::NotMine);
        let gathered = std::mem::take(&mut serial.pending);
        drop(serial);
        tracing::warn!(table = self.table.name(), id = self.id, "the lease has ended: the range is dropped");
        gathered.teller.tell(Err(PartitionError::NotMine));
        self.tree().memory_tables().for_each(|memory| memory.release());
        self.tell_waiting_writers();
        self.log.wake.notify_one();
    }
}
