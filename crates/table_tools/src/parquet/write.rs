//! Writes a file, a row group at a time.
//!
//! What always holds: a row group has at most [`GROUP_ROWS_MAX`] rows, and as many bytes of lines as
//! [`GROUP_SIZE_BYTES`] and one line more; what readers keep of a file, and the end of this one in memory, is
//! bounded by [`CHUNKS_MAX`].

use super::layout::{columns_of, schema_of, types_of};
use super::value::Values;
use super::{CHECKSUMS_KEY, CREATED_BY, END_MAGIC, GroupChecksum, KEYS};
use crate::error::ToolError;
use crate::files::columns::Columns;
use crate::files::output::Output;
use crate::lines::row::Row;
use base::Disk;
use base::checksum::crc64;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use std::sync::Arc;

/// Rows of a row group, at most.
pub(super) const GROUP_ROWS_MAX: usize = 65_536;
/// Bytes of a row group as lines of JSON, about.
const GROUP_SIZE_BYTES: usize = 32 << 20;
/// Columns of all row groups of a file, at most.
const CHUNKS_MAX: u64 = 1 << 19;

/// What a file is to have.
pub(crate) struct Shape<'a> {
    pub(crate) columns: &'a Columns,
    pub(crate) rows: u64,
    /// As lines of JSON.
    pub(crate) size_bytes: u64,
}

impl Shape<'_> {
    /// Refuses what makes too many parts.
    fn check(&self) -> Result<(), ToolError> {
        let groups = 1 + self.rows / GROUP_ROWS_MAX as u64 + self.size_bytes / GROUP_SIZE_BYTES as u64;
        let columns = (KEYS.len() + self.columns.count()) as u64;
        if groups * columns <= CHUNKS_MAX {
            return Ok(());
        }
        Err(ToolError::Refused(format!(
            "{} entities with {columns} columns are too much for one Parquet file; export JSON lines, or \
             --select some properties",
            self.rows
        )))
    }
}

/// A file that is being written.
pub(crate) struct ParquetOutput<'a> {
    columns: &'a Columns,
    path: String,
    output: Output,
    writer: SerializedFileWriter<Vec<u8>>,
    group: Group,
    checksums: Vec<GroupChecksum>,
}

/// The row group at hand.
struct Group {
    keys: [Vec<ByteArray>; 2],
    columns: Vec<Column>,
    rows: usize,
    size_bytes: usize,
}

/// A column of the row group: few entities may have it.
struct Column {
    /// Rows that have a value.
    rows: Vec<u32>,
    values: Values,
}

impl Group {
    fn new(columns: &Columns) -> Self {
        let column = |(_, kind)| Column { rows: Vec::new(), values: Values::of(kind) };
        let columns = columns.iter().map(column).collect();
        Group { keys: [Vec::new(), Vec::new()], columns, rows: 0, size_bytes: 0 }
    }
}

