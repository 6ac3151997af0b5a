//! Reads a file, a row group at a time, as windows of lines of JSON.
//!
//! What always holds: any bytes are read or refused; of a file that this program has written, bytes that were
//! changed are refused, because each row group and the end have a checksum; memory is the bytes of a row
//! group, which [`GROUP_SIZE_BYTES_MAX`] bounds, a page of each column and a window.

use super::column::{Column, Cursor};
use super::pages::{CheckedPages, caught};
use super::part::Part;
use super::{CHECKSUMS_KEY, COLUMNS_KEY, CREATED_BY, END_CHECK_SIZE_BYTES, END_MAGIC, GroupChecksum, KEYS};
use crate::error::ToolError;
use crate::files::columns::COLUMNS_MAX;
use crate::files::window::{Line, WINDOW_SIZE_BYTES, Window};
use base::checksum::crc64;
use base::{Disk, DiskFile, OpenMode};
use parquet::basic::CompressionCodec;
use parquet::column::reader::get_column_reader;
use parquet::errors::ParquetError;
use parquet::file::metadata::{FooterTail, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::serialized_reader::SerializedPageReader;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a row group in the file, at most.
const GROUP_SIZE_BYTES_MAX: u64 = 1 << 30;
/// Bytes of the file's end that says what it has, at most.
const FOOTER_SIZE_BYTES_MAX: u64 = 512 << 20;
/// Rows whose values are read at once, at most.
const ROWS_AT_ONCE_MAX: u64 = 1024;
/// At the beginning and at the end of each file.
const MAGIC: &[u8] = b"PAR1";
/// The length of what is before it, and [`MAGIC`].
const TAIL_SIZE_BYTES: u64 = 8;

/// A file that is being read.
pub(crate) struct ParquetFile {
    file: Arc<dyn DiskFile>,
    path: String,
    metadata: ParquetMetaData,
    columns: Vec<Column>,
    /// Of each row group, if this program has written it.
    checksums: Vec<GroupChecksum>,
    rows: u64,
    done: u64,
    next_group: usize,
    /// Rows of the next row group that are left out.
    skipped: u64,
    group: Option<Group>,
}

/// The row group at hand.
struct Group {
    cursors: Vec<Cursor>,
    left: u64,
    /// Rows whose values the cursors have.
    at_hand: u64,
    rows_at_once: u64,
}

impl ParquetFile {
    /// Opens the file; it is read from a row on, from 0.
    pub(crate) async fn open(disk: &dyn Disk, path: &str, at: u64) -> Result<Self, ToolError> {
        let failed = |error| ToolError::file(path, error);
        let refused = |what: String| ToolError::Refused(format!("{path}: {what}"));
        let file = disk.open(path, OpenMode::Read).await.map_err(failed)?;
        let (metadata, data_end) = read_end(&*file, path).await?;
        let rows = check_groups(&metadata, data_end).map_err(|what| refused(damaged(what)))?;
        let columns = columns_of(&metadata).map_err(refused)?;
        let checksums = checksums_of(&metadata).map_err(|what| refused(damaged(what)))?;
        if at > rows {
            return Err(refused(format!("it has {rows} rows, and its state says {at}: it was changed")));
        }
        let (mut next_group, mut skipped) = (0, at);
        for group in metadata.row_groups() {
            let count = group.num_rows() as u64;
            if count > skipped {
                break;
            }
            skipped -= count;
            next_group += 1;
        }
        let (path, group) = (path.to_owned(), None);
        Ok(ParquetFile {
            file,
            path,
            metadata,
            columns,
            checksums,
            rows,
            done: at,
            next_group,
            skipped,
            group,
        })
    }

    /// How many there are.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many rows were read, and the number of the next one.
    pub(crate) fn position(&self) -> (u64, u64) {
        (self.done, 1 + self.done)
    }

    /// The next lines; none at the end.
    pub(crate) async fn next_window(&mut self) -> Result<Option<Window>, ToolError> {
        let mut window = Window { text: Vec::new(), lines: Vec::new(), end: 0 };
        while window.text.len() < WINDOW_SIZE_BYTES {
            if self.group.is_none() && !self.open_group().await? {
                break;
            }
            self.put_rows(&mut window)?;
        }
        window.end = self.done;
        Ok(Some(window).filter(|window| !window.lines.is_empty()))
    }

    /// Reads the bytes of the next row group; whether there is one.
    async fn open_group(&mut self) -> Result<bool, ToolError> {
        if self.next_group == self.metadata.num_row_groups() {
            return Ok(false);
        }
        let index = self.next_group;
        let of = self.metadata.row_group(index);
        let failed =
            |what: String| ToolError::Refused(format!("{}: row group {}: {what}", self.path, 1 + index));
        let span = match self.checksums.get(index) {
            Some((end, _)) => {
                let start = index.checked_sub(1).and_then(|before| self.checksums.get(before));
                start.map_or(0, |(end, _)| *end)..*end
            }
            None => span_of(of),
        };
        let size = span.end.saturating_sub(span.start);
        if size > GROUP_SIZE_BYTES_MAX {
            let what = format!(
                "it has {size} bytes, and at most {GROUP_SIZE_BYTES_MAX} can be read: write the \
                                file with smaller row groups"
            );
            return Err(failed(what));
        }
        let bytes = self.file.read_once_at(span.start, size as usize).await;
        let bytes = bytes.map_err(|error| ToolError::file(&self.path, error))?;
        if let Some((_, checksum)) = self.checksums.get(index)
            && format!("{:016x}", crc64(&[&bytes])) != *checksum
        {
            return Err(failed("it is damaged: its checksum is another one".to_owned()));
        }
        let part = Arc::new(Part::new(span.start, bytes));
        let cursors = self.columns.iter();
        let cursors = cursors.map(|column| caught(|| cursor(of, column.index, &part, self.skipped)));
        let cursors: Result<Vec<Cursor>, ParquetError> = cursors.collect();
        let cursors = cursors.map_err(|error| failed(damaged(error)))?;
        let rows = of.num_rows() as u64;
        let row_size = (of.total_byte_size() as u64).div_ceil(rows.max(1)).max(1);
        let rows_at_once = (WINDOW_SIZE_BYTES as u64 / row_size).clamp(1, ROWS_AT_ONCE_MAX);
        self.group = Some(Group { cursors, left: rows - self.skipped, at_hand: 0, rows_at_once });
        self.next_group += 1;
        self.skipped = 0;
        Ok(true)
    }

    /// Appends lines of the row group at hand, which ends with its last one, until the window is full.
    fn put_rows(&mut self, window: &mut Window) -> Result<(), ToolError> {
        let Some(group) = self.group.as_mut() else { return Ok(()) };
        if group.at_hand == 0 {
            group.at_hand = group.left.min(group.rows_at_once);
            for (column, cursor) in self.columns.iter().zip(&mut group.cursors) {
                let failed = |error| {
                    let (path, name, index) = (&self.path, &column.name, self.next_group);
                    ToolError::Refused(format!(
                        "{path}: row group {index}: column {name}: {}",
                        damaged(error)
                    ))
                };
                caught(|| cursor.read(group.at_hand as usize)).map_err(failed)?;
            }
        }
        // A dictionary's values may be far longer than the file, so the text is what counts.
        while group.at_hand > 0 && window.text.len() < WINDOW_SIZE_BYTES {
            let number = 1 + self.done;
            let start = window.text.len();
            window.text.push(b'{');
            for (column, cursor) in self.columns.iter().zip(&mut group.cursors) {
                let Some(value) = cursor.next() else { continue };
                if window.text.len() > start + 1 {
                    window.text.push(b',');
                }
                let failed = |what| ToolError::Line { path: self.path.clone(), line: number, what };
                column.put(&mut window.text, value).map_err(failed)?;
            }
            window.text.push(b'}');
            window.lines.push(Line { at: start..window.text.len(), number, file_end: number });
            self.done = number;
            group.at_hand -= 1;
            group.left -= 1;
        }
        if group.left == 0 {
            self.group = None;
        }
        Ok(())
    }
}

fn damaged(what: impl std::fmt::Display) -> String {
    format!("it is damaged: {what}")
}

/// What the file's end says, and where what it speaks of ends.
async fn read_end(file: &dyn DiskFile, path: &str) -> Result<(ParquetMetaData, u64), ToolError> {
    let failed = |error| ToolError::file(path, error);
    let refused = |what: String| ToolError::Refused(format!("{path}: {what}"));
    let size = file.size().await.map_err(failed)?;
    let begin = file.read_at(0, MAGIC.len().min(size as usize)).await.map_err(failed)?;
    if begin != MAGIC {
        return Err(refused("it is no Parquet file, which begins with PAR1".to_owned()));
    }
    let cut = "the end of the file is missing: it was cut off; get it again";
    let Some(tail_at) = size.checked_sub(TAIL_SIZE_BYTES).filter(|at| *at >= MAGIC.len() as u64) else {
        return Err(refused(cut.to_owned()));
    };
    let tail_bytes = file.read_at(tail_at, TAIL_SIZE_BYTES as usize).await.map_err(failed)?;
    let tail = FooterTail::try_from(&tail_bytes[..]).map_err(|_| refused(cut.to_owned()))?;
    if tail.is_encrypted_footer() {
        return Err(refused("it is encrypted, which can't be read".to_owned()));
    }
    let length = tail.metadata_length() as u64;
    let start = tail_at.checked_sub(length).filter(|_| length <= FOOTER_SIZE_BYTES_MAX);
    let start = start.ok_or_else(|| refused(damaged(format!("its end is to have {length} bytes"))))?;
    let bytes = file.read_at(start, length as usize).await.map_err(failed)?;
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes);
    let metadata = metadata.map_err(|error| refused(damaged(error)))?;
    let at = start.saturating_sub(END_CHECK_SIZE_BYTES);
    let before = file.read_at(at, (start - at) as usize).await.map_err(failed)?;
    // Whichever of both was changed.
    if before.starts_with(END_MAGIC) || is_own(&metadata) {
        let checksum = crc64(&[&bytes, &tail_bytes]).to_le_bytes();
        if before != [&END_MAGIC[..], &checksum].concat() {
            return Err(refused(damaged("the checksum of its end is another one")));
        }
    }
    Ok((metadata, start))
}

