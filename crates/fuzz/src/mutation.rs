//! A small mutator for ordinary tests: a kept input, changed a few times by a seeded generator.
//!
//! It is not guided by coverage; it tests the neighbourhood of the kept inputs on every run without further
//! tools. The same seed gives the same inputs.
#![allow(clippy::disallowed_methods)] // Inputs lie in the source tree, not on a server's disk.

use base::random::splitmix64;
use std::io;
use std::path::Path;

/// Longest mutated input, in bytes.
const INPUT_SIZE_BYTES_MAX: usize = 8 << 10;
/// Changes to one input at most.
const CHANGE_COUNT_MAX: u64 = 6;
/// Bytes that are moved or removed at once at most.
const PIECE_SIZE_BYTES_MAX: usize = 32;

/// The files of a folder by name; none if there is no such folder.
pub fn read_inputs(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(inputs),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.push((name, std::fs::read(&path)?));
    }
    inputs.sort();
    Ok(inputs)
}

/// The words of a dictionary in libFuzzer's form: a quoted word a line, `\\`, `\"` and `\xNN` escaped, `#` a
/// comment.
pub fn read_dictionary(text: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut words = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let broken = || format!("not a quoted word: {line}");
        let quoted = line.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).ok_or_else(broken)?;
        let mut word = Vec::new();
        let mut rest = quoted.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte != b'\\' {
                word.push(byte);
                continue;
            }
            match rest {
                [escaped @ (b'\\' | b'"'), after @ ..] => {
                    word.push(*escaped);
                    rest = after;
                }
                [b'x', high, low, after @ ..] => {
                    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(broken);
                    word.push((digit(*high)? * 16 + digit(*low)?) as u8);
                    rest = after;
                }
                _ => return Err(broken()),
            }
        }
        words.push(word);
    }
    Ok(words)
}

/// Mutates kept inputs.
pub struct Mutator {
    state: u64,
    kept: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Mutator {
    /// `kept` must not be empty.
    pub fn new(seed: u64, kept: Vec<Vec<u8>>, words: Vec<Vec<u8>>) -> Mutator {
        assert!(!kept.is_empty(), "mutation starts at a kept input");
        Mutator { state: seed, kept, words }
    }

    /// The next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let first = self.below(self.kept.len());
        let mut input = self.kept[first].clone();
        let changes = 1 + splitmix64(&mut self.state) % CHANGE_COUNT_MAX;
        for _ in 0..changes {
            self.change(&mut input);
            input.truncate(INPUT_SIZE_BYTES_MAX);
        }
        input
    }

    /// A number below `bound`, or 0.
    fn below(&mut self, bound: usize) -> usize {
        (splitmix64(&mut self.state) % bound.max(1) as u64) as usize
    }

    fn piece(&mut self, of_len: usize) -> std::ops::Range<usize> {
        let start = self.below(of_len + 1);
        let len = self.below((of_len - start).min(PIECE_SIZE_BYTES_MAX) + 1);
        start..start + len
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        match self.below(7) {
            0 if !input.is_empty() => {
                let at = at.min(input.len() - 1);
                input[at] ^= 1 << self.below(8);
            }
            1 => input.insert(at, splitmix64(&mut self.state) as u8),
            2 => {
                let piece = self.piece(input.len());
                input.drain(piece);
            }
            3 => {
                let piece = self.piece(input.len());
                let copied = input[piece].to_vec();
                input.splice(at..at, copied);
            }
            4 => {
                let other = self.below(self.kept.len());
                let piece = self.piece(self.kept[other].len());
                let taken = self.kept[other][piece].to_vec();
                input.splice(at..at, taken);
            }
            _ if !self.words.is_empty() => {
                let word = self.below(self.words.len());
                // The word is inserted, or replaces as many bytes.
                let end =
                    if self.below(2) == 0 { at } else { (at + self.words[word].len()).min(input.len()) };
                input.splice(at..end, self.words[word].iter().copied());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_read_as_libfuzzer_reads_them() {
        let words = read_dictionary("# words\n\n\"a b\"\n\"\\\"\\\\\\x0d\\x0A\"\n");
        assert_eq!(words, Ok(vec![b"a b".to_vec(), b"\"\\\r\n".to_vec()]));
        assert!(read_dictionary("a").is_err());
        assert!(read_dictionary("\"\\n\"").is_err());
    }

    #[test]
    fn a_seed_gives_its_inputs() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed, vec![b"some input".to_vec()], vec![b"word".to_vec()]);
            (0..50).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
    }
}
