//! Where objects are, as one text.
//!
//! ```text
//! s3://BUCKET[/PREFIX]      a bucket; two stamps share one by their prefixes, or by their own names
//! file:///PATH              a folder that all processes share
//! memory:                   memory of this process
//! ```

use percent_encoding::percent_decode_str;

/// Bytes of a prefix, at most: a key of S3 has 1,024, and the names of a stamp need the rest.
const PREFIX_SIZE_BYTES_MAX: usize = 512;
/// Bytes of a bucket's name.
const BUCKET_SIZE_BYTES: std::ops::RangeInclusive<usize> = 3..=63;

/// Where objects are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ObjectStoreUrl {
    /// In a bucket.
    S3 {
        bucket: String,
        /// Empty, or without slashes around it.
        prefix: String,
    },
    /// In a folder, by its absolute path.
    Folder { path: String },
    /// In memory.
    Memory,
}

/// Reads a URL; an error says what is wrong with it.
pub(crate) fn parse_url(url: &str) -> Result<ObjectStoreUrl, String> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err("it has no scheme: write s3://BUCKET/PREFIX, file:///PATH or memory:".to_owned());
    };
    match scheme {
        "s3" => parse_bucket(rest.strip_prefix("//").ok_or("write s3://BUCKET/PREFIX")?),
        "file" => parse_folder(rest.strip_prefix("//").ok_or("write file:///PATH")?),
        "memory" if rest.is_empty() => Ok(ObjectStoreUrl::Memory),
        "memory" => Err("memory has no address: write memory:".to_owned()),
        _ => Err(format!("its scheme '{scheme}' is not s3, file or memory")),
    }
}

fn parse_bucket(rest: &str) -> Result<ObjectStoreUrl, String> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.contains('@') {
        return Err(
            "it has a user or a key in it: credentials come from the environment or a file".to_owned()
        );
    }
    let is_letter =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    if !BUCKET_SIZE_BYTES.contains(&bucket.len()) || !bucket.bytes().all(is_letter) {
        return Err(format!("'{bucket}' is no name of a bucket: 3 to 63 of a-z, 0-9, '.', '-' and '_'"));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.len() > PREFIX_SIZE_BYTES_MAX {
        return Err(format!("its prefix has more than {PREFIX_SIZE_BYTES_MAX} bytes"));
    }
    let is_kept = |character: char| character.is_ascii_alphanumeric() || "-_.=".contains(character);
    let is_segment = |segment: &str| !matches!(segment, "" | "." | "..") && segment.chars().all(is_kept);
    if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
        return Err(
            "its prefix is not of letters, digits, '-', '_', '.' and '=' between single slashes".to_owned()
        );
    }
    Ok(ObjectStoreUrl::S3 { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

fn parse_folder(rest: &str) -> Result<ObjectStoreUrl, String> {
    if !rest.starts_with('/') {
        return Err("its path is not absolute: write file:///PATH, with three slashes".to_owned());
    }
    let path = percent_decode_str(rest).decode_utf8().map_err(|_| "its path is no UTF-8".to_owned())?;
    if path.contains('\0') || rest.contains(['?', '#']) {
        return Err("its path has a character that a path can't have".to_owned());
    }
    Ok(ObjectStoreUrl::Folder { path: path.into_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_what_they_name() {
        let s3 = |bucket: &str, prefix: &str| ObjectStoreUrl::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        };
        let folder = |path: &str| ObjectStoreUrl::Folder { path: path.to_owned() };
        for (url, expected) in [
            ("s3://bucket", s3("bucket", "")),
            ("s3://bucket/", s3("bucket", "")),
            ("s3://my.bucket-1/a/b", s3("my.bucket-1", "a/b")),
            ("s3://bucket/a/", s3("bucket", "a")),
            ("file:///srv/objects", folder("/srv/objects")),
            ("file:///srv/with%20space", folder("/srv/with space")),
            ("memory:", ObjectStoreUrl::Memory),
        ] {
            assert_eq!(parse_url(url), Ok(expected), "{url}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused() {
        for url in [
            "",
            "bucket",
            "s3:bucket",
            "s3://",
            "s3://ab",
            "s3://UPPER",
            "s3://key:secret@bucket",
            "s3://bucket//a",
            "s3://bucket/a//b",
            "s3://bucket/../a",
            "s3://bucket/a?b",
            "s3://bucket/a b",
            "file://host/a",
            "file:a",
            "file:///a?b",
            "file:///%00",
            "memory://x",
            "http://host/a",
        ] {
            assert!(parse_url(url).is_err(), "{url}");
        }
        assert!(parse_url(&format!("s3://bucket/{}", "a".repeat(513))).is_err());
    }

    #[test]
    fn a_key_in_a_url_is_not_repeated() {
        let error = parse_url("s3://AKIA:hunter2@bucket/a").expect_err("credentials");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
