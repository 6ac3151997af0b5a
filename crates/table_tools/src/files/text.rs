//! A text file of entities, read in windows of whole records: lines of JSON, or records of CSV made into
//! such lines.
//!
//! What always holds: memory is bounded by a window, or by one record if that is longer; a file that ends in
//! the middle of a record is refused, with the record's line.

use super::format::Format;
use super::window::{Line, WINDOW_SIZE_BYTES, Window};
use crate::csv::read::{Head, record_size};
use crate::error::ToolError;
use base::{Disk, DiskFile, OpenMode};
use std::sync::Arc;

/// Bytes of a record, at most: an entity of 1 MiB has no more, however it is escaped.
const RECORD_SIZE_BYTES_MAX: usize = 16 << 20;

/// A file that is being read.
pub(crate) struct TextFile {
    file: Arc<dyn DiskFile>,
    path: String,
    format: Format,
    size_bytes: u64,
    at: u64,
    number: u64,
    head: Option<Head>,
}

impl TextFile {
    /// Opens the file; it is read from an offset where a record begins, which is line `number`.
    pub(crate) async fn open(
        disk: &dyn Disk,
        path: &str,
        format: Format,
        (at, number): (u64, u64),
    ) -> Result<Self, ToolError> {
        let failed = |error| ToolError::file(path, error);
        let file = disk.open(path, OpenMode::Read).await.map_err(failed)?;
        let size_bytes = file.size().await.map_err(failed)?;
        let path = path.to_owned();
        let mut file = TextFile { file, path, format, size_bytes, at: 0, number: 1, head: None };
        if format == Format::Csv {
            file.read_head().await?;
        }
        if at > file.at {
            if at > size_bytes {
                let path = &file.path;
                let what = format!("{path} has {size_bytes} bytes, and its state says {at}: it was changed");
                return Err(ToolError::Refused(what));
            }
            (file.at, file.number) = (at, number);
        }
        Ok(file)
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Where the next record begins, and its line.
    pub(crate) fn position(&self) -> (u64, u64) {
        (self.at, self.number)
    }

    /// The next lines; none at the end.
    pub(crate) async fn next_window(&mut self) -> Result<Option<Window>, ToolError> {
        let bytes = self.whole_records(WINDOW_SIZE_BYTES).await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let mut window = Window { text: Vec::with_capacity(bytes.len()), lines: Vec::new(), end: 0 };
        let mut from = 0;
        // What is made of them may be longer: names of columns are in each line.
        while from < bytes.len() && window.text.len() < WINDOW_SIZE_BYTES {
            let record = &bytes[from..];
            let size = self.record_size(record).unwrap_or(record.len());
            self.put_record(&mut window, &record[..size])?;
            from += size;
        }
        window.end = self.at;
        Ok(Some(window))
    }

    fn record_size(&self, bytes: &[u8]) -> Option<usize> {
        match self.format {
            Format::Csv => record_size(bytes),
            _ => memchr::memchr(b'\n', bytes).map(|at| at + 1),
        }
    }

    fn put_record(&mut self, window: &mut Window, record: &[u8]) -> Result<(), ToolError> {
        let number = self.number;
        let line = |what: String| ToolError::Line { path: self.path.clone(), line: number, what };
        let text = simdutf8::basic::from_utf8(record).map_err(|_| line("it is not UTF-8".to_owned()))?;
        let start = window.text.len();
        match &self.head {
            _ if text.trim_ascii().is_empty() => {}
            None => window.text.extend_from_slice(text.trim_end_matches(['\r', '\n']).as_bytes()),
            Some(head) => {
                head.put_line(&mut window.text, text).map_err(|error| line(error.to_string()))?;
                window.text.pop();
            }
        }
        self.at += record.len() as u64;
        self.number += memchr::memchr_iter(b'\n', record).count().max(1) as u64;
        let at = start..window.text.len();
        if !at.is_empty() {
            window.lines.push(Line { at, number, file_end: self.at });
        }
        Ok(())
    }

    /// Bytes from here on, about so many, that end with a record.
    async fn whole_records(&self, size_bytes: usize) -> Result<Vec<u8>, ToolError> {
        let mut size = size_bytes;
        loop {
            let left = self.size_bytes - self.at;
            let is_end = left <= size as u64;
            size = (size as u64).min(left) as usize;
            if size == 0 {
                return Ok(Vec::new());
            }
            let bytes = self.file.read_at(self.at, size).await;
            let mut bytes = Vec::from(bytes.map_err(|error| ToolError::file(&self.path, error))?);
            match self.whole_size(&bytes) {
                whole if is_end && whole < bytes.len() && self.is_whole(&bytes[whole..]) => return Ok(bytes),
                0 if is_end => {
                    let what = "the file ends in the middle of this line: it was cut off".to_owned();
                    return Err(ToolError::Line { path: self.path.clone(), line: self.number, what });
                }
                0 if size >= RECORD_SIZE_BYTES_MAX => {
                    let what = format!("it has more than {RECORD_SIZE_BYTES_MAX} bytes");
                    return Err(ToolError::Line { path: self.path.clone(), line: self.number, what });
                }
                0 => size *= 2,
                whole => {
                    bytes.truncate(whole);
                    return Ok(bytes);
                }
            }
        }
    }

    /// Bytes of the whole records at the beginning.
    fn whole_size(&self, bytes: &[u8]) -> usize {
        if self.format != Format::Csv {
            return memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        }
        let mut whole = 0;
        while let Some(size) = record_size(&bytes[whole..]) {
            whole += size;
        }
        whole
    }

    /// A last line of JSON without its end may be whole, because its bracket shows that; a record of CSV may
    /// have lost its last digits.
    fn is_whole(&self, tail: &[u8]) -> bool {
        let tail = tail.trim_ascii();
        tail.is_empty() || (self.format != Format::Csv && tail.ends_with(b"}"))
    }

    /// The line of names and that of types.
    async fn read_head(&mut self) -> Result<(), ToolError> {
        let bytes = self.whole_records(RECORD_SIZE_BYTES_MAX.min(1 << 20)).await?;
        let line =
            |line: u64, what: &str| ToolError::Line { path: self.path.clone(), line, what: what.to_owned() };
        let first = record_size(&bytes).ok_or_else(|| line(1, "the line of names is missing"))?;
        let second = record_size(&bytes[first..]).ok_or_else(|| line(2, "the line of types is missing"))?;
        let text = |bytes| simdutf8::basic::from_utf8(bytes).map_err(|_| line(1, "it is not UTF-8"));
        let (names, types) = (text(&bytes[..first])?, text(&bytes[first..first + second])?);
        let head = Head::parse(names, types).map_err(|error| line(1, &error.to_string()))?;
        let lines = memchr::memchr_iter(b'\n', &bytes[..first + second]).count() as u64;
        (self.head, self.at, self.number) = (Some(head), (first + second) as u64, 1 + lines);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::memory_disk::MemoryDisk;
    use bytes::Bytes;

    async fn lines(format: Format, content: &[u8]) -> Result<Vec<(String, u64)>, String> {
        let disk = MemoryDisk::new();
        let file = disk.open("f", OpenMode::CreateNew).await.expect("a file");
        file.write_at(0, Bytes::copy_from_slice(content)).await.expect("written");
        let mut file = TextFile::open(&disk, "f", format, (0, 1)).await.map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        while let Some(window) = file.next_window().await.map_err(|error| error.to_string())? {
            for line in &window.lines {
                let text = String::from_utf8(window.text[line.at.clone()].to_vec()).expect("text");
                lines.push((text, line.number));
            }
            assert_eq!(window.end, file.position().0);
        }
        Ok(lines)
    }

    #[tokio::test]
    async fn a_file_that_was_cut_off_is_told_with_its_line() {
        let pair = |text: &str, number| (text.to_owned(), number);
        let whole = lines(Format::JsonLines, b"{\"a\":1}\r\n\n{\"b\":2}").await;
        assert_eq!(whole, Ok(vec![pair("{\"a\":1}", 1), pair("{\"b\":2}", 3)]));
        assert_eq!(lines(Format::JsonLines, b"").await, Ok(Vec::new()));
        let cut = Err("f: line 2: the file ends in the middle of this line: it was cut off".to_owned());
        assert_eq!(lines(Format::JsonLines, b"{\"a\":1}\n{\"b\":").await, cut);
        let head = "PartitionKey,RowKey,S\nEdm.String,Edm.String,Edm.String\n";
        let csv = |records: &str| format!("{head}{records}").into_bytes();
        let read = lines(Format::Csv, &csv("p,\"r\n\",\np,s,x\n")).await.expect("a file");
        assert_eq!(read[0], pair("{\"PartitionKey\":\"p\",\"RowKey\":\"r\\n\"}", 3));
        assert_eq!(read[1], pair("{\"PartitionKey\":\"p\",\"RowKey\":\"s\",\"S\":\"x\"}", 5));
        for cut in ["p,s,x", "p,s,x\np,\"t\n"] {
            let error = lines(Format::Csv, &csv(cut)).await.expect_err("a cut file");
            assert!(error.ends_with("it was cut off"), "{error}");
        }
        let error = lines(Format::Csv, b"PartitionKey,RowKey\n").await.expect_err("no types");
        assert_eq!(error, "f: line 2: the line of types is missing");
        assert_eq!(lines(Format::JsonLines, b"\xff\n").await, Err("f: line 1: it is not UTF-8".to_owned()));
        let error = lines(Format::Csv, &csv("p,s\n")).await.expect_err("a short record");
        assert_eq!(error, "f: line 3: it has 2 cells, and the first line 3");
    }

    /// A file of 4 MiB with long names became a window of a gigabyte.
    #[tokio::test]
    async fn a_window_is_bounded_by_what_is_made() {
        let name = |index| format!("{index:0>250}");
        let names: Vec<String> = (0..2000).map(name).collect();
        let mut content = format!("PartitionKey,RowKey,{}\n", names.join(","));
        content += &format!("Edm.String,Edm.String{}\n", ",Edm.Int32".repeat(2000));
        for row in 0..50 {
            content += &format!("p,{row}{}\n", ",1".repeat(2000));
        }
        let disk = MemoryDisk::new();
        let file = disk.open("f", OpenMode::CreateNew).await.expect("a file");
        file.write_at(0, Bytes::from(content)).await.expect("written");
        let mut file = TextFile::open(&disk, "f", Format::Csv, (0, 1)).await.expect("a file");
        let mut lines = Vec::new();
        while let Some(window) = file.next_window().await.expect("a window") {
            assert!(window.text.len() < WINDOW_SIZE_BYTES + 600_000, "{}", window.text.len());
            assert_eq!(window.end, window.lines.last().expect("a line").file_end);
            lines.extend(window.lines.iter().map(|line| line.number));
        }
        assert_eq!(lines, (3..53).collect::<Vec<u64>>());
    }

    #[tokio::test]
    async fn records_longer_than_a_window_are_read() {
        let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(WINDOW_SIZE_BYTES + 5));
        let read = lines(Format::JsonLines, format!("{long}{{}}\n").as_bytes()).await.expect("a file");
        assert_eq!((read.len(), read[0].0.len()), (2, long.len() - 1));
    }
}
