//! Whose data is served: accounts from the command line and a file; without those, from the environment.
//!
//! What always holds: no key is part of a mistake.

use crate::bounded_file::read_text_bounded;
use base::checksum::crc64;
use front_end::accounts::{Account, AccountError, Accounts};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Bytes of a file with accounts at most: some 30,000 of them.
const ACCOUNTS_FILE_SIZE_BYTES_MAX: usize = 4 << 20;

/// A variable that looks as if it were one, because the flag is called so.
const MISNAMED_VARIABLE: &str = "LARIMAR_ACCOUNT";
/// What it should be.
const VARIABLE: &str = "LARIMAR_ACCOUNTS";

/// Why accounts can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountsError {
    #[error("{source_name}: {error}")]
    Account { source_name: String, error: AccountError },
    #[error("{variable} is not UTF-8 text")]
    NotText { variable: &'static str },
    #[error("{given} is set, but no setting has this variable; did you mean {variable}?")]
    Misnamed { given: &'static str, variable: &'static str },
    #[error("{variable} is set but names no account; unset it for the development account")]
    NoAccountsInVariable { variable: &'static str },
    #[error(
        "--accounts-file wants the name of a file with accounts; an account itself is given with --account"
    )]
    AccountForFile,
    #[error("--accounts-file {}: {error}", path.display())]
    AccountsFile { path: PathBuf, error: std::io::Error },
    #[error("--accounts-file {}: it names no account", path.display())]
    NoAccounts { path: PathBuf },
}

/// The accounts that are given.
#[derive(Debug)]
pub(crate) struct GivenAccounts {
    /// `None`: there are none, so it is the development account.
    pub(crate) accounts: Option<Accounts>,
    /// What the file held, if there is one.
    pub(crate) file: Option<AccountsDigest>,
}

/// Tells two contents of a file with accounts apart without keeping their keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountsDigest(u64);

impl AccountsDigest {
    /// Of the lines that name accounts: comments and blank lines say nothing.
    fn of(accounts: &[(String, String)]) -> Self {
        let lines = accounts.iter().flat_map(|(_, text)| [text.as_bytes(), b"\n"]);
        AccountsDigest(crc64(&lines.collect::<Vec<_>>()))
    }
}

impl fmt::Debug for AccountsDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountsDigest(...)")
    }
}

/// Accounts from the command line and the file; without those, from the environment.
pub(crate) fn given_accounts(
    typed: &[String],
    file: Option<&Path>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<GivenAccounts, AccountsError> {
    let in_file = file.map(read_file).transpose()?;
    let file = in_file.as_deref().map(AccountsDigest::of);
    let typed = typed.iter().map(|text| ("--account".to_owned(), text.clone()));
    let texts: Vec<(String, String)> = typed.chain(in_file.into_iter().flatten()).collect();
    let accounts = if texts.is_empty() { of_environment(environment)? } else { Some(parsed(texts)?) };
    Ok(GivenAccounts { accounts, file })
}

/// The accounts of a file, each with its place.
fn read_file(path: &Path) -> Result<Vec<(String, String)>, AccountsError> {
    let content = read_text_bounded(path, ACCOUNTS_FILE_SIZE_BYTES_MAX).map_err(|error| {
        // Its key would be printed with the path.
        match path.to_str().is_some_and(holds_account) {
            true => AccountsError::AccountForFile,
            false => AccountsError::AccountsFile { path: path.to_owned(), error },
        }
    })?;
    // Some editors begin a text with a mark of its encoding.
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    let mut texts = Vec::new();
    for (index, line) in content.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            texts.push((format!("{} line {}", path.display(), index + 1), line.to_owned()));
        }
    }
    if texts.is_empty() { Err(AccountsError::NoAccounts { path: path.to_owned() }) } else { Ok(texts) }
}

