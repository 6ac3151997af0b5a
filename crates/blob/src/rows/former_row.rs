//! Rows of snapshots and former versions: a record each, of a blob that is not the base blob.
//!
//! ```text
//! row name = 1s SNAPSHOT   SNAPSHOT is its time, 16 hexadecimal digits
//!            1v VERSION    VERSION is its id, a time, likewise
//! value    = row start, record
//! ```

use crate::rows::decision::stop::Stop;
use crate::rows::record::BlobRecord;
use base::codec::{DecodeError, Decoder};
use partition::RowStart;

/// Start of the row names of snapshots.
pub(crate) const SNAPSHOT_PREFIX: &str = "1s";
/// Start of the row names of former versions.
pub(crate) const VERSION_PREFIX: &str = "1v";

/// Row name of a snapshot.
pub(crate) fn snapshot_row(snapshot: u64) -> String {
    format!("{SNAPSHOT_PREFIX}{snapshot:016x}")
}

/// The time in a snapshot's row name.
pub(crate) fn snapshot_in(name: &str) -> Result<u64, DecodeError> {
    let digits = name.strip_prefix(SNAPSHOT_PREFIX).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| DecodeError("snapshot's name"))
}

/// Row name of a former version.
pub(crate) fn version_row(version: u64) -> String {
    format!("{VERSION_PREFIX}{version:016x}")
}

/// Whether a row is that of a snapshot or of a former version.
pub(super) fn is_former(row: &str) -> bool {
    row.starts_with(SNAPSHOT_PREFIX) || row.starts_with(VERSION_PREFIX)
}

/// The value of a snapshot's row.
pub(crate) fn encode_snapshot(record: &BlobRecord) -> Result<Vec<u8>, Stop> {
    let start = record.content.row_start().ok_or(Stop::NeedContent)?;
    let mut out = Vec::with_capacity(256 + start.overflow_size_bytes);
    start.put(&mut out);
    record.encode(&mut out);
    Ok(out)
}

/// Reads a snapshot's row.
pub(crate) fn decode_snapshot(value: &[u8]) -> Result<BlobRecord, DecodeError> {
    let mut decoder = Decoder::new(value);
    let start = RowStart::take(&mut decoder)?;
    let record = BlobRecord::decode(&mut decoder, start)?;
    decoder.finish("snapshot row")?;
    Ok(record)
}
