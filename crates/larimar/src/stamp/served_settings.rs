//! Whether a process has the accounts and the lease that its stamp is served with: with other accounts it
//! would refuse clients that the process before it served, with another lease it would take the stamp from an
//! owner that may serve yet, or keep the others waiting for longer than they promise.
//!
//! Two keys of the metadata store have a digest of the accounts and the lease, written by whoever takes the
//! stamp. What always holds: a process of others takes a stamp only that nobody has had for so long that no
//! process with the right ones can be there; that counts in the longer one of both leases.

use front_end::accounts::Accounts;
use sha2::{Digest, Sha256};
use stamp_streams::{OwnedRange, Selection, StampError, StoreError, Surroundings};
use std::time::Duration;

/// So many lease times without a beat of the owner, a process of other settings takes the stamp.
const LEASES_WITHOUT_OWNER: u32 = 6;

/// So many lease times after it has seen that the stamp was given up, it does so, too.
const LEASES_SINCE_RELEASE: u32 = 2;

/// What all processes of a stamp have in common, as this one has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServedSettings {
    /// A digest of accounts: of their names, and of their keys by what those sign.
    accounts: String,
    lease: Duration,
    accounts_key: String,
    lease_key: String,
}

/// What a stamp is, or was last, served with; `None`: it never was, or by a version that did not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    accounts: Option<String>,
    lease: Option<Duration>,
}

/// What a process has otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlike {
    Accounts,
    /// Its own lease, and that of the stamp.
    Lease(Duration, Duration),
}

impl Unlike {
    /// Why it does not join, and what to do.
    pub(super) fn reason(self) -> String {
        match self {
            Unlike::Accounts => {
                "its accounts or their keys are not those that the stamp is served with, so it does not \
                                 join; give it the same"
                    .to_owned()
            }
            Unlike::Lease(own, served) => format!(
                "its --lease is {} s, and the stamp is served with {} s, so it does not join; give it the same",
                own.as_secs_f64(),
                served.as_secs_f64()
            ),
        }
    }

    /// In what silence counts.
    fn longest_lease(self, own: Duration) -> Duration {
        match self {
            Unlike::Accounts => own,
            Unlike::Lease(own, served) => own.max(served),
        }
    }
}

impl ServedSettings {
    /// Of a process of this stamp.
    pub(super) fn of(accounts: &Accounts, surroundings: &Surroundings) -> Self {
        let mut hash = Sha256::new();
        let mut lines: Vec<String> =
            accounts.iter().map(|account| format!("{} {}", account.name(), account.fingerprint())).collect();
        lines.sort();
        for line in lines {
            hash.update(line);
            hash.update("\n");
        }
        Self::of_digest(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect(), surroundings)
    }

    fn of_digest(accounts: String, surroundings: &Surroundings) -> Self {
        let (stamp, lease) = (surroundings.settings.stamp, surroundings.settings.ttl);
        let (accounts_key, lease_key) = (format!("{stamp}/accounts"), format!("{stamp}/lease"));
        ServedSettings { accounts, lease, accounts_key, lease_key }
    }

    /// What the stamp is served with.
    pub(super) async fn served(&self, surroundings: &Surroundings) -> Result<Served, StoreError> {
        let keys = [&self.accounts_key, &self.lease_key].map(|key| Selection::Key(key.clone()));
        let snapshot = surroundings.keys.read(&keys).await?;
        let text = |key: &str| {
            let entry = snapshot.entries.iter().find(|entry| entry.key == key)?;
            Some(String::from_utf8_lossy(&entry.value).into_owned())
        };
        let lease = text(&self.lease_key).and_then(|text| text.parse().ok()).map(Duration::from_millis);
        Ok(Served { accounts: text(&self.accounts_key), lease })
    }

    /// What of it this process has otherwise; the lease counts first, because it decides who serves.
    pub(super) fn unlike(&self, served: &Served) -> Option<Unlike> {
        match served.lease.filter(|lease| *lease != self.lease) {
            Some(lease) => Some(Unlike::Lease(self.lease, lease)),
            None => {
                let others = served.accounts.as_ref().filter(|accounts| **accounts != self.accounts);
                others.map(|_| Unlike::Accounts)
            }
        }
    }

