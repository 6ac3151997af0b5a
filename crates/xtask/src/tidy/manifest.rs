//! Manifests and the lock file, as far as rules read them: sections, entries and comments, line by line.
//!
//! Only what this workspace writes is understood: an entry a line, lists of one string a line.

/// One `name = value` line of a section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) line: usize,
    pub(super) section: &'a str,
    /// Up to the first `.`: `base` for `base.workspace = true`.
    pub(super) name: &'a str,
    /// The rest of the line, a comment included.
    pub(super) rest: &'a str,
    /// The line before, if it is a comment.
    pub(super) comment_before: Option<&'a str>,
}

/// All entries of a manifest.
pub(super) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    let mut section = "";
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        let header = trimmed.strip_prefix('[').and_then(|header| header.split_once(']'));
        if let Some((header, _)) = header.filter(|_| !line.starts_with(' ')) {
            section = header;
        } else if let Some((name, rest)) = trimmed.split_once('=').filter(|_| !trimmed.starts_with('#')) {
            let (name, key) = name.trim().split_once('.').unwrap_or((name.trim(), ""));
            let rest = if key.is_empty() { rest } else { &trimmed[name.len() + 1..] };
            let comment_before = before.strip_prefix('#').map(str::trim);
            found.push(Entry { line: index + 1, section, name, rest: rest.trim(), comment_before });
        }
        before = trimmed;
    }
    found
}

/// The comment at the end of a value; a `#` inside quotes begins none.
pub(super) fn comment(value: &str) -> Option<&str> {
    let mut is_quoted = false;
    for (at, byte) in value.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'#' if !is_quoted => return Some(value[at + 1..].trim()),
            _ => {}
        }
    }
    None
}

/// The folders of the workspace's members, in order.
pub(super) fn members(text: &str) -> Vec<&str> {
    let list = text.lines().skip_while(|line| !line.starts_with("members")).skip(1);
    let list = list.take_while(|line| !line.starts_with(']'));
    list.filter_map(|line| line.trim().strip_prefix('"')?.split('"').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_sections_and_comments() {
        let text =
            "[a.b]\n# why\none = { version = \"1\", features = [\"#\"] } # because\ntwo.workspace = true\n";
        let found = entries(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].section, found[0].name, found[0].line), ("a.b", "one", 3));
        assert_eq!((found[0].comment_before, comment(found[0].rest)), (Some("why"), Some("because")));
        assert_eq!(
            (found[1].name, found[1].rest, found[1].comment_before),
            ("two", "workspace = true", None)
        );
    }

    #[test]
    fn members_are_in_order() {
        assert_eq!(
            members("[workspace]\nmembers = [\n    \"crates/b\",\n    \"crates/a\",\n]\n"),
            ["crates/b", "crates/a"]
        );
    }
}
