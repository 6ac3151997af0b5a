//! Whether a process has the accounts that its stamp is served with: with others it would refuse clients that
//! the process before it served.
//!
//! A key of the metadata store has a digest of them, written by whoever takes the stamp. What always holds:
//! a process of other accounts takes a stamp only that was released, or that nobody has served for so long
//! that no process with the right ones can be there.

use front_end::accounts::Accounts;
use sha2::{Digest, Sha256};
use stamp_streams::{KeyTransaction, Selection, StoreError, Surroundings};
use std::time::Duration;

/// So many lease times without a beat of the owner, a process of other accounts takes the stamp.
const LEASES_WITHOUT_OWNER: u32 = 6;

/// A digest of accounts: of their names, and of their keys by what those sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedAccounts {
    digest: String,
    key: String,
}

impl ServedAccounts {
    /// Of these accounts, in this stamp.
    pub(super) fn of(accounts: &Accounts, surroundings: &Surroundings) -> Self {
        let mut hash = Sha256::new();
        let mut lines: Vec<String> =
            accounts.iter().map(|account| format!("{} {}", account.name(), account.fingerprint())).collect();
        lines.sort();
        for line in lines {
            hash.update(line);
            hash.update("\n");
        }
        let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        ServedAccounts { digest, key: format!("{}/accounts", surroundings.settings.stamp) }
    }

    /// Whether the stamp is, or was last, served with the same ones; also if it never was.
    pub(super) async fn are_served(&self, surroundings: &Surroundings) -> Result<bool, StoreError> {
        let snapshot = surroundings.keys.read(&[Selection::Key(self.key.clone())]).await?;
        let served = snapshot.entries.first();
        Ok(served.is_none_or(|entry| entry.value == self.digest.as_bytes()))
    }

    /// The stamp is served with these.
    pub(super) async fn note_served(&self, surroundings: &Surroundings) {
        let value = self.digest.clone().into_bytes().into();
        let transaction = KeyTransaction {
            compares: Vec::new(),
            puts: vec![(self.key.clone(), value, None)],
            deletes: Vec::new(),
        };
        // Without an answer the next one to take the stamp writes it.
        let _ = surroundings.keys.commit(&transaction).await;
    }
}

/// Whether a process may take the range, whose owner has been silent for so long; none: it was released.
pub(super) fn may_take(has_served_accounts: bool, silent_for: Option<Duration>, ttl: Duration) -> bool {
    has_served_accounts || silent_for.is_none_or(|silent_for| silent_for >= LEASES_WITHOUT_OWNER * ttl)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_accounts_wait() {
        let second = Duration::from_secs;
        for (same, silent_for, may) in [
            (true, Some(second(0)), true),
            (false, Some(second(0)), false),
            (false, Some(second(59)), false),
            (false, Some(second(60)), true),
            (false, None, true),
        ] {
            assert_eq!(may_take(same, silent_for, second(10)), may, "{same} {silent_for:?}");
        }
    }
}