    /// The stamp is served with these, which is known before anything is: others count the silence of this
    /// process by it.
    pub(super) async fn note_served(&self, range: &OwnedRange) -> Result<(), StampError> {
        let lease = self.lease.as_millis().to_string();
        let puts = [(&self.accounts_key, self.accounts.clone()), (&self.lease_key, lease)];
        range.put_beside(&puts.map(|(key, value)| (key.clone(), value.into_bytes().into()))).await
    }
}

/// Why a command may not take the stamp by this lease; none if the stamp is served with the same, or never
/// was.
pub(crate) async fn unlike_lease(surroundings: &Surroundings) -> Result<Option<String>, StoreError> {
    let own = ServedSettings::of_digest(String::new(), surroundings);
    let served = own.served(surroundings).await?;
    let unlike = own.unlike(&Served { accounts: None, ..served });
    Ok(unlike.map(Unlike::reason))
}

/// For how long nobody has been heard of who has the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// Its owner makes no beat.
    OfOwner(Duration),
    /// It was given up, and this process has seen that for so long.
    SinceRelease(Duration),
}

/// Whether a process of this lease may take the range, which has settings that are unlike those served.
pub(super) fn may_take(unlike: Option<Unlike>, silence: Silence, ttl: Duration) -> bool {
    let Some(unlike) = unlike else { return true };
    let ttl = unlike.longest_lease(ttl);
    match silence {
        Silence::OfOwner(silent_for) => silent_for >= LEASES_WITHOUT_OWNER * ttl,
        Silence::SinceRelease(seen_for) => seen_for >= LEASES_SINCE_RELEASE * ttl,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn other_settings_wait() {
        let accounts = Some(Unlike::Accounts);
        let longer = Some(Unlike::Lease(second(10), second(30)));
        let shorter = Some(Unlike::Lease(second(10), second(3)));
        for (unlike, silence, may) in [
            (None, Silence::OfOwner(second(0)), true),
            (accounts, Silence::OfOwner(second(0)), false),
            (accounts, Silence::OfOwner(second(59)), false),
            (accounts, Silence::OfOwner(second(60)), true),
            (None, Silence::SinceRelease(second(0)), true),
            (accounts, Silence::SinceRelease(second(19)), false),
            (accounts, Silence::SinceRelease(second(20)), true),
            // By the lease of whoever served, who may serve yet.
            (longer, Silence::OfOwner(second(179)), false),
            (longer, Silence::OfOwner(second(180)), true),
            (longer, Silence::SinceRelease(second(59)), false),
            (longer, Silence::SinceRelease(second(60)), true),
            (shorter, Silence::OfOwner(second(59)), false),
            (shorter, Silence::OfOwner(second(60)), true),
        ] {
            assert_eq!(may_take(unlike, silence, second(10)), may, "{unlike:?} {silence:?}");
        }
    }

    /// With a shorter lease a process took a stamp whose owner, with a longer one, went on to serve it.
    #[test]
    fn another_lease_is_noticed_and_named() {
        let own = ServedSettings {
            accounts: "a".to_owned(),
            lease: second(10),
            accounts_key: String::new(),
            lease_key: String::new(),
        };
        for (accounts, lease, unlike) in [
            (None, None, None),
            (Some("a"), None, None),
            (Some("b"), None, Some(Unlike::Accounts)),
            (Some("a"), Some(10), None),
            (Some("a"), Some(30), Some(Unlike::Lease(second(10), second(30)))),
            (Some("b"), Some(3), Some(Unlike::Lease(second(10), second(3)))),
        ] {
            let served = Served { accounts: accounts.map(str::to_owned), lease: lease.map(second) };
            assert_eq!(own.unlike(&served), unlike, "{served:?}");
        }
        let reason = Unlike::Lease(second(10), second(30)).reason();
        assert!(reason.starts_with("its --lease is 10 s, and the stamp is served with 30 s"), "{reason}");
    }
}
