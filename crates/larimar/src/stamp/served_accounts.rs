//! Whether a process has the accounts that its stamp is served with: with others it would refuse clients that
//! the process before it served.
//!
//! A key of the metadata store has a digest of them, written by whoever takes the stamp. What always holds:
//! a process of other accounts takes a stamp only that nobody has had for so long that no process with the
//! right ones can be there.

use front_end::accounts::Accounts;
use sha2::{Digest, Sha256};
use stamp_streams::{KeyTransaction, Selection, StoreError, Surroundings};
use std::time::Duration;

/// So many lease times without a beat of the owner, a process of other accounts takes the stamp.
const LEASES_WITHOUT_OWNER: u32 = 6;

/// So many lease times after it has seen that the stamp was given up, it does so, too.
const LEASES_SINCE_RELEASE: u32 = 2;

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

/// For how long nobody has been heard of who has the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Its owner makes no beat.
    OfOwner(Duration),
    /// It was given up, and this process has seen that for so long.
    SinceRelease(Duration),
}

/// Whether a process may take the range.
pub(super) fn may_take(has_served_accounts: bool, silence: Silence, ttl: Duration) -> bool {
    has_served_accounts
        || match silence {
            Silence::OfOwner(silent_for) => silent_for >= LEASES_WITHOUT_OWNER * ttl,
            Silence::SinceRelease(seen_for) => seen_for >= LEASES_SINCE_RELEASE * ttl,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_accounts_wait() {
        let second = Duration::from_secs;
        for (same, silence, may) in [
            (true, Silence::OfOwner(second(0)), true),
            (false, Silence::OfOwner(second(0)), false),
            (false, Silence::OfOwner(second(59)), false),
            (false, Silence::OfOwner(second(60)), true),
            (true, Silence::SinceRelease(second(0)), true),
            (false, Silence::SinceRelease(second(19)), false),
            (false, Silence::SinceRelease(second(20)), true),
        ] {
            assert_eq!(may_take(same, silence, second(10)), may, "{same} {silence:?}");
        }
    }
}
