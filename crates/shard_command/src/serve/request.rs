//! What a request is for: a pure choice.
//!
//! What always holds: only reads are answered; a wait has a bound.

use percent_encoding::percent_decode_str;
use std::time::Duration;

/// How long a request may wait for a newer epoch.
pub(crate) const WAIT_FOR_MAX: Duration = Duration::from_secs(60);

/// What is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The catalog, as its document.
    Catalog,
    /// A map, with encoded bounds.
    Map(String),
    /// The route of a key: a text for each column.
    Route(String, Vec<String>),
}

/// A request that is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// What.
    pub(crate) target: Target,
    /// An epoch later than this one, and how long it is waited for.
    pub(crate) after: Option<(u64, Duration)>,
}

/// Why a request is refused: status and words.
pub(crate) type Refused = (u16, String);

/// Reads verb, path and query.
pub(crate) fn wanted(method: &str, path: &str, query: &str) -> Result<Wanted, Refused> {
    let segments: Vec<String> = path.split('/').skip(1).map(decoded).collect::<Result<_, _>>()?;
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let mut keys = Vec::new();
    let (mut after, mut wait) = (None, Duration::ZERO);
    for (name, value) in
        query.split('&').filter(|one| !one.is_empty()).map(|one| one.split_once('=').unwrap_or((one, "")))
    {
        let number = || value.parse::<u64>().map_err(|_| (400, format!("{name} must be a whole number")));
        match name {
            "key" => keys.push(decoded(&value.replace('+', " "))?),
            "after" => after = Some(number()?),
            "wait" => wait = Duration::from_secs(number()?).min(WAIT_FOR_MAX),
            _ => return Err((400, "the query has after, wait and key only".to_owned())),
        }
    }
    let target = match segments.as_slice() {
        ["v1", "catalog"] => Target::Catalog,
        ["v1", "maps", map] => Target::Map((*map).to_owned()),
        ["v1", "maps", map, "route"] => Target::Route((*map).to_owned(), std::mem::take(&mut keys)),
        _ => {
            let what = "not found; there are /v1/catalog, /v1/maps/NAME and /v1/maps/NAME/route?key=KEY";
            return Err((404, what.to_owned()));
        }
    };
    if !matches!(method, "GET" | "HEAD") {
        return Err((405, "only GET and HEAD are answered".to_owned()));
    }
    if !keys.is_empty() {
        return Err((400, "key is for routes only".to_owned()));
    }
    Ok(Wanted { target, after: after.map(|after| (after, wait)) })
}

fn decoded(text: &str) -> Result<String, Refused> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| (400, "the address is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_are_for() {
        let route =
            |keys: &[&str]| Target::Route("m".to_owned(), keys.iter().map(|key| (*key).to_owned()).collect());
        for (method, path, query, expected) in [
            ("GET", "/v1/catalog", "", Ok((Target::Catalog, None))),
            ("HEAD", "/v1/maps/m", "after=7", Ok((Target::Map("m".to_owned()), Some((7, 0))))),
            ("GET", "/v1/maps/m", "after=7&wait=9999", Ok((Target::Map("m".to_owned()), Some((7, 60))))),
            ("GET", "/v1/maps/m/route", "key=a%00b&key=+1%2B", Ok((route(&["a\0b", " 1+"]), None))),
            ("GET", "/v1/maps/m/route", "", Ok((route(&[]), None))),
            ("POST", "/v1/catalog", "", Err(405)),
            ("GET", "/v1/catalog/", "", Err(404)),
            ("GET", "/", "", Err(404)),
            ("GET", "/v1/catalog", "key=1", Err(400)),
            ("GET", "/v1/catalog", "after=x", Err(400)),
            ("GET", "/v1/catalog", "sig=x", Err(400)),
            ("GET", "/v1/maps/%ff", "", Err(400)),
        ] {
            let found = wanted(method, path, query);
            let found = found
                .map(|wanted| (wanted.target, wanted.after.map(|(after, wait)| (after, wait.as_secs()))));
            assert_eq!(found.map_err(|(status, _)| status), expected, "{method} {path}?{query}");
        }
    }
}
