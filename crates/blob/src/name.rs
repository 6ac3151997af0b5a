//! Names of containers and blobs, metadata and tags: what the service takes.

use crate::error::BlobError;
use crate::limits::{
    BLOB_NAME_CHARS_MAX, BLOB_NAME_SEGMENTS_MAX, METADATA_SIZE_BYTES_MAX, TAG_KEY_CHARS_MAX,
    TAG_VALUE_CHARS_MAX, TAGS_MAX,
};
use service::{NameError, check_container_name};
use std::borrow::Cow;

/// Containers whose names break the rules because the service itself uses them.
const SPECIAL_CONTAINERS: [&str; 4] = ["$root", "$web", LOGS_CONTAINER, CHANGES_CONTAINER];

/// The container that is there once requests are logged.
pub(crate) const LOGS_CONTAINER: &str = "$logs";

const CHANGES_CONTAINER: &str = "$blobchangefeed";

/// Whether a container is the system's own: it is listed only if that is asked for.
pub(crate) fn is_system_container(name: &str) -> bool {
    [LOGS_CONTAINER, CHANGES_CONTAINER].contains(&name)
}

/// Names with values, in the order they were given.
pub type Pairs = Vec<(String, String)>;

/// Checks a container's name.
pub fn check_container(name: &str) -> Result<(), BlobError> {
    if SPECIAL_CONTAINERS.contains(&name) {
        return Ok(());
    }
    check_container_name(name).map_err(|error| match error {
        NameError::Length => BlobError::NameLength,
        NameError::Characters => BlobError::InvalidResourceName,
    })
}

/// `\` in a blob's name is `/`, in addresses and wherever a request names a blob or begins to (the emulator's
/// tests note the same of Azure).
pub fn with_forward_slashes(name: String) -> String {
    if name.contains('\\') { name.replace('\\', "/") } else { name }
}

/// The name of the blob that is meant by `name`: without the dots at the end of each of its segments, which
/// the service drops (reports of its users; its documents advise against such names).
pub fn without_trailing_dots(name: &str) -> Cow<'_, str> {
    if !name.split('/').any(|segment| segment.ends_with('.')) {
        return Cow::Borrowed(name);
    }
    let segments: Vec<&str> = name.split('/').map(|segment| segment.trim_end_matches('.')).collect();
    Cow::Owned(segments.join("/"))
}

/// Whether a blob that is stored has a name that no new blob gets: earlier versions took any.
pub fn is_former_blob_name(name: &str) -> bool {
    name.chars().any(char::is_control) || without_trailing_dots(name) != name
}

/// Checks a blob's name. Control characters (U+0000 to U+001F and U+007F to U+009F) can't be in an address.
pub fn check_blob(name: &str) -> Result<(), BlobError> {
    if name.chars().any(char::is_control) {
        return Err(BlobError::UnaddressableName);
    }
    let chars = name.chars().take(BLOB_NAME_CHARS_MAX + 1).count();
    if chars == 0 || chars > BLOB_NAME_CHARS_MAX {
        return Err(BlobError::NameLength);
    }
    if name.split('/').count() > BLOB_NAME_SEGMENTS_MAX {
        return Err(BlobError::InvalidResourceName);
    }
    Ok(())
}

/// Checks metadata: names are identifiers, no two the same but for case.
pub fn check_metadata(metadata: &Pairs) -> Result<(), BlobError> {
    let mut size = 0;
    for (index, (name, value)) in metadata.iter().enumerate() {
        let mut chars = name.chars();
        let first = chars.next().ok_or(BlobError::EmptyMetadataKey)?;
        let is_identifier = (first.is_alphabetic() || first == '_')
            && chars.all(|char| char.is_alphanumeric() || char == '_');
        if !is_identifier || metadata[..index].iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
            return Err(BlobError::InvalidMetadata);
        }
        size += name.len() + value.len();
    }
    if size > METADATA_SIZE_BYTES_MAX { Err(BlobError::MetadataTooLarge) } else { Ok(()) }
}

