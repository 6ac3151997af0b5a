//! What a sealed extent is for ever: its length, and a digest of all of it.
//!
//! The digest shows what the checksums of blocks can't: that these blocks, all of them and in this order, are
//! the ones that were appended. A block or a file that was exchanged for another valid one (the extent of the
//! same id from another folder, an older copy) verifies block by block. No byte is hashed twice: the digest
//! runs over the blocks' checksums, and is carried on from append to append, so that sealing computes
//! nothing.
//!
//! ```text
//! digest of no blocks       = 0
//! digest of blocks 1 to n   = splitmix64(digest of blocks 1 to n - 1  XOR  checksum of block n)
//! ```
//!
//! What always holds: each step is a one-to-one function of either side, so that one exchanged block is
//! always seen, and anything else but by a chance of 2^-64. It guards against accidents, not against forgers.

use crate::block;
use crate::error::StreamError;
use crate::ids::ExtentId;
use base::random::splitmix64;
use std::fmt;

/// Digest of an extent's blocks from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExtentDigest(pub(crate) u64);

impl fmt::Display for ExtentDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl ExtentDigest {
    /// The digest of no blocks.
    pub(crate) const EMPTY: Self = ExtentDigest(0);

    /// The digest with one more block, which has this checksum.
    pub(crate) fn then(self, block_checksum: u64) -> Self {
        ExtentDigest(splitmix64(&mut (self.0 ^ block_checksum)))
    }

    /// The digest with the encoded `blocks`, which lie at `offset` of `extent`. Their checksums are taken as
    /// they are.
    pub(crate) fn then_blocks(
        self,
        extent: ExtentId,
        offset: u64,
        blocks: &[u8],
    ) -> Result<Self, StreamError> {
        let mut digest = self;
        let mut at = 0;
        while at < blocks.len() {
            let (size, checksum) = block::step(&blocks[at..], extent, offset + at as u64)?;
            digest = digest.then(checksum);
            at += size;
        }
        Ok(digest)
    }
}

/// What was fixed when an extent was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// Bytes it has.
    pub(crate) length: u64,
    /// Digest of its blocks; `None`: it was begun before digests were kept (format 1).
    pub(crate) digest: Option<ExtentDigest>,
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.digest {
            Some(digest) => write!(f, "{} bytes with digest {digest}", self.length),
            None => write!(f, "{} bytes", self.length),
        }
    }
}

impl Seal {
    /// How the node's record of the extent contradicts this, if it does. The node may have a digest that is
    /// missing here.
    pub(crate) fn contradiction(self, held: Seal, frozen: bool) -> Option<String> {
        let agree =
            frozen && held.length == self.length && (self.digest.is_none() || held.digest == self.digest);
        let state = if frozen { "frozen" } else { "open" };
        (!agree).then(|| format!("it was sealed at {self}, the journal says {held} ({state})"))
    }

    /// Whether an extent that was `held` may have become this.
    pub(crate) fn may_follow(self, held: Seal) -> bool {
        self.length > held.length
            || (self.length == held.length && (self.digest.is_none() || self.digest == held.digest))
    }
}

/// What it means that the blocks of an extent read, but have another digest than was recorded.
pub(crate) fn exchanged(recorded: ExtentDigest, found: ExtentDigest) -> String {
    format!(
        "each block is whole, but they are not the ones that were appended: their digest is {found}, {recorded} was \
         recorded; blocks or the whole file were exchanged for others"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::put_block;

    const E: ExtentId = ExtentId(3);

    fn blocks(payloads: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for payload in payloads {
            let offset = out.len() as u64;
            put_block(&mut out, E, offset, payload);
        }
        out
    }

    fn digest(payloads: &[&[u8]]) -> u64 {
        ExtentDigest::EMPTY.then_blocks(E, 0, &blocks(payloads)).unwrap().0
    }

    #[test]
    fn other_blocks_have_another_digest() {
        let one: &[&[u8]] = &[b"one", b"two", b"six"];
        let others: [&[&[u8]]; 8] = [
            &[b"two", b"one", b"six"],
            &[b"one", b"six", b"two"],
            &[b"one", b"one", b"six"],
            &[b"one", b"tw0", b"six"],
            &[b"one", b"two"],
            &[b"one", b"two", b"six", b""],
            &[b"onetwo", b"six"],
            &[],
        ];
        for other in others {
            assert_ne!(digest(one), digest(other), "{other:?}");
        }
        assert_eq!(digest(&[]), 0);
    }

    /// It is stored: its value must never change.
    #[test]
    fn a_digest_is_the_same_for_ever() {
        assert_eq!(ExtentDigest::EMPTY.then(0), ExtentDigest(0xe220_a839_7b1d_cdaf));
        assert_eq!(digest(&[b"one", b"two"]), 0x69f4_2d59_978f_6b6c);
    }

    #[test]
    fn it_does_not_matter_how_blocks_came() {
        let all = blocks(&[b"one", b"", &[7; 300], b"four"]);
        let whole = ExtentDigest::EMPTY.then_blocks(E, 0, &all).unwrap();
        let mut cut = 0;
        while cut < all.len() {
            cut += block::step(&all[cut..], E, cut as u64).unwrap().0;
            let (first, rest) = all.split_at(cut);
            let parts = ExtentDigest::EMPTY.then_blocks(E, 0, first).unwrap();
            assert_eq!(parts.then_blocks(E, cut as u64, rest), Ok(whole));
        }
    }

    #[test]
    fn what_is_not_whole_blocks_has_no_digest() {
        let all = blocks(&[b"one", b"two"]);
        for len in (1..all.len()).filter(|len| *len != 35) {
            assert!(ExtentDigest::EMPTY.then_blocks(E, 0, &all[..len]).is_err(), "{len}");
        }
        assert!(ExtentDigest::EMPTY.then_blocks(ExtentId(4), 0, &all).is_err());
        assert!(ExtentDigest::EMPTY.then_blocks(E, 1, &all).is_err());
    }

    #[test]
    fn a_seal_and_what_a_node_says_agree_or_not() {
        let sealed = |length, digest: Option<u64>| Seal { length, digest: digest.map(ExtentDigest) };
        let table = [
            (sealed(9, Some(1)), sealed(9, Some(1)), true, true),
            (sealed(9, None), sealed(9, None), true, true),
            (sealed(9, None), sealed(9, Some(1)), true, true),
            (sealed(9, Some(1)), sealed(9, Some(2)), true, false),
            (sealed(9, Some(1)), sealed(9, None), true, false),
            (sealed(9, Some(1)), sealed(8, Some(1)), true, false),
            (sealed(9, Some(1)), sealed(9, Some(1)), false, false),
        ];
        for (manager, node, frozen, agree) in table {
            let found = manager.contradiction(node, frozen);
            assert_eq!(found.is_none(), agree, "{manager:?} {node:?} {frozen}: {found:?}");
        }
        let later = [
            (sealed(9, Some(1)), sealed(9, Some(1)), true),
            (sealed(9, Some(1)), sealed(9, Some(2)), false),
            (sealed(9, Some(1)), sealed(9, None), false),
            (sealed(9, None), sealed(9, Some(1)), true),
            (sealed(9, Some(1)), sealed(8, Some(2)), true),
            (sealed(9, Some(1)), sealed(10, Some(1)), false),
        ];
        for (manager, node, may_follow) in later {
            assert_eq!(manager.may_follow(node), may_follow, "{manager:?} {node:?}");
        }
    }
}
