//! The lines of a file of records.
//!
//! ```text
//! {"format":1,"content":"shard records"}                               the first line
//! {"key":"entry-0000…","value":"…","crc64":"0123456789abcdef"}         a record that is put
//! {"key":"part-…","crc64":"…"}                                         a record that is removed
//! ```
//!
//! The checksum is CRC-64/NVME of key, a byte 0 or 1 (there is a value), and value.
//!
//! What always holds: a line that is not whole, or whose checksum is wrong, is an error unless it is the
//! last; the last one may have been cut short by a crash before it was acknowledged, and counts as not
//! written.

use base::checksum::crc64;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The newest format, which is written.
pub(super) const FORMAT: u64 = 1;
const CONTENT: &str = "shard records";

#[derive(Serialize, Deserialize)]
struct Header {
    format: u64,
    content: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    crc64: String,
}

/// What a file holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) records: BTreeMap<String, String>,
    /// Bytes of the whole lines, at whose end the next one goes; 0: not even the first line is there.
    pub(super) whole_bytes: usize,
}

/// The first line.
pub(super) fn header_line() -> String {
    let header = Header { format: FORMAT, content: CONTENT.to_owned() };
    // Numbers and texts have a form in JSON.
    serde_json::to_string(&header).unwrap_or_default() + "\n"
}

/// The line of a record that is put, or removed.
pub(super) fn record_line(key: &str, value: Option<&str>) -> String {
    let line = Line { key: key.to_owned(), value: value.map(str::to_owned), crc64: checksum(key, value) };
    serde_json::to_string(&line).unwrap_or_default() + "\n"
}

fn checksum(key: &str, value: Option<&str>) -> String {
    let sum = crc64(&[key.as_bytes(), &[u8::from(value.is_some())], value.unwrap_or_default().as_bytes()]);
    format!("{sum:016x}")
}

/// A file without records that are no longer there.
pub(super) fn compacted(records: &BTreeMap<String, String>) -> String {
    let lines = records.iter().map(|(key, value)| record_line(key, Some(value)));
    std::iter::once(header_line()).chain(lines).collect()
}

/// Reads a file; the error says what is wrong with which line.
pub(super) fn read_lines(bytes: &[u8]) -> Result<Lines, String> {
    let mut lines = Lines::default();
    let mut rest = bytes;
    let mut number = 0;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        number += 1;
        let (line, behind) = (&rest[..end], &rest[end + 1..]);
        let read = if number == 1 { read_header(line)? } else { read_line(line, &mut lines.records) };
        if !read {
            // A crash leaves one line that is not whole, at the end.
            if behind.is_empty() {
                return Ok(lines);
            }
            return Err(format!(
                "line {number} is damaged; restore the file, or recover the map from its shards"
            ));
        }
        lines.whole_bytes += end + 1;
        rest = behind;
    }
    if number == 0 && !rest.is_empty() && !header_line().as_bytes().starts_with(rest) {
        return Err("this is no file of shard records; name another one".to_owned());
    }
    Ok(lines)
}

/// Whether it is the first line of such a file.
fn read_header(line: &[u8]) -> Result<bool, String> {
    match serde_json::from_slice::<Header>(line) {
        Ok(header) if header.content != CONTENT => {
            Err("this is no file of shard records; name another one".to_owned())
        }
        Ok(header) if header.format > FORMAT => Err(format!(
            "the file has format {}, and this version reads formats up to {FORMAT}; use a newer version",
            header.format
        )),
        Ok(_) => Ok(true),
        Err(_) => Err("this is no file of shard records; name another one".to_owned()),
    }
}

/// Whether the line is right; then it is taken.
fn read_line(line: &[u8], records: &mut BTreeMap<String, String>) -> bool {
    let Ok(Line { key, value, crc64 }) = serde_json::from_slice::<Line>(line) else { return false };
    if crc64 != checksum(&key, value.as_deref()) {
        return false;
    }
    match value {
        Some(value) => records.insert(key, value),
        None => records.remove(&key),
    };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> String {
        let lines = [record_line("a", Some("1\n")), record_line("b", Some("2")), record_line("a", None)];
        header_line() + &lines.concat()
    }

    fn records(text: &[u8]) -> Vec<String> {
        read_lines(text).expect("lines").records.into_keys().collect()
    }

    #[test]
    fn records_are_put_and_removed() {
        assert_eq!(records(file().as_bytes()), ["b"]);
        assert_eq!(records(b""), [""; 0]);
        let read = read_lines(file().as_bytes()).expect("lines");
        assert_eq!(
            (read.whole_bytes, records(compacted(&read.records).as_bytes())),
            (file().len(), vec!["b".into()])
        );
    }

    /// A crash while the last line is written leaves any part of it, or something else in its place.
    #[test]
    fn a_last_line_that_is_not_whole_is_none() {
        let (file, last) = (file(), record_line("c", Some("3")));
        for length in 0..last.len() {
            let torn = file.clone() + &last[..length];
            let read = read_lines(torn.as_bytes()).expect("lines");
            assert_eq!((read.records.len(), read.whole_bytes), (1, file.len()), "{length}");
            let zeros = [file.as_bytes(), &vec![0; length], b"\n"].concat();
            assert_eq!(read_lines(&zeros).expect("lines").whole_bytes, file.len());
        }
        for length in 0..header_line().len() {
            assert_eq!(read_lines(&header_line().as_bytes()[..length]), Ok(Lines::default()));
        }
    }

    #[test]
    fn a_damaged_line_before_the_last_is_an_error() {
        let file = file();
        let at = file.find("\"1").expect("the value") + 1;
        let damaged = [&file[..at], "7", &file[at + 1..]].concat();
        assert_eq!(
            read_lines(damaged.as_bytes()).expect_err("damage").split(';').next(),
            Some("line 2 is damaged")
        );
    }

    #[test]
    fn other_files_are_refused() {
        let newer = file().replace("\"format\":1", "\"format\":2");
        assert!(
            read_lines(newer.as_bytes()).expect_err("newer").contains("format 2, and this version reads")
        );
        for other in ["hello", "hello\n", "{}\n", "{\"format\":1,\"content\":\"x\"}\n", "\0\n"] {
            assert!(
                read_lines(other.as_bytes()).expect_err(other).contains("no file of shard records"),
                "{other}"
            );
        }
    }
}
