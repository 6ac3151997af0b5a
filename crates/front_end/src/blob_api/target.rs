//! What a request's path names: the account, a container, or a blob.
//!
//! Names are percent-decoded once, here, and `\` in a blob's name is `/`. A path of one segment is a container if the
//! parameters speak of one, else a blob in the root container. One that ends where a blob's name would begin names only
//! the container, too; that no operation on a container is asked for so, the route sees to.

use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::query_string::QueryParameters;
use percent_encoding::percent_decode_str;

/// The container of blobs without one.
const ROOT_CONTAINER: &str = "$root";

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Account,
    Container(String),
    Blob { container: String, blob: String },
}

impl Target {
    /// Reads the raw path below the account.
    pub(crate) fn parse(resource: &str, query: &QueryParameters<'_>) -> Result<Target, ApiError> {
        let path = resource.strip_prefix('/').unwrap_or(resource);
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|_| ApiError::new(ErrorCode::InvalidUri))
        };
        let decode_blob = |text: &str| decode(text).map(|name| name.replace('\\', "/"));
        if path.is_empty() {
            return Ok(Target::Account);
        }
        match path.split_once('/') {
            Some((container, "")) => Ok(Target::Container(decode(container)?)),
            Some((container, blob)) => {
                Ok(Target::Blob { container: decode(container)?, blob: decode_blob(blob)? })
            }
            None if query.find("restype").is_some() || path.starts_with('$') => {
                Ok(Target::Container(decode(path)?))
            }
            None => Ok(Target::Blob { container: ROOT_CONTAINER.to_owned(), blob: decode_blob(path)? }),
        }
    }

    /// The container, if it is about one.
    pub(crate) fn container(&self) -> Option<&str> {
        match self {
            Target::Account => None,
            Target::Container(container) | Target::Blob { container, .. } => Some(container),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let target = |path: &str, query: &str| {
            Target::parse(path, &QueryParameters::parse(Some(query)).unwrap()).unwrap()
        };
        let blob =
            |container: &str, blob: &str| Target::Blob { container: container.into(), blob: blob.into() };
        assert_eq!(target("", ""), Target::Account);
        assert_eq!(target("/", "comp=list"), Target::Account);
        assert_eq!(target("/box", "restype=container"), Target::Container("box".into()));
        assert_eq!(target("/box/", ""), Target::Container("box".into()));
        assert_eq!(target("/box/a%20b/c%2Fd", ""), blob("box", "a b/c/d"));
        assert_eq!(target("/box//a", ""), blob("box", "/a"));
        assert_eq!(target("/box/a%5Cb%5c", ""), blob("box", "a/b/"));
        assert_eq!(target("/page.html", ""), blob("$root", "page.html"));
        assert_eq!(target("/$root", ""), Target::Container("$root".into()));
    }
}
