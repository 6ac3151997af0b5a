//! A scan of one Rust file: code apart from comments and literals, and the parts of it that tests are.
//!
//! The code keeps the length and the lines of the file; bytes of comments and of the insides of literals are
//! blank in it. So a brace or a name that is found in the code is one of the language, and its position gives
//! its line. What is not valid Rust is scanned without an error: the compiler is the judge of that.

use std::ops::Range;

/// One line of a comment.
#[derive(Debug)]
pub(super) struct Comment {
    pub(super) line: usize,
    /// Columns of the whole line, code before the comment included.
    pub(super) columns: usize,
    /// As written, its marker included.
    pub(super) text: String,
}

/// A string literal, without its quotes; escapes are as written.
#[derive(Debug)]
pub(super) struct Literal {
    pub(super) position: usize,
    pub(super) text: String,
}

/// A scanned file.
#[derive(Debug)]
pub(super) struct Source {
    code: Vec<u8>,
    line_starts: Vec<usize>,
    comments: Vec<Comment>,
    literals: Vec<Literal>,
    tests: Vec<Range<usize>>,
}

impl Source {
    /// Scans the text of a file.
    pub(super) fn scan(text: &str) -> Self {
        let mut scanner =
            Scanner { text, bytes: text.as_bytes(), at: 0, blank: Vec::new(), literals: Vec::new() };
        let spans = scanner.run();
        let mut code = text.as_bytes().to_vec();
        for span in &scanner.blank {
            code[span.clone()].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        let line_starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        let comments = comment_lines(text, &line_starts, &spans);
        let tests = test_items(&code);
        Self { code, line_starts, comments, literals: scanner.literals, tests }
    }

    /// The file with comments and the insides of literals blank.
    pub(super) fn code(&self) -> &[u8] {
        &self.code
    }

    /// Number of lines; a line break at the end begins none.
    pub(super) fn line_count(&self) -> usize {
        let ends_in_break = self.line_starts.last() == Some(&self.code.len());
        self.line_starts.len() - usize::from(ends_in_break)
    }

    /// The line of a position, from 1.
    pub(super) fn line_of(&self, position: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= position)
    }

    pub(super) fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// The literals outside of tests.
    pub(super) fn literals(&self) -> impl Iterator<Item = &Literal> {
        self.literals.iter().filter(|literal| !self.is_test(literal.position))
    }

    /// Whether a position is in an item under `#[cfg(test)]`.
    pub(super) fn is_test(&self, position: usize) -> bool {
        self.tests.iter().any(|item| item.contains(&position))
    }

    /// The lines of the module header, without their markers.
    pub(super) fn header(&self) -> impl Iterator<Item = &str> {
        let lines = self.comments.iter().map(|comment| comment.text.strip_prefix("//!"));
        lines.take_while(Option::is_some).flatten().map(str::trim)
    }

    /// Names and keywords of the code with their positions.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + self.code[at..].iter().position(|byte| is_name_byte(*byte))?;
            at = name_end(&self.code, start);
            Some((start, std::str::from_utf8(&self.code[start..at]).unwrap_or_default()))
        })
    }
}

/// Whether a byte is part of a name; those of other scripts count as well.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Where the name that starts here ends.
pub(super) fn name_end(code: &[u8], start: usize) -> usize {
    let length = code[start..].iter().position(|byte| !is_name_byte(*byte));
    length.map_or(code.len(), |length| start + length)
}

/// The first position from here on that is not blank.
pub(super) fn skip_blanks(code: &[u8], start: usize) -> usize {
    let blanks = code[start..].iter().position(|byte| !byte.is_ascii_whitespace());
    blanks.map_or(code.len(), |blanks| start + blanks)
}

/// The position behind the bracket that closes the one at `open`.
pub(super) fn closing_end(code: &[u8], open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code[open..].iter().enumerate() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return open + offset + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// What is no code.
    blank: Vec<Range<usize>>,
    literals: Vec<Literal>,
}

impl Scanner<'_> {
    /// Scans all, and returns the spans of comments.
    fn run(&mut self) -> Vec<Range<usize>> {
        let mut comments = Vec::new();
        while self.at < self.bytes.len() {
            let start = self.at;
            let rest = &self.bytes[start..];
            match rest[0] {
                b'/' if rest.starts_with(b"//") => {
                    self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                    comments.push(start..self.at);
                    self.blank.push(start..self.at);
                }
                b'/' if rest.starts_with(b"/*") => {
                    self.at = self.block_comment_end();
                    comments.push(start..self.at);
                    self.blank.push(start..self.at);
                }
                b'"' => self.string(0, true),
                b'\'' => self.character_or_lifetime(),
                byte if is_name_byte(byte) => self.name_or_prefixed_string(),
                _ => self.at += 1,
            }
        }
        comments
    }

    fn block_comment_end(&self) -> usize {
        let mut depth = 0_usize;
        let mut at = self.at;
        while at < self.bytes.len() {
            if self.bytes[at..].starts_with(b"/*") {
                depth += 1;
                at += 2;
            } else if self.bytes[at..].starts_with(b"*/") {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            } else {
                at += 1;
            }
        }
        at
    }

    /// A string whose opening quote is at the current position.
    fn string(&mut self, hash_count: usize, has_escapes: bool) {
        let start = self.at + 1;
        let mut at = start;
        while at < self.bytes.len() {
            match self.bytes[at] {
                b'\\' if has_escapes => at += 1,
                b'"' if self.bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count()
                    >= hash_count =>
                {
                    break;
                }
                _ => {}
            }
            at += 1;
        }
        let end = at.min(self.bytes.len());
        self.blank.push(start..end);
        let text = self.text.get(start..end).unwrap_or_default().to_owned();
        self.literals.push(Literal { position: start, text });
        self.at = (end + 1 + hash_count).min(self.bytes.len());
    }

    /// `'a'`, `'\n'` and `'{'` are characters, `'a` is a lifetime.
    fn character_or_lifetime(&mut self) {
        let rest = &self.text[self.at + 1..];
        let mut characters = rest.char_indices();
        let first = characters.next().map(|(_, first)| first);
        let end = match (first, characters.next()) {
            (Some('\\'), _) => rest[2.min(rest.len())..].find('\'').map(|end| end + 2),
            (Some(_), Some((end, '\''))) => Some(end),
            _ => None,
        };
        match end {
            Some(end) => {
                self.blank.push(self.at + 1..self.at + 1 + end);
                self.at += end + 2;
            }
            None => self.at += 1,
        }
    }

    /// `r"…"`, `br#"…"#`, `b"…"`, `c"…"`, `b'…'`, or a name.
    fn name_or_prefixed_string(&mut self) {
        let end = name_end(self.bytes, self.at);
        let name = &self.bytes[self.at..end];
        let hash_count = self.bytes[end..].iter().take_while(|byte| **byte == b'#').count();
        let is_raw = matches!(name, b"r" | b"br" | b"cr") && self.bytes.get(end + hash_count) == Some(&b'"');
        self.at = end;
        if is_raw {
            self.at += hash_count;
            self.string(hash_count, false);
        }
    }
}

