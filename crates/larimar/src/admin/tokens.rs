//! Tokens of the admin side: one for each role, as text of a file.
//!
//! ```text
//! # comment
//! read     <64 hex>
//! operate  <64 hex>
//! admin    <64 hex>
//! ```
//!
//! What always holds: no token is printed; a token is compared with those of all roles, each in constant
//! time.

use std::fmt;
use subtle::ConstantTimeEq;

/// Random bytes of a token.
pub(crate) const TOKEN_SIZE_BYTES: usize = 32;
/// Characters of a token that somebody else has made, at least and at most.
const TOKEN_LEN_MIN: usize = 32;
const TOKEN_LEN_MAX: usize = 256;

/// What a token opens; each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    /// Look at everything but secrets.
    Read,
    /// Change how the server runs: flush, compact, split, drain, log levels, reload.
    Operate,
    /// Make new tokens.
    Admin,
}

/// All roles, in order.
pub(crate) const ROLES: [Role; 3] = [Role::Read, Role::Operate, Role::Admin];

impl Role {
    /// Its name in files, on the command line and on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Operate => "operate",
            Role::Admin => "admin",
        }
    }

    /// The role of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        ROLES.into_iter().find(|role| role.name() == name)
    }
}

/// The tokens that are taken.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    by_role: [Option<String>; ROLES.len()],
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(hidden)")
    }
}

impl Tokens {
    /// One for each role, of these random bytes.
    pub(crate) fn of_random(random: &[[u8; TOKEN_SIZE_BYTES]; ROLES.len()]) -> Self {
        Tokens { by_role: random.map(|bytes| Some(token_of_random(&bytes))) }
    }

    /// Reads a file. The mistake names a line, and nothing that stands there.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Tokens::default();
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(name) = words.next().filter(|word| !word.starts_with('#')) else { continue };
            let wrong = |what: &str| Err(format!("line {}: {what}", index + 1));
            let Some(role) = Role::of_name(name) else {
                return wrong("it has to begin with read, operate or admin");
            };
            let token = words.next().unwrap_or_default();
            let is_good = (TOKEN_LEN_MIN..=TOKEN_LEN_MAX).contains(&token.len())
                && token.bytes().all(|byte| byte.is_ascii_graphic());
            if !is_good || words.next().is_some() {
                return wrong(
                    "behind the role stands a token of 32 to 256 visible ASCII characters, no more",
                );
            }
            let slot = &mut tokens.by_role[role as usize];
            if slot.is_some() {
                return wrong("the role has a token already");
            }
            *slot = Some(token.to_owned());
        }
        let mut known: Vec<&String> = tokens.by_role.iter().flatten().collect();
        known.sort();
        match known.windows(2).any(|pair| pair[0] == pair[1]) {
            _ if known.is_empty() => Err("it has no token".to_owned()),
            true => Err("two roles have the same token".to_owned()),
            false => Ok(tokens),
        }
    }

    /// The content of a file.
    pub(crate) fn text(&self) -> String {
        let mut text =
            "# Tokens of the admin side. Whoever reads this file can do what they open.\n".to_owned();
        for role in ROLES {
            if let Some(token) = &self.by_role[role as usize] {
                text.push_str(&format!("{:8} {token}\n", role.name()));
            }
        }
        text
    }

    /// What a token opens.
    pub(crate) fn role_of(&self, given: &str) -> Option<Role> {
        let mut found = None;
        for role in ROLES {
            if let Some(token) = &self.by_role[role as usize]
                && bool::from(token.as_bytes().ct_eq(given.as_bytes()))
            {
                found = Some(role);
            }
        }
        found
    }

    /// The token of this role, or without one the token that opens most.
    pub(crate) fn token(&self, role: Option<Role>) -> Option<&str> {
        match role {
            Some(role) => self.by_role[role as usize].as_deref(),
            None => self.by_role.iter().rev().flatten().next().map(String::as_str),
        }
    }

    /// These with another token of this role.
    pub(crate) fn with(&self, role: Role, random: &[u8; TOKEN_SIZE_BYTES]) -> Self {
        let mut tokens = self.clone();
        tokens.by_role[role as usize] = Some(token_of_random(random));
        tokens
    }
}

fn token_of_random(random: &[u8; TOKEN_SIZE_BYTES]) -> String {
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_open_their_roles_and_no_others() {
        let tokens = Tokens::of_random(&[[1; 32], [2; 32], [0xff; 32]]);
        let text = tokens.text();
        assert_eq!(Tokens::parse(&text), Ok(tokens.clone()));
        let of = |role| tokens.token(Some(role)).expect("each has one").to_owned();
        assert_eq!(of(Role::Read), "01".repeat(32));
        assert_eq!(tokens.token(None), Some(of(Role::Admin).as_str()));
        for role in ROLES {
            assert_eq!(tokens.role_of(&of(role)), Some(role));
        }
        for given in ["", "01", &of(Role::Read)[1..], &format!("{}0", of(Role::Read)), "admin"] {
            assert_eq!(tokens.role_of(given), None, "{given}");
        }
        let rotated = tokens.with(Role::Operate, &[3; 32]);
        assert_eq!(rotated.role_of(&of(Role::Operate)), None);
        assert_eq!(rotated.role_of(&"03".repeat(32)), Some(Role::Operate));
        assert_eq!(rotated.role_of(&of(Role::Admin)), Some(Role::Admin));
        assert!(!format!("{tokens:?}").contains("01"), "{tokens:?}");
        assert!(Role::Read < Role::Operate && Role::Operate < Role::Admin);
    }

    #[test]
    fn mistakes_name_the_line_and_no_token() {
        let token = "x".repeat(40);
        for (text, part) in [
            (String::new(), "it has no token"),
            ("# nothing\n".to_owned(), "it has no token"),
            (format!("# c\n\nroot {token}"), "line 3: it has to begin with read"),
            (format!("read {token}\nread {token}y"), "line 2: the role has a token already"),
            (format!("read {token}\nadmin {token}"), "two roles"),
            ("admin short".to_owned(), "line 1: behind the role"),
            (format!("admin {token} {token}"), "line 1: behind the role"),
            (format!("admin {}", "x".repeat(257)), "line 1: behind the role"),
            (format!("admin {}\u{e4}", token), "line 1: behind the role"),
        ] {
            let mistake = Tokens::parse(&text).expect_err(part);
            assert!(mistake.contains(part) && !mistake.contains("xxx"), "{mistake}");
        }
        let only_read = Tokens::parse(&format!("read {token}")).expect("one is enough");
        assert_eq!(only_read.token(Some(Role::Admin)), None);
        assert_eq!(only_read.token(None), Some(token.as_str()));
    }
}
