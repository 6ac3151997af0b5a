//! Names of objects as paths below a folder, and what a listing enters.
//!
//! What always holds: a name that was let pass stays below the folder and is none of this program's own
//! files; the order of a listing is that of whole names, byte by byte.

/// The folder of files that are being written. No object's name begins so.
pub(crate) const PARTIAL: &str = ".partial";
/// Bytes of one segment of a name, at most: what file systems take.
const SEGMENT_SIZE_BYTES_MAX: usize = 255;

/// Whether an object can have that name; an error says why not.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_segment = |segment: &str| {
        !segment.starts_with('.')
            && !segment.is_empty()
            && segment.len() <= SEGMENT_SIZE_BYTES_MAX
            && !segment.contains('\0')
    };
    if name.split('/').all(is_segment) { Ok(()) } else { Err(format!("{name:?} can't be a file's name")) }
}

/// What is in a folder, in the order of whole names: a folder counts with its slash.
pub(crate) fn sort_entries(entries: &mut [(String, bool)]) {
    let with_slash = |(name, is_folder): &(String, bool)| {
        let slash: &[u8] = if *is_folder { b"/" } else { b"" };
        [name.as_bytes(), slash].concat()
    };
    entries.sort_by_cached_key(with_slash);
}

/// Whether names may begin with `path`, a folder's with its slash, that begin with `prefix` and are behind
/// `after`.
pub(crate) fn may_hold(path: &str, prefix: &str, after: Option<&str>) -> bool {
    let is_near = path.starts_with(prefix) || prefix.starts_with(path);
    is_near && after.is_none_or(|after| path > after || after.starts_with(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_stay_below_the_folder() {
        for name in ["a", "stamp/x/ab/0123-4/0000", "a-b/c.d"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(256);
        for name in ["", "/a", "a/", "a//b", "../a", "a/../b", "a/./b", ".partial/1", "a/.b", "a\0b", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_folder_is_sorted_as_its_objects_are() {
        // '-' is before '/', '0' is behind it.
        let mut entries = vec![
            ("a0".to_owned(), false),
            ("a".to_owned(), true),
            ("a-b".to_owned(), false),
            ("a".to_owned(), false),
        ];
        sort_entries(&mut entries);
        let names: Vec<_> = entries.iter().map(|(name, is_folder)| (name.as_str(), *is_folder)).collect();
        assert_eq!(names, [("a", false), ("a-b", false), ("a", true), ("a0", false)]);
    }

    #[test]
    fn what_a_listing_enters() {
        for (path, prefix, after, expected) in [
            ("s/", "s/x/", None, true),
            ("s/x/", "s/x/", None, true),
            ("s/x/ab/", "s/x/", None, true),
            ("s/y/", "s/x/", None, false),
            ("s/x/ab/", "s/x/", Some("s/x/ab/c"), true),
            ("s/x/aa/", "s/x/", Some("s/x/ab/c"), false),
            ("s/x/ac/", "s/x/", Some("s/x/ab/c"), true),
            ("s/x/ab/c", "s/x/", Some("s/x/ab/c"), true),
            ("s/x/ab/b", "s/x/", Some("s/x/ab/c"), false),
        ] {
            assert_eq!(may_hold(path, prefix, after), expected, "{path} {prefix} {after:?}");
        }
    }
}
