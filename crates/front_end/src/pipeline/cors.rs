//! Cross-origin requests: which pages of other origins may call the service.
//!
//! Rules are tried in order by origin and then method; the first that fits both is the only one that counts.
//! The rules of an account are kept for a while, so that a read does not pay for a second read; a change made
//! here is seen at once. What always holds: requests without `Origin` are served the same, apart from `Vary`
//! and from what reads of blobs and queues say of a rule for all origins.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::reply::Reply;
use arc_swap::ArcSwap;
use base::Ticks;
use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, VARY,
};
use service::CorsRule;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Rules of one service at most.
const RULES_MAX: usize = 5;
/// Bytes of all rules' text at most.
const RULES_SIZE_BYTES_MAX: usize = 2048;
/// Origins of one rule at most.
const ORIGINS_MAX: usize = 64;
/// Characters of an origin or header name at most.
const NAME_LENGTH_MAX: usize = 256;
/// Whole header names of one list at most.
const HEADERS_MAX: usize = 64;
/// Header prefixes (`abc*`) of one list at most.
const HEADER_PREFIXES_MAX: usize = 2;
const METHODS: [&str; 10] =
    ["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH", "CONNECT", "TRACE"];

/// How long rules are kept. The protocol allows a change 30 seconds to take effect.
const RULES_KEPT_FOR: Duration = Duration::from_secs(30);

fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// What is wrong with rules, as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadRules {
    /// With what one of them says.
    Value(&'static str),
    /// With all of them together.
    Together(&'static str),
}

/// Checks the limits of rules.
pub(crate) fn check_rules(rules: &[CorsRule]) -> Result<(), BadRules> {
    let mut size = 0;
    for rule in rules {
        if items(&rule.allowed_origins).next().is_none() || items(&rule.allowed_methods).next().is_none() {
            return Err(BadRules::Value("A CORS rule needs at least one origin and one method."));
        }
        if !items(&rule.allowed_methods).all(|method| METHODS.contains(&method)) {
            return Err(BadRules::Value("A CORS rule names an unknown method."));
        }
        let lists = [&rule.allowed_origins, &rule.allowed_headers, &rule.exposed_headers];
        if lists.iter().flat_map(|list| items(list)).any(|item| item.len() > NAME_LENGTH_MAX) {
            return Err(BadRules::Value("An origin or header of a CORS rule is too long."));
        }
        if items(&rule.allowed_origins).count() > ORIGINS_MAX {
            return Err(BadRules::Value("A CORS rule has too many origins."));
        }
        for list in [&rule.allowed_headers, &rule.exposed_headers] {
            let prefixes = items(list).filter(|header| header.ends_with('*')).count();
            if prefixes > HEADER_PREFIXES_MAX || items(list).count() - prefixes > HEADERS_MAX {
                return Err(BadRules::Value("A CORS rule has too many headers."));
            }
        }
        size += rule.allowed_methods.len() + lists.iter().map(|list| list.len()).sum::<usize>();
    }
    if rules.len() > RULES_MAX {
        return Err(BadRules::Together("There are too many CORS rules."));
    }
    if size > RULES_SIZE_BYTES_MAX {
        return Err(BadRules::Together("The CORS rules are too long."));
    }
    Ok(())
}

/// Whether `allowed` is that origin, any origin (`*`), or has it with a `*` for the first labels of its host.
fn fits_origin(allowed: &str, origin: &str) -> bool {
    match allowed.split_once('*') {
        None => allowed == origin,
        Some(("", "")) => true,
        Some((start, end)) => {
            let middle = origin.len().checked_sub(start.len() + end.len());
            middle.is_some_and(|length| length > 0)
                && origin.get(..start.len()).is_some_and(|part| part.eq_ignore_ascii_case(start))
                && origin.get(origin.len() - end.len()..).is_some_and(|part| part.eq_ignore_ascii_case(end))
                && !origin[start.len()..origin.len() - end.len()].contains('/')
        }
    }
}

/// The first rule that lets any origin use the method.
fn find_open_rule<'a>(rules: &'a [CorsRule], method: &str) -> Option<&'a CorsRule> {
    rules.iter().find(|rule| {
        items(&rule.allowed_origins).any(|allowed| allowed == "*")
            && items(&rule.allowed_methods).any(|allowed| allowed == method)
    })
}

/// The first rule that fits origin and method.
fn find_rule<'a>(rules: &'a [CorsRule], origin: &str, method: &str) -> Option<&'a CorsRule> {
    rules.iter().find(|rule| {
        items(&rule.allowed_origins).any(|allowed| fits_origin(allowed, origin))
            && items(&rule.allowed_methods).any(|allowed| allowed == method)
    })
}

