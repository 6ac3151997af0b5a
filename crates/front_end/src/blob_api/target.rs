//! What a request's path names: the account, a container, or a blob.
//!
//! Names are percent-decoded once, here; `\` in a blob's name is `/`, and dots at the end of its segments are
//! dropped. A path of one segment is a container if the parameters speak of one, else a blob in the root
//! container. One that ends where a blob's name would begin names only the container, too; that no operation
//! on a container is requested so, the route ensures.

use super::errors::from_blob;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::request::query_string::QueryParameters;
use blob::{
    BlobAt, BlobError, BlobService, ContainerRow, is_former_blob_name, with_forward_slashes,
    without_trailing_dots,
};
use percent_encoding::percent_decode_str;

/// The container of blobs without one.
const ROOT_CONTAINER: &str = "$root";

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Account,
    Container(String),
    Blob { container: String, blob: BlobName },
}

/// What becomes of an operation if a blob is stored under the very name of its address, which no new blob
/// gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormerNameUse {
    /// It is not looked for: the credentials are good only for the blob that is meant.
    Ignored,
    /// It is done to that blob.
    Served,
    /// It is refused.
    InTheWay,
}

/// Why nothing is written beside a blob of a former name.
const IN_THE_WAY: &str = "An earlier version of this server stored a blob under exactly this name, whose dots at the end \
                          of a segment are dropped or whose control characters are refused today. Copy it to another \
                          name if it is needed, then delete it; or write to the name without the dots.";

/// A blob's name in an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlobName {
    /// The blob that is meant. Not checked.
    meant: String,
    /// What the address says, if no new blob gets that name.
    former: Option<String>,
}

impl BlobName {
    /// Of a decoded path.
    pub(crate) fn new(path: String) -> BlobName {
        let path = with_forward_slashes(path);
        match is_former_blob_name(&path) {
            true => BlobName { meant: without_trailing_dots(&path).into_owned(), former: Some(path) },
            false => BlobName { meant: path, former: None },
        }
    }

    /// The name of the blob that is meant: what signatures sign, and what is written.
    pub(crate) fn as_str(&self) -> &str {
        &self.meant
    }

    /// The blob. One that an earlier version stored under the very name of the address comes first: beside it
    /// nothing is written, because a client that reads what it wrote by the same address would read it
    /// instead.
    pub(crate) async fn find(
        &self,
        service: &BlobService,
        account: &str,
        container: &ContainerRow,
        on_former: FormerNameUse,
    ) -> Result<BlobAt, ApiError> {
        if let Some(former) = &self.former {
            let stored = match on_former {
                FormerNameUse::Ignored => None,
                FormerNameUse::Served | FormerNameUse::InTheWay => {
                    service.stored_blob(account, container, former).await.map_err(from_blob)?
                }
            };
            match stored {
                Some(stored) if on_former == FormerNameUse::Served => return Ok(stored),
                Some(_) => return Err(ApiError::with_message(ErrorCode::BlobAlreadyExists, IN_THE_WAY)),
                None => {}
            }
            let is_nothing = self.meant.bytes().all(|byte| byte == b'/');
            if is_nothing {
                return Err(from_blob(BlobError::UnaddressableName));
            }
        }
        service.blob(account, container, &self.meant).map_err(from_blob)
    }
}

impl Target {
    /// Reads the raw path below the account.
    pub(crate) fn parse(resource: &str, query: &QueryParameters<'_>) -> Result<Target, ApiError> {
        let path = resource.strip_prefix('/').unwrap_or(resource);
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8();
            decoded.map(|text| text.into_owned()).map_err(|_| ApiError::new(ErrorCode::InvalidUri))
        };
        let decode_blob = |text: &str| decode(text).map(BlobName::new);
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
        let blob = |container: &str, blob: &str| Target::Blob {
            container: container.into(),
            blob: BlobName { meant: blob.into(), former: None },
        };
        assert_eq!(target("", ""), Target::Account);
        assert_eq!(target("/", "comp=list"), Target::Account);
        assert_eq!(target("/box", "restype=container"), Target::Container("box".into()));
        assert_eq!(target("/box/", ""), Target::Container("box".into()));
        assert_eq!(target("/box/a%20b/c%2Fd", ""), blob("box", "a b/c/d"));
        assert_eq!(target("/box//a", ""), blob("box", "/a"));
        assert_eq!(target("/box/a%5Cb%5c", ""), blob("box", "a/b/"));
        assert_eq!(target("/page.html", ""), blob("$root", "page.html"));
        assert_eq!(target("/$root", ""), Target::Container("$root".into()));
        for (path, meant, former) in [
            ("/box/a.", "a", "a."),
            ("/box/dir%2e/x", "dir/x", "dir./x"),
            ("/box/dir.%5Cx", "dir/x", "dir./x"),
            ("/box/...", "", "..."),
            ("/box/a%07b", "a\u{7}b", "a\u{7}b"),
        ] {
            let name = BlobName { meant: meant.into(), former: Some(former.into()) };
            assert_eq!(target(path, ""), Target::Blob { container: "box".into(), blob: name }, "{path}");
        }
    }
}
