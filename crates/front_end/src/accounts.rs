//! Storage accounts and their keys: what signs requests.
//!
//! Texts come from the command line (`NAME:KEY[:KEY2]`) or from the emulator's environment variable
//! (`AZURITE_ACCOUNTS`, the same with `;` between accounts). What always holds: a name is 3 to 24 lower-case
//! letters and digits, an account has one or two keys, no key is ever printed, and each error names the
//! account it is about.

use crate::auth::signature::SigningKey;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use hmac::Mac;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The well-known development account: `UseDevelopmentStorage=true` means this one.
pub const DEVELOPMENT_ACCOUNT_NAME: &str = "devstoreaccount1";

/// The development account's public key, the same everywhere. It guards nothing.
pub const DEVELOPMENT_ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/// Keys that are valid at once, so that they can be rolled.
pub const ACCOUNT_KEYS_MAX: usize = 2;

/// Bytes from which on a key can't be found by trying keys on what it has signed: those of a signature.
pub const STRONG_KEY_SIZE_BYTES_MIN: usize = 32;

/// Bytes of a key below which trying takes so little that it guards nothing.
pub const KEY_SIZE_BYTES_MIN: usize = 16;

/// Bytes of a wrong name that are named at most: one of a letter more than a name may have.
const NAME_SHOWN_SIZE_BYTES_MAX: usize = 25;

/// Whether a text in the place of an account's name can be named in an error: a key in its place, or behind
/// another sign than a colon, must not come to a log.
pub fn may_be_shown(name: &str) -> bool {
    name.len() <= NAME_SHOWN_SIZE_BYTES_MAX && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Why a text does not describe an account.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// Nothing before the first colon, or no colon.
    #[error("account {0:?} has no key: write NAME:KEY or NAME:KEY:KEY2")]
    NoKey(String),
    /// The name breaks the protocol's rule.
    #[error("account name {0:?} must be 3 to 24 lower-case letters and digits")]
    BadName(String),
    /// What stands before the first colon is longer than a name, or has other characters than names are tried
    /// with.
    #[error(
        "it does not begin with an account's name, 3 to 24 lower-case letters and digits, and a colon: write NAME:KEY or \
         NAME:KEY:KEY2 (the text is not shown, as it may hold a key)"
    )]
    NoName,
    /// A key is not Base64.
    #[error("key {number} of account {name:?} is not Base64")]
    BadKey {
        /// Whose key.
        name: String,
        /// Which key, from 1.
        number: usize,
    },
    /// More keys than can be valid at once.
    #[error("account {0:?} has more than two keys")]
    TooManyKeys(String),
    /// The same name twice.
    #[error("account {0:?} is given twice")]
    Duplicate(String),
    /// Not one account.
    #[error("no account is given")]
    Empty,
}

/// One storage account.
#[derive(Clone)]
pub struct Account {
    name: Arc<str>,
    keys: Vec<SigningKey>,
    shortest_key_size_bytes: usize,
    /// Its place among those that are served.
    number: u32,
}

/// Base64 as lenient clients read it, which sign with the same bytes: also of the URL kind, without padding,
/// and with a last character that says more than it has to.
fn key_bytes(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    LENIENT.decode(text.replace('-', "+").replace('_', "/")).ok()
}

impl Account {
    /// An account from its name and one or two Base64 keys.
    pub fn new(name: &str, keys: &[&str]) -> Result<Self, AccountError> {
        service::check_account_name(name).map_err(|_| match may_be_shown(name) {
            true => AccountError::BadName(name.to_owned()),
            false => AccountError::NoName,
        })?;
        if keys.is_empty() {
            return Err(AccountError::NoKey(name.to_owned()));
        }
        if keys.len() > ACCOUNT_KEYS_MAX {
            return Err(AccountError::TooManyKeys(name.to_owned()));
        }
        let mut shortest_key_size_bytes = usize::MAX;
        let keys = keys
            .iter()
            .enumerate()
            .map(|(index, key)| match key_bytes(key.trim()) {
                Some(bytes) if !bytes.is_empty() => {
                    shortest_key_size_bytes = shortest_key_size_bytes.min(bytes.len());
                    Ok(SigningKey::new(&bytes))
                }
                _ => Err(AccountError::BadKey { name: name.to_owned(), number: index + 1 }),
            })
            .collect::<Result<_, _>>()?;
        Ok(Account { name: name.into(), keys, shortest_key_size_bytes, number: 0 })
    }

    /// Reads `NAME:KEY[:KEY2]`.
    pub fn parse(text: &str) -> Result<Self, AccountError> {
        let mut parts = text.trim().split(':');
        let name = parts.next().unwrap_or_default();
        let keys: Vec<&str> = parts.filter(|key| !key.is_empty()).collect();
        Account::new(name, &keys)
    }