fn allows_header(rule: &CorsRule, header: &str) -> bool {
    items(&rule.allowed_headers).any(|allowed| match allowed.strip_suffix('*') {
        Some(prefix) => header.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
        None => allowed.eq_ignore_ascii_case(header),
    })
}

fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn allowed_origin(rule: &CorsRule, origin: &str) -> Vec<u8> {
    let by_name = items(&rule.allowed_origins).any(|allowed| allowed != "*" && fits_origin(allowed, origin));
    if by_name { origin.as_bytes().to_vec() } else { b"*".to_vec() }
}

/// The answer to a preflight.
pub(crate) fn preflight(rules: &[CorsRule], headers: &HeaderMap) -> Result<Reply, ApiError> {
    let required = |name: HeaderName| {
        header_text(headers, name.clone()).ok_or_else(|| {
            let value = headers.get(&name).map_or(&b""[..], |value| value.as_bytes());
            ApiError::invalid_header(name.as_str(), value).saying("A required CORS header is not present.")
        })
    };
    let origin = required(ORIGIN)?;
    let method = required(ACCESS_CONTROL_REQUEST_METHOD)?;
    let requested = header_text(headers, ACCESS_CONTROL_REQUEST_HEADERS).unwrap_or_default();
    let rule = find_rule(rules, origin, method)
        .filter(|rule| items(requested).all(|header| allows_header(rule, header)))
        .ok_or_else(|| ApiError::new(ErrorCode::CorsPreflightFailure))?;
    let mut reply = Reply::new(StatusCode::OK);
    reply.header_bytes(ACCESS_CONTROL_ALLOW_ORIGIN, allowed_origin(rule, origin));
    reply.header_bytes(ACCESS_CONTROL_ALLOW_METHODS, method.as_bytes().to_vec());
    if !requested.is_empty() {
        reply.header_bytes(ACCESS_CONTROL_ALLOW_HEADERS, requested.as_bytes().to_vec());
    }
    reply.header(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(rule.max_age_seconds));
    reply.header(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    Ok(reply)
}

/// Adds what a page of another origin needs to an answer. `unasked`: also to one that names no origin, as far
/// as any may use what the request reads (recorded of blobs and queues).
pub(crate) fn add_headers(
    rules: &[CorsRule],
    method: &str,
    request: &HeaderMap,
    response: &mut HeaderMap,
    unasked: bool,
) {
    if rules.is_empty() {
        return;
    }
    let origin = header_text(request, ORIGIN);
    let found = match origin {
        Some(origin) => find_rule(rules, origin, method).map(|rule| (rule, origin)),
        None if unasked && matches!(method, "GET" | "HEAD") => {
            find_open_rule(rules, method).map(|rule| (rule, "*"))
        }
        None => None,
    };
    let any_origin = match found {
        Some((rule, origin)) => allowed_origin(rule, origin) == b"*",
        None => rules.iter().any(|rule| items(&rule.allowed_origins).any(|origin| origin == "*")),
    };
    // What no cache keeps can't be taken for the answer to another origin.
    let is_kept = response.get(CACHE_CONTROL).is_none_or(|control| control != "no-cache");
    if !any_origin && matches!(method, "GET" | "HEAD") && (origin.is_some() || is_kept) {
        response.append(VARY, HeaderValue::from_static("Origin"));
    }
    let Some((rule, origin)) = found else {
        return;
    };
    let allowed = allowed_origin(rule, origin);
    if allowed != b"*" {
        response.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
    }
    if let Ok(allowed) = HeaderValue::from_bytes(&allowed) {
        response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    }
    if let Ok(exposed) = HeaderValue::from_str(&exposed(rule, response))
        && !exposed.is_empty()
    {
        response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// The exposed headers by name: a prefix stands for those of the answer that start with it.
fn exposed(rule: &CorsRule, response: &HeaderMap) -> String {
    let mut names: Vec<&str> = Vec::new();
    for item in items(&rule.exposed_headers) {
        match item.strip_suffix('*') {
            None => names.push(item),
            Some(prefix) => {
                let prefix = prefix.to_ascii_lowercase();
                names
                    .extend(response.keys().map(HeaderName::as_str).filter(|name| name.starts_with(&prefix)));
            }
        }
    }
    names.join(",")
}

/// Rules as read, and when. Their age is by the wall clock, which every request has read anyway.
#[derive(Clone)]
struct Kept {
    read_at: Ticks,
    rules: Option<Arc<[CorsRule]>>,
}

/// The rules of each account that was used lately. At most one entry for each account served.
#[derive(Default)]
pub(crate) struct CorsRules {
    by_account: ArcSwap<BTreeMap<String, Kept>>,
}

impl CorsRules {
    /// The account's rules as read lately: `None` if they have to be read again, `Some(None)` if it has none.
    pub(super) fn kept(&self, account: &str, now: Ticks) -> Option<Option<Arc<[CorsRule]>>> {
        let by_account = self.by_account.load();
        let kept = by_account.get(account)?;
        (kept.read_at..kept.read_at.plus(RULES_KEPT_FOR)).contains(&now).then(|| kept.rules.clone())
    }

    /// Keeps the rules that were read, and returns them if there are any.
    pub(super) fn keep(&self, account: &str, rules: Vec<CorsRule>, now: Ticks) -> Option<Arc<[CorsRule]>> {
        let rules: Option<Arc<[CorsRule]>> = if rules.is_empty() { None } else { Some(rules.into()) };
        let kept = Kept { read_at: now, rules: rules.clone() };
        self.change(|by_account| drop(by_account.insert(account.to_owned(), kept.clone())));
        rules
    }

    /// Forgets an account's rules, because they have changed.
    pub(crate) fn forget(&self, account: &str) {
        self.change(|by_account| drop(by_account.remove(account)));
    }

    fn change(&self, change: impl Fn(&mut BTreeMap<String, Kept>)) {
        self.by_account.rcu(|by_account| {
            let mut next = BTreeMap::clone(by_account);
            change(&mut next);
            next
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &str, methods: &str, headers: &str, exposed: &str) -> CorsRule {
        CorsRule {
            allowed_origins: origins.into(),
            allowed_methods: methods.into(),
            allowed_headers: headers.into(),
            exposed_headers: exposed.into(),
            max_age_seconds: 60,
        }
    }

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn preflights() {
        let rules =
            [rule("http://a, http://b", "GET,PUT", "x-ms-meta-*,accept", ""), rule("*", "GET", "*", "")];
        let ask = |origin: &'static str, method: &'static str, requested: &'static str| {
            let headers = headers(&[
                (ORIGIN, origin),
                (ACCESS_CONTROL_REQUEST_METHOD, method),
                (ACCESS_CONTROL_REQUEST_HEADERS, requested),
            ]);
            preflight(&rules, &headers).map_err(|error| error.code)
        };
        let reply = ask("http://b", "PUT", "Accept, X-MS-Meta-Foo").expect("allowed");
        let find = |name: HeaderName| {
            reply.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
        };
        assert_eq!(find(ACCESS_CONTROL_ALLOW_ORIGIN), Some(HeaderValue::from_static("http://b")));
        assert_eq!(find(ACCESS_CONTROL_MAX_AGE), Some(HeaderValue::from_static("60")));
        // The first rule that fits is the only one tried.
        assert_eq!(ask("http://a", "GET", "other").err(), Some(ErrorCode::CorsPreflightFailure));
        assert!(ask("http://c", "GET", "other").is_ok());
        assert_eq!(ask("http://c", "PUT", "").err(), Some(ErrorCode::CorsPreflightFailure));
        let error = preflight(&rules, &headers(&[(ORIGIN, "http://a")])).expect_err("no method");
        assert_eq!(error.code, ErrorCode::InvalidHeaderValue);
    }

    #[test]
    fn actual_requests() {
        let rules = [rule("http://a", "GET", "", "x-ms-request-id,x-ms-continuation-*")];
        let mut response = headers(&[(HeaderName::from_static("x-ms-continuation-nextrowkey"), "x")]);
        add_headers(&rules, "GET", &headers(&[(ORIGIN, "http://a")]), &mut response, false);
        assert_eq!(response.get(ACCESS_CONTROL_ALLOW_ORIGIN), Some(&HeaderValue::from_static("http://a")));
        assert_eq!(
            response.get(ACCESS_CONTROL_EXPOSE_HEADERS),
            Some(&HeaderValue::from_static("x-ms-request-id,x-ms-continuation-nextrowkey"))
        );
        let mut response = HeaderMap::new();
        add_headers(&rules, "GET", &HeaderMap::new(), &mut response, false);
        assert_eq!(response.get(VARY), Some(&HeaderValue::from_static("Origin")));
        assert_eq!(response.len(), 1);
        let mut response = HeaderMap::new();
        add_headers(&rules, "PUT", &headers(&[(ORIGIN, "http://a")]), &mut response, false);
        assert!(response.is_empty());
    }

    /// A read is answered as if any origin had sent it; nothing else is.
    #[test]
    fn reads_without_origin() {
        let rules = [rule("http://a", "GET,PUT", "", ""), rule("http://b, *", "GET,PUT", "", "x-ms-*")];
        let answered = |rules: &[CorsRule], method: &str| {
            let mut response = headers(&[(HeaderName::from_static("x-ms-request-id"), "1")]);
            add_headers(rules, method, &HeaderMap::new(), &mut response, true);
            let find = |name| {
                response.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
            };
            (
                find(ACCESS_CONTROL_ALLOW_ORIGIN),
                find(ACCESS_CONTROL_EXPOSE_HEADERS),
                response.contains_key(VARY),
            )
        };
        let nothing = |varies| (String::new(), String::new(), varies);
        assert_eq!(answered(&rules, "GET"), ("*".to_owned(), "x-ms-request-id".to_owned(), false));
        assert_eq!(answered(&rules, "PUT"), nothing(false));
        assert_eq!(answered(&rules, "HEAD"), nothing(false));
        assert_eq!(answered(&rules[..1], "GET"), nothing(true));
    }

    #[test]
    fn origins_with_any_first_labels() {
        let fits = |origin| fits_origin("*.contoso.com", origin);
        assert!(fits("foo.contoso.com") && fits("a.b.contoso.com") && fits("foo.CONTOSO.com"));
        assert!(!fits("contoso.com") && !fits(".contoso.com") && !fits("foo.notcontoso.com"));
        let fits = |origin| fits_origin("https://*.contoso.com", origin);
        assert!(fits("https://foo.contoso.com") && !fits("http://foo.contoso.com"));
        assert!(!fits("https://evil.org/.contoso.com") && !fits("https://.contoso.com") && !fits("ä"));
        assert!(fits_origin("http://a", "http://a") && !fits_origin("http://a", "http://A"));
        let rules = [rule("https://*.contoso.com", "GET", "", "")];
        assert_eq!(allowed_origin(&rules[0], "https://foo.contoso.com"), b"https://foo.contoso.com");
        assert!(find_rule(&rules, "https://contoso.com", "GET").is_none());
    }

    /// The reference's table of `Vary`, but for answers that no cache keeps.
    #[test]
    fn vary_names_the_origin() {
        let exact = [rule("http://a", "GET", "", "")];
        let any = [rule("*", "GET", "", "")];
        let both = [exact[0].clone(), any[0].clone()];
        let varies = |rules: &[CorsRule], origin: Option<&'static str>, control: &'static str| {
            let request = origin.map(|origin| headers(&[(ORIGIN, origin)])).unwrap_or_default();
            let mut response = headers(&[(CACHE_CONTROL, control)]);
            add_headers(rules, "GET", &request, &mut response, false);
            response.contains_key(VARY)
        };
        assert!(!varies(&[], Some("http://a"), ""));
        assert!(varies(&exact, Some("http://a"), "") && varies(&exact, Some("http://b"), ""));
        assert!(!varies(&any, Some("http://a"), "") && !varies(&any, None, ""));
        // The first rule that fits counts, whatever comes after it.
        assert!(varies(&both, Some("http://a"), ""));
        assert!(!varies(&both, Some("http://b"), ""));
        assert!(varies(&exact, None, "") && !varies(&exact, None, "no-cache"));
        assert!(varies(&exact, Some("http://a"), "no-cache"));
    }

    #[test]
    fn limits_of_rules() {
        assert!(check_rules(&[rule("*", "GET", "*", "*")]).is_ok());
        let together = |rules: &[CorsRule]| matches!(check_rules(rules), Err(BadRules::Together(_)));
        assert!(together(&vec![rule("*", "GET", "", ""); 6]));
        assert!(together(&[rule("*", "GET", &format!("{},", "x".repeat(250)).repeat(9), "")]));
        for bad in [
            rule("", "GET", "", ""),
            rule("*", "", "", ""),
            rule("*", "FETCH", "", ""),
            rule("*", "GET", "a*,b*,c*", ""),
            rule(&"x".repeat(300), "GET", "", ""),
            rule(&"x,".repeat(65), "GET", "", ""),
        ] {
            assert!(matches!(check_rules(std::slice::from_ref(&bad)), Err(BadRules::Value(_))), "{bad:?}");
        }
    }
}
