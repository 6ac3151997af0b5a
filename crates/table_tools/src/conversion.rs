//! Makes a file of columns out of lines of JSON: first all lines are read for their columns, then once more.
//!
//! What always holds: the file that is made is a new one beside the lines, which stay; memory is a window of
//! lines, of Parquet a row group.

use crate::csv::write::{put_head, put_record};
use crate::error::ToolError;
use crate::files::columns::{COLUMNS_MAX, Columns};
use crate::files::format::Format;
use crate::files::output::Output;
use crate::files::records::{RecordFile, row_of};
#[cfg(feature = "parquet")]
use crate::parquet::write::{ParquetOutput, Shape};
use base::Disk;

/// What is converted.
pub(crate) struct Conversion<'a> {
    pub(crate) disk: &'a dyn Disk,
    /// The path of the lines of JSON.
    pub(crate) lines: &'a str,
    /// Learns what is done, and of how many lines so far; ends it early with an error.
    pub(crate) watch: &'a mut dyn FnMut(&'static str, u64) -> Result<(), ToolError>,
}

/// The first pass.
const FINDING: &str = "finding columns";
/// The second one.
const WRITING: &str = "writing columns";

/// What is in the lines.
#[cfg_attr(not(feature = "parquet"), allow(dead_code))] // Rows and bytes decide only there.
struct Found {
    columns: Columns,
    rows: u64,
    size_bytes: u64,
}

/// Where the file that is made of lines is: of lines themselves it is theirs.
pub(crate) fn made_path(lines: &str, format: Format) -> String {
    match format {
        Format::JsonLines => lines.to_owned(),
        Format::Csv => format!("{lines}.csv"),
        Format::Parquet => format!("{lines}.parquet"),
    }
}

impl Conversion<'_> {
    /// Writes CSV; its path.
    pub(crate) async fn write_csv(&mut self) -> Result<String, ToolError> {
        let path = made_path(self.lines, Format::Csv);
        let columns = self.find().await?.columns;
        let (mut output, mut out) = (Output::create(self.disk, &path).await?, Vec::new());
        put_head(&mut out, &columns);
        let mut lines = self.open().await?;
        while let Some(window) = lines.next_window().await? {
            for line in &window.lines {
                let row = row_of(&window.text[line.at.clone()], self.lines, line.number)?;
                let failed = |what| ToolError::Line { path: self.lines.to_owned(), line: line.number, what };
                put_record(&mut out, &row, &columns).map_err(failed)?;
            }
            output.append(std::mem::take(&mut out)).await?;
            (self.watch)(WRITING, window.lines.last().map_or(0, |line| line.number))?;
        }
        output.append(out).await?;
        output.sync().await?;
        Ok(path)
    }

    /// Writes Parquet; its path.
    #[cfg(feature = "parquet")]
    pub(crate) async fn write_parquet(&mut self) -> Result<String, ToolError> {
        let path = made_path(self.lines, Format::Parquet);
        let Found { columns, rows, size_bytes } = self.find().await?;
        let shape = Shape { columns: &columns, rows, size_bytes };
        let mut output = ParquetOutput::create(self.disk, &path, &shape).await?;
        let mut lines = self.open().await?;
        while let Some(window) = lines.next_window().await? {
            for line in &window.lines {
                let row = row_of(&window.text[line.at.clone()], self.lines, line.number)?;
                let failed = |what| ToolError::Line { path: self.lines.to_owned(), line: line.number, what };
                output.add(&row, line.at.len()).map_err(failed)?;
                if output.is_due() {
                    output.write_group().await?;
                }
            }
            (self.watch)(WRITING, window.lines.last().map_or(0, |line| line.number))?;
        }
        output.finish().await?;
        Ok(path)
    }

    /// This build has none.
    #[cfg(not(feature = "parquet"))]
    pub(crate) async fn write_parquet(&mut self) -> Result<String, ToolError> {
        Format::Parquet.check().map(|()| String::new())
    }

    async fn open(&self) -> Result<RecordFile, ToolError> {
        RecordFile::open(self.disk, self.lines, Format::JsonLines, (0, 1)).await
    }

    async fn find(&mut self) -> Result<Found, ToolError> {
        let mut columns = Columns::default();
        let (mut lines, mut rows) = (self.open().await?, 0);
        while let Some(window) = lines.next_window().await? {
            for line in &window.lines {
                let row = row_of(&window.text[line.at.clone()], self.lines, line.number)?;
                if !columns.add(&row) {
                    let what = format!(
                        "the entities have more than {COLUMNS_MAX} properties of different names or types, \
                         which are too many columns; export JSON lines, or --select some"
                    );
                    return Err(ToolError::Refused(what));
                }
            }
            rows += window.lines.len() as u64;
            (self.watch)(FINDING, rows)?;
        }
        columns.fix();
        Ok(Found { columns, rows, size_bytes: lines.size() })
    }
}