fn parsed(texts: Vec<(String, String)>) -> Result<Accounts, AccountsError> {
    let mut accounts = Vec::with_capacity(texts.len());
    for (source_name, text) in texts {
        accounts.push(Account::parse(&text).map_err(named(source_name))?);
    }
    Accounts::new(accounts).map_err(named("accounts".to_owned()))
}

fn of_environment(environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Option<Accounts>, AccountsError> {
    for variable in [VARIABLE, "AZURITE_ACCOUNTS"] {
        // Nobody who sets it wants the account whose key everybody knows.
        let Some(value) = environment(variable) else { continue };
        let text = value.into_string().map_err(|_| AccountsError::NotText { variable })?;
        return Accounts::parse_list(&text).map(Some).map_err(|error| match error {
            AccountError::Empty => AccountsError::NoAccountsInVariable { variable },
            error => named(variable.to_owned())(error),
        });
    }
    match environment(MISNAMED_VARIABLE) {
        Some(_) => Err(AccountsError::Misnamed { given: MISNAMED_VARIABLE, variable: VARIABLE }),
        None => Ok(None),
    }
}

fn named(source_name: String) -> impl FnOnce(AccountError) -> AccountsError {
    move |error| AccountsError::Account { source_name, error }
}

/// Whether a text in the place of another value is an account, or several: its keys must not be shown.
pub(crate) fn holds_account(text: &str) -> bool {
    text.split(';').any(|part| Account::parse(part).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODw==";
    const OTHER_KEY: &str = "EBESExQVFhcYGRobHB0eHw==";

    #[test]
    fn a_digest_tells_accounts_apart_and_not_comments() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accounts");
        let digest = |content: &str| {
            std::fs::write(&path, content).expect("a file");
            given_accounts(&[], Some(&path), &|_| None).expect("accounts").file
        };
        let first = digest(&format!("one:{KEY}\ntwo:{OTHER_KEY}\n"));
        assert_eq!(digest(&format!("# a comment\none:{KEY} # another\n\n two:{OTHER_KEY}")), first);
        for content in [
            format!("one:{KEY}"),
            format!("one:{OTHER_KEY}\ntwo:{OTHER_KEY}"),
            format!("one:{KEY}:{OTHER_KEY}\ntwo:{OTHER_KEY}"),
            format!("one:{KEY}\ntwo:{OTHER_KEY}\nthree:{KEY}"),
        ] {
            assert_ne!(digest(&content), first, "{content}");
        }
        let typed = given_accounts(&[format!("one:{KEY}")], None, &|_| None).expect("accounts");
        assert_eq!(typed.file, None);
        assert!(!format!("{first:?}").contains(|letter: char| letter.is_ascii_digit()), "{first:?}");
    }

    #[test]
    fn accounts_in_the_place_of_another_value_are_noticed() {
        for (text, expected) in [
            (format!("abc:{KEY}"), true),
            (format!("abc:{KEY}:{OTHER_KEY}"), true),
            (format!("abc:{KEY};def:{OTHER_KEY}"), true),
            ("abc".to_owned(), false),
            ("/etc/larimar/accounts".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(holds_account(&text), expected, "{text}");
        }
    }

    /// The development account was served, or signed, for somebody who had named a variable as the flag.
    #[test]
    fn a_misnamed_variable_is_refused() {
        let misnamed = |name: &str| (name == "LARIMAR_ACCOUNT").then(|| OsString::from(format!("abc:{KEY}")));
        let refused = given_accounts(&[], None, &misnamed).expect_err("refused").to_string();
        assert!(refused.contains("LARIMAR_ACCOUNTS") && !refused.contains(KEY), "{refused}");
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accounts");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(ACCOUNTS_FILE_SIZE_BYTES_MAX as u64 + 1).expect("a size");
        let refused = given_accounts(&[], Some(&path), &|_| None).expect_err("refused").to_string();
        assert!(refused.ends_with("it has more than 4194304 bytes"), "{refused}");
    }
}