fn comment_lines(text: &str, line_starts: &[usize], spans: &[Range<usize>]) -> Vec<Comment> {
    let mut comments = Vec::new();
    for span in spans {
        let mut start = span.start;
        for part in text[span.clone()].split('\n') {
            let line = line_starts.partition_point(|line_start| *line_start <= start);
            let line_end = line_starts.get(line).map_or(text.len(), |next| next - 1);
            let columns = text[line_starts[line - 1]..line_end].trim_end().chars().count();
            comments.push(Comment { line, columns, text: part.trim_end().to_owned() });
            start += part.len() + 1;
        }
    }
    comments
}

/// The items under `#[cfg(test)]`, their attributes included.
fn test_items(code: &[u8]) -> Vec<Range<usize>> {
    const ATTRIBUTE: &[u8] = b"#[cfg(test)]";
    let mut items: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(offset) = memchr::memmem::find(&code[at..], ATTRIBUTE) {
        let start = at + offset;
        at = item_end(code, start + ATTRIBUTE.len());
        items.push(start..at);
    }
    items
}

/// Where an item, a field or a statement ends whose first attribute ends at `at`.
fn item_end(code: &[u8], mut at: usize) -> usize {
    at = skip_blanks(code, at);
    while code[at..].starts_with(b"#[") {
        at = skip_blanks(code, closing_end(code, at + 1));
    }
    let mut angle_depth = 0_usize;
    while at < code.len() {
        match code[at] {
            b'(' | b'[' => {
                at = closing_end(code, at);
                continue;
            }
            b'{' => return closing_end(code, at),
            b'<' => angle_depth += 1,
            b'>' if !matches!(code[at - 1], b'-' | b'=') => angle_depth = angle_depth.saturating_sub(1),
            b';' => return at + 1,
            b',' if angle_depth == 0 => return at + 1,
            b'}' => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        String::from_utf8(Source::scan(text).code().to_vec()).unwrap()
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(code("a // {\nb"), "a     \nb");
        assert_eq!(code("a /* { /* } */ */ b"), "a                 b");
        assert_eq!(code(r#"a("{\"{", b"{")"#), r#"a("    ", b" ")"#);
        assert_eq!(code(r##"a(r#"{"{"#)"##), r##"a(r#"   "#)"##);
        assert_eq!(code("a('{', '\\'', '\\u{7d}', b'}')"), "a(' ', '  ', '      ', b' ')");
        assert_eq!(code("fn a<'b>(c: &'b str) {}"), "fn a<'b>(c: &'b str) {}");
    }

    #[test]
    fn a_literal_has_its_text() {
        let source = Source::scan("a(\"one\"); #[cfg(test)] mod tests { b(\"two\") }");
        let texts: Vec<_> = source.literals().map(|literal| literal.text.as_str()).collect();
        assert_eq!(texts, ["one"]);
    }

    #[test]
    fn lines_of_comments_have_columns_of_the_whole_line() {
        let source = Source::scan("let a = 1; // é\n/* b\n c */\n");
        let lines: Vec<_> = source.comments().iter().map(|comment| (comment.line, comment.columns)).collect();
        assert_eq!(lines, [(1, 15), (2, 4), (3, 5)]);
        assert_eq!(source.line_count(), 3);
    }

    #[test]
    fn items_under_cfg_test_are_tests() {
        let text = "#[cfg(test)]\nuse a::{b, c};\nfn d<E, F>() {}\n#[cfg(test)]\nmod tests {\n fn g() {}\n}\nfn h() {}";
        let source = Source::scan(text);
        let is_test = |name: &str| source.is_test(text.find(name).unwrap());
        assert!(is_test("use a") && is_test("fn g"));
        assert!(!is_test("fn d") && !is_test("fn h"));
    }

    #[test]
    fn the_header_is_the_comment_at_the_start() {
        let source = Source::scan("//! One.\n//! Two.\n\n// Three.\nuse a;\n");
        assert_eq!(source.header().collect::<Vec<_>>(), ["One.", "Two."]);
    }
}
