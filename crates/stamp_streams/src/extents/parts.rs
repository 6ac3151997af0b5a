//! Single parts and seals: created, read, listed, deleted.
//!
//! What always holds: one try ends within a named time, and an answer that does not come is of unknown
//! outcome; what is read has its checksums right, or is reported as damaged with its name.

use crate::error::StampError;
use crate::stores::store_error::StoreError;
use crate::surroundings::Surroundings;
use base::checksum::crc64;
use bytes::{Bytes, BytesMut};
use stamp::{
    ExtentName, Found, PART_HEADER_SIZE, PartHeader, PartPath, PutAnswer, StoredError, extent_folder,
    extents_folder,
};

/// Bytes of a part that its first read asks for: those of small parts come with their header.
const FIRST_READ_SIZE: u64 = 64 << 10;
/// How often a listing or a deletion is tried.
const TRIES_MAX: usize = 5;

/// A part or seal as it is sent: header and body in one piece.
pub(crate) fn content(header: &PartHeader, body: &[u8]) -> Bytes {
    debug_assert_eq!((header.body_length, header.body_checksum), (body.len() as u64, crc64(&[body])));
    let mut content = BytesMut::with_capacity(PART_HEADER_SIZE + body.len());
    content.extend_from_slice(&header.encode());
    content.extend_from_slice(body);
    content.freeze()
}

/// A part that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadPart {
    /// Header and body, with the right checksums.
    There(PartHeader, Bytes),
    /// Anything else.
    Not(Found),
}

fn checked(read: Result<(PartHeader, Bytes), Found>) -> ReadPart {
    match read {
        Err(found) => ReadPart::Not(found),
        Ok((header, body)) => match header.check_body(&body) {
            Ok(()) => ReadPart::There(header, body),
            Err(error) => ReadPart::Not(Found::Damaged(error)),
        },
    }
}

impl Surroundings {
    /// The name of the object at `offset`.
    pub(crate) fn part_name(&self, extent: ExtentName, offset: u64) -> String {
        PartPath { extent, offset }.format(self.settings.stamp)
    }

    /// Creates a part or seal: one try.
    pub(crate) async fn put_part(&self, header: &PartHeader, content: &Bytes) -> PutAnswer {
        let name = self.part_name(header.place.extent, header.offset);
        self.put_named(&name, content).await
    }

    /// Creates an object: one try.
    pub(crate) async fn put_named(&self, name: &str, content: &Bytes) -> PutAnswer {
        let answer = self.try_object(self.objects.create(name, content.clone())).await;
        answer.unwrap_or(PutAnswer::Unknown)
    }

    pub(crate) async fn read_piece(&self, name: &str, offset: u64, length: u64) -> Result<Bytes, Found> {
        match self.try_object(self.objects.read(name, offset, length)).await {
            Some(Ok(bytes)) => Ok(bytes),
            Some(Err(StoreError::NotThere)) => Err(Found::NotThere),
            Some(Err(_)) | None => Err(Found::Unknown),
        }
    }

    /// Reads the header of the object at `offset`: one try.
    pub(crate) async fn read_header(&self, extent: ExtentName, offset: u64) -> Found {
        if let Some(header) = self.ahead.header(extent, offset) {
            return Found::Header(header);
        }
        let name = self.part_name(extent, offset);
        match self.read_piece(&name, 0, PART_HEADER_SIZE as u64).await {
            Ok(bytes) => match PartHeader::decode(&bytes, self.settings.stamp, extent, offset) {
                Ok(header) => {
                    self.ahead.keep(&header, None);
                    Found::Header(header)
                }
                Err(error) => Found::Damaged(error),
            },
            Err(found) => found,
        }
    }

    /// Reads the whole object at `offset`: one try.
    pub(crate) async fn read_part(&self, extent: ExtentName, offset: u64) -> ReadPart {
        checked(self.read_part_in(extent, offset, FIRST_READ_SIZE).await)
    }

    /// The same of a part whose body has this size, by all that is known, for a reader that asks once: one
    /// request at most.
    pub(crate) async fn read_part_of(&self, extent: ExtentName, offset: u64, body_size: u64) -> ReadPart {
        if let Some((header, body)) = self.ahead.part(extent, offset, true) {
            return ReadPart::There(header, body);
        }
        checked(self.read_part_sized(extent, offset, body_size).await)
    }

    /// The same without a look at the body, for a reader that asks again, of a body that likely has this
    /// size.
    pub(crate) async fn read_part_sized(
        &self,
        extent: ExtentName,
        offset: u64,
        body_size: u64,
    ) -> Result<(PartHeader, Bytes), Found> {
        self.read_part_in(extent, offset, PART_HEADER_SIZE as u64 + body_size).await
    }