    /// The development account.
    pub fn development() -> Self {
        match Account::new(DEVELOPMENT_ACCOUNT_NAME, &[DEVELOPMENT_ACCOUNT_KEY]) {
            Ok(account) => account,
            Err(error) => unreachable!("the development account is a constant: {error}"),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tells accounts of the same name and other keys apart, without saying the keys: what each signs.
    pub fn fingerprint(&self) -> String {
        let signed =
            |key: &SigningKey| key.sign(|sink| sink.update(b"larimar account fingerprint".as_slice()));
        self.keys.iter().map(signed).collect::<Vec<_>>().join(" ")
    }

    /// Its keys, any of which may sign.
    pub fn keys(&self) -> &[SigningKey] {
        &self.keys
    }

    /// Its place among those that are served, in the order of their names, from 0.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Bytes of its shortest key: the one that is found first by trying.
    pub fn shortest_key_size_bytes(&self) -> usize {
        self.shortest_key_size_bytes
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({}, {} keys)", self.name, self.keys.len())
    }
}

impl std::str::FromStr for Account {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Self, AccountError> {
        Account::parse(text)
    }
}

/// The accounts a front end serves.
#[derive(Clone, Debug)]
pub struct Accounts {
    by_name: BTreeMap<Arc<str>, Account>,
}

impl Accounts {
    /// At least one account, no name twice.
    pub fn new(accounts: impl IntoIterator<Item = Account>) -> Result<Self, AccountError> {
        let mut by_name = BTreeMap::new();
        for account in accounts {
            let name = account.name.clone();
            if by_name.insert(name.clone(), account).is_some() {
                return Err(AccountError::Duplicate(name.as_ref().to_owned()));
            }
        }
        if by_name.is_empty() {
            return Err(AccountError::Empty);
        }
        for (number, account) in (0..).zip(by_name.values_mut()) {
            account.number = number;
        }
        Ok(Accounts { by_name })
    }

    /// Only the development account.
    pub fn development() -> Self {
        let account = Account::development();
        Accounts { by_name: BTreeMap::from([(account.name.clone(), account)]) }
    }

    /// Reads `NAME:KEY[:KEY2];NAME:KEY…`, the form of `AZURITE_ACCOUNTS`.
    pub fn parse_list(text: &str) -> Result<Self, AccountError> {
        let parsed: Result<Vec<Account>, AccountError> =
            text.split(';').filter(|part| !part.trim().is_empty()).map(Account::parse).collect();
        Accounts::new(parsed?)
    }

    /// The account of that name.
    pub fn find(&self, name: &str) -> Option<&Account> {
        self.by_name.get(name)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_name.len()
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Account> {
        self.by_name.values()
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(AsRef::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_the_emulator_form() {
        let accounts = Accounts::parse_list("one:AAAA;two2:AAAA:AAEC;").expect("well formed");
        assert_eq!(accounts.names().collect::<Vec<_>>(), ["one", "two2"]);
        assert_eq!(accounts.find("two2").map(|account| account.keys().len()), Some(2));
        let sizes: Vec<usize> = accounts.iter().map(Account::shortest_key_size_bytes).collect();
        assert_eq!(sizes, [3, 3]);
        let sizes = Accounts::parse_list("two2:AAAA:AA==").expect("well formed");
        assert_eq!(sizes.find("two2").map(Account::shortest_key_size_bytes), Some(1));
        assert!(accounts.find("three").is_none());
        let text = format!("{accounts:?}");
        assert!(!text.contains("AAEC"), "keys are never printed: {text}");
    }

    #[test]
    fn keys_are_read_as_clients_read_them() {
        let signature = |key: &str| {
            let account = Account::new("abc", &[key]).expect("a key");
            account.keys()[0].sign(|sink| crate::auth::signature::SignSink::put(sink, b"text"))
        };
        assert_eq!(signature("_-8="), signature("/+8="));
        assert_eq!(signature("/+8"), signature("/+8="));
        // Eight bytes and two bits more.
        assert_eq!(signature("testing_key"), signature("testing/kew="));
        assert_ne!(signature("testing_key"), signature("testing_kewB"));
    }

    #[test]
    fn errors_name_the_account() {
        let error = |text: &str| Accounts::parse_list(text).expect_err("malformed");
        assert_eq!(error(""), AccountError::Empty);
        assert_eq!(error("abc"), AccountError::NoKey("abc".into()));
        assert_eq!(error("Abc:AAAA"), AccountError::BadName("Abc".into()));
        assert_eq!(error("ab:AAAA"), AccountError::BadName("ab".into()));
        for slip in [format!("abc={DEVELOPMENT_ACCOUNT_KEY}"), format!("abc,{DEVELOPMENT_ACCOUNT_KEY}:AAAA")]
        {
            assert_eq!(error(&slip), AccountError::NoName);
        }
        let text = error(DEVELOPMENT_ACCOUNT_KEY).to_string();
        assert!(!text.contains(&DEVELOPMENT_ACCOUNT_KEY[..8]), "{text}");
        assert_eq!(error("abc:AAAA:?"), AccountError::BadKey { name: "abc".into(), number: 2 });
        assert_eq!(error("abc:AAAA:AAAA:AAAA"), AccountError::TooManyKeys("abc".into()));
        assert_eq!(error("abc:AAAA;abc:AAAA"), AccountError::Duplicate("abc".into()));
    }

    #[test]
    fn the_development_account_is_always_there() {
        assert!(Accounts::development().find(DEVELOPMENT_ACCOUNT_NAME).is_some());
    }
}
