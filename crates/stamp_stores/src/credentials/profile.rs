//! Credentials in a file of profiles.
//!
//! ```text
//! [default]
//! aws_access_key_id = …
//! aws_secret_access_key = …
//! aws_session_token = …
//! ```

use crate::credentials::{Credentials, Found};
use crate::secret::Secret;
use crate::surroundings::{FileError, StoreSurroundings};
use std::collections::BTreeMap;

const FILE: &str = "AWS_SHARED_CREDENTIALS_FILE";
const PROFILE: &str = "AWS_PROFILE";
const DEFAULT_PROFILE: &str = "default";

/// Those of the profile that the variables name; none if they name no file and no profile, and the usual file
/// or its `[default]` is not there.
pub(crate) async fn from_profile(surroundings: &StoreSurroundings) -> Result<Option<Found>, String> {
    let given = surroundings.variable(FILE);
    let usual = surroundings.variable("HOME").map(|home| format!("{home}/.aws/credentials"));
    let profile = surroundings.variable(PROFILE);
    let Some(path) = given.map(str::to_owned).or(usual) else {
        return match profile {
            Some(_) => Err(format!("{PROFILE} is set, and neither {FILE} nor HOME says where profiles are")),
            None => Ok(None),
        };
    };
    let is_optional = given.is_none() && profile.is_none();
    let bytes = match surroundings.read_file(&path).await {
        Ok(bytes) => bytes,
        Err(FileError::NotThere) if is_optional => return Ok(None),
        Err(error) => return Err(format!("the file of profiles {path} can't be read: {error}")),
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| format!("the file of profiles {path} is no UTF-8"))?;
    let name = profile.unwrap_or(DEFAULT_PROFILE);
    match section(text, name) {
        Some(settings) => credentials(&settings, name, &path).map(Some),
        None if is_optional => Ok(None),
        None => Err(format!("the file of profiles {path} has no profile [{name}]")),
    }
}

/// The settings of a profile.
fn section<'a>(text: &'a str, name: &str) -> Option<BTreeMap<&'a str, &'a str>> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let header = header.trim();
            is_inside = header.strip_prefix("profile ").map_or(header, str::trim) == name;
            if is_inside {
                found.get_or_insert_with(BTreeMap::new);
            }
        } else if let (true, Some((key, value)), Some(settings)) =
            (is_inside, line.split_once('='), found.as_mut())
        {
            settings.insert(key.trim(), value.trim());
        }
    }
    found
}

fn credentials(settings: &BTreeMap<&str, &str>, name: &str, path: &str) -> Result<Found, String> {
    let setting = |name: &str| settings.get(name).copied().filter(|value| !value.is_empty());
    match (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
        (Some(key_id), Some(secret)) => {
            let session_token = setting("aws_session_token").map(Secret::new);
            let credentials =
                Credentials { key_id: Secret::new(key_id), secret: Secret::new(secret), session_token };
            Ok(Found { credentials, ends_at: None })
        }
        _ => Err(format!(
            "the profile [{name}] of {path} has no aws_access_key_id with aws_secret_access_key; roles, processes and single sign-on of profiles are not supported"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_read() {
        let text = "# a\n[default]\naws_access_key_id=A\naws_secret_access_key = s=1 \n\n[ profile two ]\naws_access_key_id = B\n\
                    aws_secret_access_key = t\naws_session_token = u\n; c\n[empty]\nregion = x\n";
        let of = |name: &str| section(text, name).map(|settings| credentials(&settings, name, "f"));
        let first = of("default").expect("a profile").expect("credentials").credentials;
        assert_eq!(
            (first.key_id, first.secret, first.session_token),
            (Secret::new("A"), Secret::new("s=1"), None)
        );
        let second = of("two").expect("a profile").expect("credentials").credentials;
        assert_eq!(second.session_token, Some(Secret::new("u")));
        assert!(of("empty").expect("a profile").is_err());
        assert!(of("none").is_none());
    }
}
