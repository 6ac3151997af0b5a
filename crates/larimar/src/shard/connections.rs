//! Connection strings of shards that are storage accounts: lines of a name, a space and the string; empty
//! lines and those that begin with `#` are left out. An error never repeats a string.

use shard_map::Name;
use std::collections::BTreeMap;
use storage_client::AccountAddress;

/// What opens the accounts among the shards.
pub(super) type Accounts = BTreeMap<Name, AccountAddress>;

/// Reads the lines.
pub(super) fn parse(text: &str) -> Result<Accounts, String> {
    let mut found = Accounts::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| format!("line {}: {what}", index + 1);
        let parts = line.split_once(char::is_whitespace);
        let (name, connection) = parts.ok_or_else(|| wrong("write NAME CONNECTION".to_owned()))?;
        let name = Name::parse(name).map_err(|_| wrong("the first word is no name of a shard".to_owned()))?;
        let address = AccountAddress::parse(connection.trim()).map_err(|error| wrong(error.to_string()))?;
        if found.insert(name.clone(), address).is_some() {
            return Err(wrong(format!("shard `{name}` is there twice")));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_no_secret_is_repeated() {
        let text = "# shards\n\none UseDevelopmentStorage=true\ntwo\tUseDevelopmentStorage=true\n";
        assert_eq!(parse(text).expect("two").len(), 2);
        for text in ["AccountKey=SECRET", "one AccountKey=SECRET", "AccountName=a;AccountKey=SECRET x"] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with("line 1: ") && !error.contains("SECRET"), "{error}");
        }
        let twice = "one UseDevelopmentStorage=true\none UseDevelopmentStorage=true";
        assert_eq!(parse(twice).err().as_deref(), Some("line 2: shard `one` is there twice"));
    }
}
