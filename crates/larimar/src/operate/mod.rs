//! `larimar admin`: asks the admin side of a server that runs, and prints what it answers.
//!
//! What always holds: a token goes to the server that was named and nowhere else, and is printed by `token`
//! only; what a server answers is printed with its control characters escaped.

mod connection;
mod heat_words;
mod request;
pub(crate) mod words;

use crate::Failure;
use crate::admin::{Role, TOKEN_FILE_NAME, TOKEN_FILE_SIZE_BYTES_MAX, Tokens};
use crate::arguments::admin_arguments::{
    AdminArguments, AdminCommand, AdminConnectionArguments, TokenCommand,
};
use crate::bounded_file::read_text_bounded;
use connection::{ConnectionError, send};
use request::request_of;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code for what the server refuses.
const EXIT_REFUSED: u8 = 3;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}: {error}; name the file with --token-file, or the data folder with --data (a server in memory prints where its \
     file is)",
    path.display()
)]
struct TokenFileError {
    path: PathBuf,
    error: String,
}

/// Does what was asked for.
pub(crate) fn operate(arguments: &AdminArguments) -> Result<ExitCode, Failure> {
    if let AdminCommand::Token(TokenCommand::Show { role }) = arguments.command {
        print(&format!("{}\n", token_of(&arguments.connection, Some(role))?));
        return Ok(ExitCode::SUCCESS);
    }
    let token = token_of(&arguments.connection, None)?;
    let request = request_of(&arguments.command);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::of_work(&error))?;
    let (status, answer) = runtime
        .block_on(send(&arguments.connection, &token, &request))
        .map_err(|error: ConnectionError| Failure::of_work(&error))?;
    if status >= 400 {
        let what = answer["error"]["message"].as_str().unwrap_or("it says no more");
        return Err(Failure {
            line: format!("the server refuses ({status}): {what}"),
            exit_code: EXIT_REFUSED,
        });
    }
    let chosen = words::chosen(&arguments.command, answer);
    print(&match arguments.json {
        true => format!("{chosen:#}\n"),
        false if matches!(arguments.command, AdminCommand::Heat(_)) => heat_words::heat_text(&chosen),
        false => words::text(&arguments.command, &chosen),
    });
    Ok(ExitCode::SUCCESS)
}

/// A token from the file: that of a role, or the one that opens most.
fn token_of(connection: &AdminConnectionArguments, role: Option<Role>) -> Result<String, Failure> {
    let path = connection.token_file.clone().unwrap_or_else(|| connection.data.join(TOKEN_FILE_NAME));
    let found = read_text_bounded(&path, TOKEN_FILE_SIZE_BYTES_MAX).map_err(|error| error.to_string());
    let found = found.and_then(|text| Tokens::parse(&text)).and_then(|tokens| {
        let token = tokens.token(role).map(str::to_owned);
        token.ok_or_else(|| "it has no token of this role".to_owned())
    });
    found.map_err(|error| Failure::of_settings(&TokenFileError { path, error }))
}

/// A reader that has had enough is no failure.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// A text of an answer; what is none is empty.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.chars().flat_map(escape).collect(),
        other => other.to_string(),
    }
}

/// Whatever would move a terminal's cursor is shown as an escape.
fn escape(char: char) -> Box<dyn Iterator<Item = char>> {
    if char.is_control() { Box::new(char.escape_default()) } else { Box::new(std::iter::once(char)) }
}