/// Checks what the row groups are said to be; how many rows they have.
fn check_groups(metadata: &ParquetMetaData, data_end: u64) -> Result<u64, String> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let mut rows: u64 = 0;
    for (number, group) in (1..).zip(metadata.row_groups()) {
        let failed = |what: &str| format!("row group {number} {what}");
        let count = u64::try_from(group.num_rows()).map_err(|_| failed("has less than no rows"))?;
        rows = rows.checked_add(count).ok_or_else(|| failed("has too many rows"))?;
        if group.num_columns() != columns || group.total_byte_size() < 0 {
            return Err(failed("has not the file's columns"));
        }
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let (start, size) = (u64::try_from(start), u64::try_from(column.compressed_size()));
            let end = start.ok().zip(size.ok()).and_then(|(start, size)| start.checked_add(size));
            if end.is_none_or(|end| end > data_end) {
                return Err(failed("is not within the file"));
            }
        }
    }
    match u64::try_from(metadata.file_metadata().num_rows()) {
        Ok(said) if said == rows => Ok(rows),
        _ => Err("its row groups have another number of rows than the file".to_owned()),
    }
}

fn said<'a>(metadata: &'a ParquetMetaData, key: &str) -> Option<&'a str> {
    let all = metadata.file_metadata().key_value_metadata()?;
    all.iter().find(|one| one.key == key)?.value.as_deref()
}