impl<'a> ParquetOutput<'a> {
    /// Makes the file, in the place of one that is there.
    pub(crate) async fn create(disk: &dyn Disk, path: &str, shape: &Shape<'a>) -> Result<Self, ToolError> {
        shape.check()?;
        let failed = |error| failed(path, &error);
        let layout = columns_of(shape.columns);
        let schema = schema_of(&layout).map_err(failed)?;
        // Without indexes of pages, which take memory until the end.
        let properties = WriterProperties::builder()
            .set_created_by(format!("{CREATED_BY}{}", env!("CARGO_PKG_VERSION")))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(vec![types_of(&layout)]))
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).map_err(failed)?;
        Ok(ParquetOutput {
            columns: shape.columns,
            path: path.to_owned(),
            output: Output::create(disk, path).await?,
            writer,
            group: Group::new(shape.columns),
            checksums: Vec::new(),
        })
    }

    /// Takes an entity, whose properties all have a column, and whose line has so many bytes.
    pub(crate) fn add(&mut self, row: &Row<'_>, size_bytes: usize) -> Result<(), String> {
        let group = &mut self.group;
        let number = group.rows as u32;
        for property in &row.properties {
            let name = &property.name;
            let place = self.columns.place(name, property.value.kind);
            let place = place.ok_or_else(|| format!("property {name} has no column"))?;
            let column = &mut group.columns[place];
            if column.rows.last() == Some(&number) {
                return Err(format!("property {name} is there twice"));
            }
            if !column.values.push(&property.value) {
                return Err(format!("property {name}: it is no {}", property.value.kind.name()));
            }
            column.rows.push(number);
        }
        let bytes = |text: &str| ByteArray::from(text.as_bytes().to_vec());
        group.keys[0].push(bytes(&row.partition_key));
        group.keys[1].push(bytes(&row.row_key));
        group.rows += 1;
        group.size_bytes += size_bytes;
        Ok(())
    }

    /// Whether the row group is large enough to be written.
    pub(crate) fn is_due(&self) -> bool {
        self.group.rows >= GROUP_ROWS_MAX || self.group.size_bytes >= GROUP_SIZE_BYTES
    }

    /// Writes the row group at hand.
    pub(crate) async fn write_group(&mut self) -> Result<(), ToolError> {
        let group = std::mem::replace(&mut self.group, Group::new(self.columns));
        put_group(&mut self.writer, &group).map_err(|error| failed(&self.path, &error))?;
        let bytes = std::mem::take(self.writer.inner_mut());
        let checksum = crc64(&[&bytes]);
        self.output.append(bytes).await?;
        self.checksums.push((self.output.size_bytes(), format!("{checksum:016x}")));
        Ok(())
    }

    /// Writes what is left, and the file's end, to the disk.
    pub(crate) async fn finish(mut self) -> Result<(), ToolError> {
        if self.group.rows > 0 {
            self.write_group().await?;
        }
        let checksums = serde_json::json!(self.checksums).to_string();
        self.writer.append_key_value_metadata(KeyValue::new(CHECKSUMS_KEY.to_owned(), checksums));
        // Of a file without entities its beginning.
        self.writer.flush().map_err(|error| ToolError::file(&self.path, error))?;
        self.output.append(std::mem::take(self.writer.inner_mut())).await?;
        let rest = self.writer.into_inner().map_err(|error| failed(&self.path, &error))?;
        let checksum = crc64(&[&rest]).to_le_bytes();
        self.output.append([&END_MAGIC[..], &checksum, &rest].concat()).await?;
        self.output.sync().await
    }
}

fn failed(path: &str, error: &ParquetError) -> ToolError {
    ToolError::Refused(format!("{path}: {error}"))
}

fn put_group(writer: &mut SerializedFileWriter<Vec<u8>>, group: &Group) -> Result<(), ParquetError> {
    let mut levels = Vec::new();
    let mut out = writer.next_row_group()?;
    for key in &group.keys {
        if let Some(mut column) = out.next_column()? {
            column.typed::<ByteArrayType>().write_batch(key, None, None)?;
            column.close()?;
        }
    }
    for of in &group.columns {
        if let Some(mut column) = out.next_column()? {
            levels.clear();
            levels.resize(group.rows, 0);
            of.rows.iter().for_each(|row| levels[*row as usize] = 1);
            of.values.write(&mut column, &levels)?;
            column.close()?;
        }
    }
    out.close()?;
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_parts_are_refused_before_the_first_one() {
        let mut columns = Columns::default();
        let line = |name| format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"P{name}\":1}}");
        for number in 0..298 {
            assert!(columns.add(&Row::parse(&line(number)).expect("a row")));
        }
        let check = |rows, size_bytes| Shape { columns: &columns, rows, size_bytes }.check();
        assert!(check(1000, 50 << 30).is_ok());
        for (rows, size_bytes) in [(1000, 60 << 30), (120_000_000, 1 << 30)] {
            let line = check(rows, size_bytes).expect_err("too much").to_string();
            let expected = format!("{rows} entities with 300 columns are too much for one Parquet file");
            assert!(line.starts_with(&expected), "{line}");
        }
    }
}
