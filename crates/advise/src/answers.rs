//! What only the user knows: questions of scale, query and availability, and their answers in a file.
//!
//! ```toml
//! growth = 1.0           # how many times as many entities are written in a year
//! peak_factor = 5.0      # how many times busier the busiest time is than the mean
//! stale_s = 60.0         # for how many seconds an index table may be behind; 0: it may not
//! is_atomic = true       # whether what is written together must be there together
//! ```
//!
//! What always holds: a file that was written is read back as the same answers.

use settings_file::{Section, SettingsFileError, parse};
use std::fmt::Write;

/// The answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answers {
    /// How many times as many entities are written in a year.
    pub growth: f64,
    /// How many times busier the busiest time is than the mean.
    pub peak_factor: f64,
    /// For how many seconds an index table may be behind; 0: it may not.
    pub stale_s: f64,
    /// Whether what is written together must be there together.
    pub is_atomic: bool,
}

impl Default for Answers {
    fn default() -> Self {
        Answers { growth: 1.0, peak_factor: 5.0, stale_s: 60.0, is_atomic: true }
    }
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The key in the file.
    pub key: &'static str,
    /// In words.
    pub text: &'static str,
}

/// All questions, in their order.
pub const QUESTIONS: [Question; 4] = [
    Question {
        key: "growth",
        text: "scale: how many times as many entities will be written a day in a year?",
    },
    Question { key: "peak_factor", text: "scale: how many times busier is the busiest time than the mean?" },
    Question {
        key: "stale_s",
        text: "query: for how many seconds may an index table be behind? 0: it may not",
    },
    Question {
        key: "is_atomic",
        text: "availability: must what is written together be there together, or not at all? true or false",
    },
];

impl Answers {
    /// Reads a file; what is not in it has its default.
    pub fn parse(text: &str) -> Result<Answers, SettingsFileError> {
        let parsed = parse(text)?;
        let keys = QUESTIONS.map(|question| question.key);
        let file = Section::new(text, "the answers", parsed.get_ref(), &keys)?;
        let usual = Answers::default();
        Ok(Answers {
            growth: file.number("growth", 0.01..=1e6)?.unwrap_or(usual.growth),
            peak_factor: file.number("peak_factor", 1.0..=1e6)?.unwrap_or(usual.peak_factor),
            stale_s: file.number("stale_s", 0.0..=1e9)?.unwrap_or(usual.stale_s),
            is_atomic: file.flag("is_atomic")?.unwrap_or(usual.is_atomic),
        })
    }

    /// Takes the answer to a question, as it was typed; an empty one keeps what is there.
    pub fn take(&mut self, question: &Question, typed: &str) -> Result<(), SettingsFileError> {
        if typed.trim().is_empty() {
            return Ok(());
        }
        let mut text = self.to_toml();
        let line = format!("{} = ", question.key);
        let kept: Vec<&str> = text.lines().filter(|one| !one.starts_with(&line)).collect();
        text = format!("{line}{}\n{}\n", typed.trim(), kept.join("\n"));
        *self = Answers::parse(&text)?;
        Ok(())
    }

    /// The present answer to a question.
    pub fn text(&self, question: &Question) -> String {
        match question.key {
            "growth" => format!("{:?}", self.growth),
            "peak_factor" => format!("{:?}", self.peak_factor),
            "stale_s" => format!("{:?}", self.stale_s),
            _ => self.is_atomic.to_string(),
        }
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        for question in &QUESTIONS {
            // Text takes everything.
            let _ = writeln!(out, "# {}\n{} = {}", question.text, question.key, self.text(question));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back() {
        let mut answers = Answers { growth: 2.5, peak_factor: 10.0, stale_s: 0.0, is_atomic: false };
        assert_eq!(Answers::parse(&answers.to_toml()), Ok(answers));
        assert_eq!(Answers::parse(""), Ok(Answers::default()));
        answers.take(&QUESTIONS[1], " 3 ").expect("a number");
        answers.take(&QUESTIONS[0], "").expect("nothing");
        assert_eq!((answers.peak_factor, answers.growth), (3.0, 2.5));
        let error = answers.take(&QUESTIONS[1], "many").expect_err("no number").to_string();
        assert!(error.starts_with("line 1"), "{error}");
        assert!(Answers::parse("groth = 1").is_err());
    }
}