/// Whether this program has written the file.
fn is_own(metadata: &ParquetMetaData) -> bool {
    metadata.file_metadata().created_by().is_some_and(|by| by.starts_with(CREATED_BY))
}

/// The columns that are read, keys first.
fn columns_of(metadata: &ParquetMetaData) -> Result<Vec<Column>, String> {
    let schema = metadata.file_metadata().schema_descr();
    if schema.num_columns() > COLUMNS_MAX + KEYS.len() {
        return Err(format!("it has more than {COLUMNS_MAX} columns"));
    }
    let types: Option<BTreeMap<String, String>> = said(metadata, COLUMNS_KEY)
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| damaged(format!("its {COLUMNS_KEY}: {error}")))?;
    let types = types.unwrap_or_default();
    let mut columns = Vec::with_capacity(schema.num_columns());
    for (index, column) in schema.columns().iter().enumerate() {
        let declared = types.get(&column.path().string()).map(String::as_str);
        let Some(column) = Column::of(index, column, declared)? else { continue };
        let compressions = metadata.row_groups().iter().map(|group| group.column(index).compression_codec());
        for compression in compressions {
            if !matches!(
                compression,
                CompressionCodec::UNCOMPRESSED | CompressionCodec::SNAPPY | CompressionCodec::GZIP
            ) {
                let name = &column.name;
                return Err(format!(
                    "column {name}: it is compressed with {compression:?}, which can't be read; write it with \
                     Snappy or gzip, or without compression"
                ));
            }
        }
        columns.push(column);
    }
    let place = |column: &Column| KEYS.iter().position(|key| *key == column.name).unwrap_or(KEYS.len());
    columns.sort_by_key(place);
    for (index, key) in KEYS.iter().enumerate() {
        match columns.iter().filter(|column| column.name == *key).count() {
            1 if columns[index].name == *key => {}
            0 => return Err(format!("it has no column {key}")),
            _ => return Err(format!("it has the column {key} twice")),
        }
    }
    Ok(columns)
}