    /// The same without a look at the body, which may be cut or other bytes: a reader that goes on behind
    /// damage checks it by itself.
    pub(crate) async fn read_part_unchecked(
        &self,
        extent: ExtentName,
        offset: u64,
    ) -> Result<(PartHeader, Bytes), Found> {
        self.read_part_in(extent, offset, FIRST_READ_SIZE).await
    }

    /// Asks for `first_size` bytes, and for the rest once the header says that there is more.
    async fn read_part_in(
        &self,
        extent: ExtentName,
        offset: u64,
        first_size: u64,
    ) -> Result<(PartHeader, Bytes), Found> {
        if let Some(found) = self.ahead.part(extent, offset, false) {
            return Ok(found);
        }
        let name = self.part_name(extent, offset);
        let first = self.read_piece(&name, 0, first_size).await?;
        let header = PartHeader::decode(&first, self.settings.stamp, extent, offset);
        let header = header.map_err(Found::Damaged)?;
        let size = PART_HEADER_SIZE as u64 + header.body_length;
        let body = if size <= first_size {
            first.slice(PART_HEADER_SIZE.min(first.len())..)
        } else {
            let mut body = BytesMut::from(first.get(PART_HEADER_SIZE..).unwrap_or_default());
            body.extend_from_slice(&self.read_piece(&name, first_size, size - first_size).await?);
            body.freeze()
        };
        self.ahead.keep(&header, Some(&body));
        Ok((header, body))
    }

    /// Reads a whole object of another kind.
    pub(crate) async fn read_object(&self, name: &str, size_max: u64) -> Result<Bytes, StampError> {
        let mut back_off = self.back_off();
        for _ in 0..TRIES_MAX {
            match self.read_piece(name, 0, size_max).await {
                Ok(bytes) => return Ok(bytes),
                Err(Found::NotThere) => {
                    return Err(StoredError::Missing { what: format!("object {name}") }.into());
                }
                Err(_) => back_off.wait().await,
            }
        }
        Err(StampError::store(name, StoreError::Unavailable("no answer".to_owned())))
    }

    /// Lists all names that begin so, behind this one, page by page.
    pub(crate) async fn list_names(
        &self,
        prefix: &str,
        behind: Option<&str>,
    ) -> Result<Vec<String>, StampError> {
        let mut names: Vec<String> = Vec::new();
        let mut back_off = self.back_off();
        let mut failed = 0;
        loop {
            let after = names.last().cloned();
            let listed = self.try_object(self.objects.list(prefix, after.as_deref().or(behind))).await;
            match listed {
                Some(Ok(page)) => {
                    let is_last = !page.has_more || page.names.is_empty();
                    names.extend(page.names);
                    if is_last {
                        return Ok(names);
                    }
                }
                Some(Err(error)) if failed == TRIES_MAX => return Err(StampError::store(prefix, error)),
                None if failed == TRIES_MAX => {
                    let error = StoreError::Unavailable("no answer".to_owned());
                    return Err(StampError::store(prefix, error));
                }
                Some(Err(_)) | None => {
                    failed += 1;
                    back_off.wait().await;
                }
            }
        }
    }

    /// Lists the objects of extents.
    pub(crate) async fn list_parts(&self) -> Result<Vec<PartPath>, StampError> {
        let stamp = self.settings.stamp;
        let names = self.list_names(&extents_folder(stamp), None).await?;
        Ok(names.iter().filter_map(|name| PartPath::parse(name, stamp)).collect())
    }

    /// Lists the offsets of an extent's objects from `from` on.
    pub(crate) async fn list_offsets(&self, extent: ExtentName, from: u64) -> Result<Vec<u64>, StampError> {
        let stamp = self.settings.stamp;
        let behind = from.checked_sub(1).map(|offset| self.part_name(extent, offset));
        let names = self.list_names(&extent_folder(stamp, extent), behind.as_deref()).await?;
        Ok(names.iter().filter_map(|name| PartPath::parse(name, stamp)).map(|path| path.offset).collect())
    }

    /// Deletes a part, a seal or a bundle. A try of unknown outcome is repeated; the names of deleted extents
    /// are never used again, so that a late one does no harm.
    pub(crate) async fn delete_named(&self, name: &str) -> Result<(), StampError> {
        let mut back_off = self.back_off();
        for _ in 0..TRIES_MAX {
            match self.try_object(self.objects.delete(name)).await {
                Some(Ok(()) | Err(StoreError::NotThere)) => return Ok(()),
                Some(Err(error @ StoreError::Refused(_))) => return Err(StampError::store(name, error)),
                Some(Err(_)) | None => back_off.wait().await,
            }
        }
        Err(StampError::store(name, StoreError::UnknownOutcome("no answer".to_owned())))
    }
}