/// Checks tags.
pub fn check_tags(tags: &Pairs) -> Result<(), BlobError> {
    if tags.len() > TAGS_MAX {
        return Err(BlobError::TagsTooLarge);
    }
    for (index, (key, value)) in tags.iter().enumerate() {
        if key.is_empty() {
            return Err(BlobError::EmptyTagName);
        }
        if key.chars().count() > TAG_KEY_CHARS_MAX || value.chars().count() > TAG_VALUE_CHARS_MAX {
            return Err(BlobError::TagsTooLarge);
        }
        if !(key.chars().chain(value.chars())).all(is_tag_char) {
            return Err(BlobError::InvalidTag);
        }
        if tags[..index].iter().any(|(other, _)| other == key) {
            return Err(BlobError::DuplicateTagNames);
        }
    }
    Ok(())
}

pub(crate) fn is_tag_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || " +-./:=_".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn names() {
        assert_eq!(check_container("$root"), Ok(()));
        assert_eq!(check_container("a-b"), Ok(()));
        assert_eq!(check_container("ab"), Err(BlobError::NameLength));
        assert_eq!(check_container("$other"), Err(BlobError::InvalidResourceName));
        assert_eq!(check_blob(&"ä".repeat(1024)), Ok(()));
        assert_eq!(check_blob(&"ä".repeat(1025)), Err(BlobError::NameLength));
        assert_eq!(check_blob(""), Err(BlobError::NameLength));
        for control in ['\0', '\x1f', '\x7f', '\u{80}', '\u{9f}'] {
            assert_eq!(check_blob(&format!("a{control}b")), Err(BlobError::UnaddressableName), "{control:?}");
        }
        assert_eq!(check_blob("a\u{a0}b \u{e003}"), Ok(()));
        assert_eq!(check_blob(&"a/".repeat(254)), Err(BlobError::InvalidResourceName));
    }

    #[test]
    fn dots_at_the_end_of_segments_are_dropped() {
        let table = [
            ("a", "a"),
            ("a.", "a"),
            ("a...", "a"),
            (".a.b", ".a.b"),
            ("dir./x", "dir/x"),
            ("dir../sub./x.", "dir/sub/x"),
            ("dir/.", "dir/"),
            ("...", ""),
            ("a/./b", "a//b"),
            ("a. ", "a. "),
        ];
        for (asked, meant) in table {
            assert_eq!(without_trailing_dots(asked), meant, "{asked}");
            assert_eq!(is_former_blob_name(asked), asked != meant, "{asked}");
        }
        assert!(is_former_blob_name("a\u{85}"));
    }

    #[test]
    fn metadata() {
        assert_eq!(check_metadata(&pairs(&[("a", "1"), ("_b2", "")])), Ok(()));
        assert_eq!(check_metadata(&pairs(&[("a", "1"), ("A", "2")])), Err(BlobError::InvalidMetadata));
        assert_eq!(check_metadata(&pairs(&[("1a", "")])), Err(BlobError::InvalidMetadata));
        assert_eq!(check_metadata(&pairs(&[("", "")])), Err(BlobError::EmptyMetadataKey));
        let long = "x".repeat(METADATA_SIZE_BYTES_MAX);
        assert_eq!(check_metadata(&pairs(&[("a", &long)])), Err(BlobError::MetadataTooLarge));
    }

    #[test]
    fn tags() {
        assert_eq!(check_tags(&pairs(&[("a b", "+-./:=_"), ("c", "")])), Ok(()));
        assert_eq!(check_tags(&pairs(&[("a", "1"), ("a", "2")])), Err(BlobError::DuplicateTagNames));
        assert_eq!(check_tags(&pairs(&[("", "1")])), Err(BlobError::EmptyTagName));
        assert_eq!(check_tags(&pairs(&[("a", "ä")])), Err(BlobError::InvalidTag));
        assert_eq!(check_tags(&pairs(&[(&"k".repeat(129), "")])), Err(BlobError::TagsTooLarge));
        let eleven: Vec<String> = (0..11).map(|index| format!("k{index}")).collect();
        let eleven: Vec<(&str, &str)> = eleven.iter().map(|key| (key.as_str(), "")).collect();
        assert_eq!(check_tags(&pairs(&eleven)), Err(BlobError::TagsTooLarge));
    }
}