fn checksums_of(metadata: &ParquetMetaData) -> Result<Vec<GroupChecksum>, String> {
    if !is_own(metadata) {
        return Ok(Vec::new());
    }
    let text = said(metadata, CHECKSUMS_KEY).ok_or_else(|| format!("it has no {CHECKSUMS_KEY}"))?;
    let checksums: Vec<GroupChecksum> =
        serde_json::from_str(text).map_err(|error| format!("its {CHECKSUMS_KEY}: {error}"))?;
    match checksums.len() == metadata.num_row_groups() {
        true => Ok(checksums),
        false => Err(format!("its {CHECKSUMS_KEY} are of other row groups")),
    }
}

/// Where the bytes of a row group are; checked by [`check_groups`].
fn span_of(group: &RowGroupMetaData) -> Range<u64> {
    let spans = group.columns().iter().map(|column| column.byte_range());
    let start = spans.clone().map(|(start, _)| start).min().unwrap_or(0);
    let end = spans.map(|(start, size)| start + size).max().unwrap_or(0);
    start..end
}

fn cursor(
    group: &RowGroupMetaData,
    index: usize,
    part: &Arc<Part>,
    skipped: u64,
) -> Result<Cursor, ParquetError> {
    let column = group.column(index);
    let rows = group.num_rows() as u64;
    let pages = SerializedPageReader::new(part.clone(), column, rows as usize, None)?;
    let pages = CheckedPages::new(pages, column.column_descr(), rows);
    let mut cursor = Cursor::new(get_column_reader(column.column_descr_ptr(), Box::new(pages)))?;
    cursor.skip(skipped as usize)?;
    Ok(cursor)
}
