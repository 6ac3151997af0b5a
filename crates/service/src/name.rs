//! Names of accounts and of containers as DNS-like labels.
//!
//! Table names have rules of their own (crate `table`). Which wire error a broken rule gives is the caller's
//! matter; the two kinds are distinct because the protocol does.

/// Which rule a name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Too short or too long.
    #[error("the length of the name is not within the permissible limits")]
    Length,
    /// A character that may not be there.
    #[error("the name contains invalid characters")]
    Characters,
}

/// Checks an account name: 3 to 24 lower-case letters and digits.
pub fn check_account_name(name: &str) -> Result<(), NameError> {
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Err(NameError::Characters);
    }
    check_length(name, 3, 24)
}

/// Checks the name of a blob container or a queue: 3 to 63 lower-case letters, digits and single hyphens
/// between them.
pub fn check_container_name(name: &str) -> Result<(), NameError> {
    check_length(name, 3, 63)?;
    let mut before = b'-';
    for byte in name.bytes() {
        let fits = byte.is_ascii_lowercase() || byte.is_ascii_digit() || (byte == b'-' && before != b'-');
        if !fits {
            return Err(NameError::Characters);
        }
        before = byte;
    }
    if before == b'-' {
        return Err(NameError::Characters);
    }
    Ok(())
}

fn check_length(name: &str, least: usize, most: usize) -> Result<(), NameError> {
    if (least..=most).contains(&name.len()) { Ok(()) } else { Err(NameError::Length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_names() {
        assert_eq!(check_account_name("devstoreaccount1"), Ok(()));
        assert_eq!(check_account_name("abc"), Ok(()));
        assert_eq!(check_account_name("ab"), Err(NameError::Length));
        assert_eq!(check_account_name(&"a".repeat(25)), Err(NameError::Length));
        for name in ["Abc", "a-c", "aéc", "a c"] {
            assert_eq!(check_account_name(name), Err(NameError::Characters), "{name}");
        }
    }

    #[test]
    fn container_names() {
        for name in ["abc", "a-b-c", "1abc", &"a".repeat(63)] {
            assert_eq!(check_container_name(name), Ok(()), "{name}");
        }
        for name in ["-ab", "ab-", "a--b", "aBc", "a_b", "äbc"] {
            assert_eq!(check_container_name(name), Err(NameError::Characters), "{name}");
        }
        for name in ["ab", &"a".repeat(64)] {
            assert_eq!(check_container_name(name), Err(NameError::Length), "{name}");
        }
    }
}
