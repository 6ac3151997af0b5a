//! A file of entities of any format, read in windows of lines of JSON.
//!
//! What always holds: memory is bounded, whatever is in the file; a file that was cut off is refused.

use super::format::Format;
use super::text::TextFile;
use super::window::Window;
use crate::error::ToolError;
use crate::lines::row::Row;
#[cfg(feature = "parquet")]
use crate::parquet::read::ParquetFile;
use base::Disk;

/// A file that is being read.
pub(crate) enum RecordFile {
    Text(TextFile),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetFile>),
}

impl RecordFile {
    /// Opens the file; it is read from a position where a record begins, which is line `number`.
    pub(crate) async fn open(
        disk: &dyn Disk,
        path: &str,
        format: Format,
        (at, number): (u64, u64),
    ) -> Result<Self, ToolError> {
        format.check()?;
        #[cfg(feature = "parquet")]
        if format == Format::Parquet {
            return Ok(RecordFile::Parquet(Box::new(ParquetFile::open(disk, path, at).await?)));
        }
        Ok(RecordFile::Text(TextFile::open(disk, path, format, (at, number)).await?))
    }

    /// Its format.
    pub(crate) fn format(&self) -> Format {
        match self {
            RecordFile::Text(file) => file.format(),
            #[cfg(feature = "parquet")]
            RecordFile::Parquet(_) => Format::Parquet,
        }
    }

    /// The position at its end.
    pub(crate) fn size(&self) -> u64 {
        match self {
            RecordFile::Text(file) => file.size_bytes(),
            #[cfg(feature = "parquet")]
            RecordFile::Parquet(file) => file.rows(),
        }
    }

    /// Where the next record begins (bytes, of Parquet rows), and its line.
    pub(crate) fn position(&self) -> (u64, u64) {
        match self {
            RecordFile::Text(file) => file.position(),
            #[cfg(feature = "parquet")]
            RecordFile::Parquet(file) => file.position(),
        }
    }

    /// The next lines; none at the end.
    pub(crate) async fn next_window(&mut self) -> Result<Option<Window>, ToolError> {
        match self {
            RecordFile::Text(file) => file.next_window().await,
            #[cfg(feature = "parquet")]
            RecordFile::Parquet(file) => file.next_window().await,
        }
    }
}

/// The entity of a line.
pub(crate) fn row_of<'a>(line: &'a [u8], path: &str, number: u64) -> Result<Row<'a>, ToolError> {
    let failed = |what: String| ToolError::Line { path: path.to_owned(), line: number, what };
    let text = simdutf8::basic::from_utf8(line).map_err(|_| failed("it is not UTF-8".to_owned()))?;
    Row::parse(text).map_err(|error| failed(error.to_string()))
}
