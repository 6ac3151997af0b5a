//! The password of a Postgres database: from PGPASSWORD, or from the file of PGPASSFILE, whose lines are
//! `host:port:database:user:password`, with `*` for any and `\` before `:` and `\`.

use super::input::{Lookup, file_text};
use settings_file::FILE_SIZE_BYTES_MAX;
use std::path::Path;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// The configuration of a URL, with the password that belongs to it.
pub(super) fn config_of(url: &str, environment: Lookup<'_>) -> Result<Config, String> {
    // The error may repeat parts of the URL, which has no password.
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| error.to_string())?;
    if let Some(password) = environment("PGPASSWORD").and_then(|text| text.into_string().ok()) {
        config.password(password);
    } else if let Some(path) = environment("PGPASSFILE") {
        let text = file_text(Path::new(&path), FILE_SIZE_BYTES_MAX).map_err(|failure| failure.line)?;
        if let Some(password) = password_in(&text, &wanted(&config)) {
            config.password(password);
        }
    }
    Ok(config)
}

fn wanted(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default().to_owned();
    let database = config.get_dbname().map_or_else(|| user.clone(), str::to_owned);
    [host, port.to_string(), database, user]
}

/// The password of the first line that fits.
fn password_in(text: &str, wanted: &[String; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|fields| {
        let fits = fields.len() == 5
            && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| fields.last().cloned()).flatten()
    })
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(one) = characters.next() {
        match (one, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(characters.next()),
            (other, Some(field)) => field.push(other),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let wanted = ["db1", "5432", "maps", "app"].map(str::to_owned);
        let text = "# db1:5432:maps:app:no\ndb2:*:*:*:no\ndb1:5432:*:app:a\\:b\\\\\n*:*:*:*:late\n";
        assert_eq!(password_in(text, &wanted).as_deref(), Some("a:b\\"));
        assert_eq!(password_in("db1:5432:maps", &wanted), None);
    }
}
