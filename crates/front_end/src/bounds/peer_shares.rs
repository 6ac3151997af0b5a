//! How much of a bound one client may hold while others may want some of it.
//!
//! A client is an address, and with IPv6 the 64 bits of its network. Programs of this machine come from one
//! address and can't be distinguished, so the loopback has no share. What always holds: a share is freed when
//! it is dropped, and addresses that hold nothing are not remembered.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// The part of a bound that one client, or one account, may hold: three quarters.
pub(crate) const fn share_of(bound: usize) -> usize {
    bound - bound / 4
}

/// What clients hold of a bound.
#[derive(Debug)]
pub(crate) struct PeerShares {
    share: usize,
    held: Mutex<BTreeMap<IpAddr, usize>>,
}

/// What one client holds, until dropped.
#[derive(Debug)]
pub(crate) struct PeerShare {
    held: Option<(Arc<PeerShares>, IpAddr, usize)>,
}

impl PeerShares {
    /// Of a bound.
    pub(crate) fn of(bound: usize) -> Arc<Self> {
        Arc::new(PeerShares { share: share_of(bound), held: Mutex::default() })
    }

    /// `None`: the client holds its share already. One that holds nothing gets any amount.
    pub(crate) fn take(self: &Arc<Self>, peer: Option<IpAddr>, amount: usize) -> Option<PeerShare> {
        let Some(client) = peer.and_then(client_of) else { return Some(PeerShare { held: None }) };
        let mut held = self.held.lock();
        let of_client = held.entry(client).or_default();
        if *of_client > 0 && of_client.saturating_add(amount) > self.share {
            return None;
        }
        *of_client += amount;
        Some(PeerShare { held: Some((self.clone(), client, amount)) })
    }
}

/// Who is behind an address; `None`: anybody of this machine.
fn client_of(peer: IpAddr) -> Option<IpAddr> {
    let client = match peer.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) if address.is_loopback() => return None,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    };
    (!client.is_loopback()).then_some(client)
}

impl Drop for PeerShare {
    fn drop(&mut self) {
        let Some((shares, client, amount)) = self.held.take() else { return };
        let mut held = shares.held.lock();
        if let Some(of_client) = held.get_mut(&client) {
            *of_client = of_client.saturating_sub(amount);
            if *of_client == 0 {
                held.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn a_client_has_its_share_and_no_more() {
        let shares = PeerShares::of(100);
        let first = shares.take(peer("10.0.0.1"), 70);
        assert!(first.is_some());
        assert!(shares.take(peer("10.0.0.1"), 6).is_none());
        assert!(shares.take(peer("::ffff:10.0.0.1"), 6).is_none(), "the same client");
        let second = shares.take(peer("10.0.0.1"), 5);
        assert!(
            second.is_some() && shares.take(peer("10.0.0.2"), 200).is_some(),
            "alone, any is let through"
        );
        drop((first, second));
        assert!(shares.take(peer("10.0.0.1"), 75).is_some());
        assert!(shares.held.lock().is_empty(), "a client that holds nothing is forgotten");
    }

    #[test]
    fn a_network_is_one_client_and_this_machine_none() {
        let shares = PeerShares::of(4);
        let held: Vec<_> = (0..3).map(|host| shares.take(peer(&format!("fd00::{host}")), 1)).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(shares.take(peer("fd00::ffff:1"), 1).is_none());
        assert!(shares.take(peer("fd00:0:0:1::1"), 1).is_some());
        let local: Vec<_> = (0..9).map(|_| shares.take(peer("127.0.0.1"), 1)).collect();
        assert!(local.iter().all(Option::is_some) && shares.take(peer("::1"), 9).is_some());
        assert!(shares.take(None, 9).is_some());
    }
}
