//! Stored access policies: named sets of rights that shared access signatures point to.
//!
//! ```text
//! policies = varint count, then each policy
//! policy   = bytes(id) u8 flags [u64 start] [u64 expiry] [bytes(permission)]
//!            flags: 1 start is there, 2 expiry is there, 4 permission is there
//!            instants are ticks; bytes(x) is a varint length and then x
//! ```
//!
//! The list is part of a container's stored row, whose format byte covers it.
//! What always holds: a checked list has at most five policies, with different ids of 1 to 64 characters.

use base::Ticks;
use base::codec::{DecodeError, Decoder, Encode};

/// Policies in one container, table or queue at most.
pub const POLICIES_MAX: usize = 5;
/// UTF-16 units in a policy's id at most.
pub const POLICY_ID_UNITS_MAX: usize = 64;
/// Bytes of a policy's permission text at most: more than all letters there are.
pub const POLICY_PERMISSION_BYTES_MAX: usize = 64;

/// A named set of rights; what is missing must be in the signature that names it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StoredPolicy {
    /// The name that signatures give.
    pub id: String,
    /// Not valid before.
    pub start: Option<Ticks>,
    /// Not valid from here on.
    pub expiry: Option<Ticks>,
    /// Permission letters.
    pub permission: Option<String>,
}

/// Why a list of policies was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// More than five.
    #[error("at most 5 stored access policies are allowed")]
    TooMany,
    /// An id is empty or longer than 64 characters.
    #[error("the policy id {0:?} must have 1 to 64 characters")]
    IdLength(String),
    /// Two policies have the same id.
    #[error("the policy id {0:?} occurs twice")]
    DuplicateId(String),
    /// A permission text that is longer than all letters there are.
    #[error("the permissions of policy {0:?} are too long")]
    PermissionLength(String),
}

/// Checks the limits that all services share.
pub fn check_policies(policies: &[StoredPolicy]) -> Result<(), PolicyError> {
    if policies.len() > POLICIES_MAX {
        return Err(PolicyError::TooMany);
    }
    for (index, policy) in policies.iter().enumerate() {
        let units = policy.id.encode_utf16().take(POLICY_ID_UNITS_MAX + 1).count();
        if units == 0 || units > POLICY_ID_UNITS_MAX {
            return Err(PolicyError::IdLength(policy.id.clone()));
        }
        if policies[..index].iter().any(|other| other.id == policy.id) {
            return Err(PolicyError::DuplicateId(policy.id.clone()));
        }
        let permission_len = policy.permission.as_ref().map_or(0, String::len);
        if permission_len > POLICY_PERMISSION_BYTES_MAX {
            return Err(PolicyError::PermissionLength(policy.id.clone()));
        }
    }
    Ok(())
}

const HAS_START: u8 = 1;
const HAS_EXPIRY: u8 = 2;
const HAS_PERMISSION: u8 = 4;

/// Appends the stored form of `policies`.
pub fn encode_policies(policies: &[StoredPolicy], out: &mut Vec<u8>) {
    out.put_varint(policies.len() as u64);
    for policy in policies {
        out.put_bytes_field(policy.id.as_bytes());
        let mut flags = 0;
        flags |= if policy.start.is_some() { HAS_START } else { 0 };
        flags |= if policy.expiry.is_some() { HAS_EXPIRY } else { 0 };
        flags |= if policy.permission.is_some() { HAS_PERMISSION } else { 0 };
        out.put_u8_field(flags);
        for at in [policy.start, policy.expiry].into_iter().flatten() {
            out.put_u64_field(at.0);
        }
        if let Some(permission) = &policy.permission {
            out.put_bytes_field(permission.as_bytes());
        }
    }
}

/// Reads what [`encode_policies`] wrote from the front of `decoder`.
pub fn decode_policies(decoder: &mut Decoder<'_>) -> Result<Vec<StoredPolicy>, DecodeError> {
    let count = decoder.varint("policy count")?;
    if count > POLICIES_MAX as u64 {
        return Err(DecodeError("policy count"));
    }
    let mut policies = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let id = decoder.text("policy id")?.to_owned();
        let flags = decoder.u8("policy flags")?;
        if flags & !(HAS_START | HAS_EXPIRY | HAS_PERMISSION) != 0 {
            return Err(DecodeError("policy flags"));
        }
        let mut policy = StoredPolicy { id, ..StoredPolicy::default() };
        if flags & HAS_START != 0 {
            policy.start = Some(Ticks(decoder.u64("policy start")?));
        }
        if flags & HAS_EXPIRY != 0 {
            policy.expiry = Some(Ticks(decoder.u64("policy expiry")?));
        }
        if flags & HAS_PERMISSION != 0 {
            policy.permission = Some(decoder.text("policy permission")?.to_owned());
        }
        policies.push(policy);
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(id: &str) -> StoredPolicy {
        StoredPolicy { id: id.to_owned(), ..StoredPolicy::default() }
    }

    #[test]
    fn limits() {
        let five: Vec<_> = (0..5).map(|index| policy(&index.to_string())).collect();
        assert_eq!(check_policies(&five), Ok(()));
        let six: Vec<_> = (0..6).map(|index| policy(&index.to_string())).collect();
        assert_eq!(check_policies(&six), Err(PolicyError::TooMany));
        assert_eq!(check_policies(&[policy(&"ä".repeat(64))]), Ok(()));
        let long = "x".repeat(65);
        assert_eq!(check_policies(&[policy(&long)]), Err(PolicyError::IdLength(long)));
        assert_eq!(check_policies(&[policy("")]), Err(PolicyError::IdLength(String::new())));
        assert_eq!(
            check_policies(&[policy("a"), policy("b"), policy("a")]),
            Err(PolicyError::DuplicateId("a".to_owned()))
        );
    }

    fn any_policy() -> impl Strategy<Value = StoredPolicy> {
        ("\\PC{1,20}", any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<String>>()).prop_map(
            |(id, start, expiry, permission)| StoredPolicy {
                id,
                start: start.map(Ticks),
                expiry: expiry.map(Ticks),
                permission,
            },
        )
    }

    proptest! {
        #[test]
        fn policies_come_back(policies in prop::collection::vec(any_policy(), 0..=5)) {
            let mut out = Vec::new();
            encode_policies(&policies, &mut out);
            let mut decoder = Decoder::new(&out);
            prop_assert_eq!(decode_policies(&mut decoder), Ok(policies));
            prop_assert!(decoder.is_empty());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = decode_policies(&mut Decoder::new(&bytes));
        }
    }
}
