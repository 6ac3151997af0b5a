//! Which answer a request to the admin side gets: a pure choice.

use super::tokens::Role;
use std::borrow::Cow;
use std::net::IpAddr;

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Whether the process lives.
    Health,
    /// Whether it serves.
    Ready,
    /// Which version it is.
    Version,
    /// Its metrics.
    Metrics,
    /// What `/api/v1` is like.
    OpenApi,
    /// How the server is.
    Status,
    /// All ranges.
    Ranges,
    /// The ranges that are asked for most.
    Loads,
    /// The keys that are asked for most, and when.
    Heat,
    /// The slow requests of late.
    Slow,
    /// What is logged.
    LogLevel,
    /// Log something else.
    SetLogLevel,
    /// Bring memory tables to checkpoints.
    Flush,
    /// Compact checkpoints.
    Compact,
    /// Split a range.
    Split,
    /// Have balancers look elsewhere, or here again.
    SetDrain,
    /// What is simulated.
    Simulate,
    /// Simulate another profile.
    SetSimulate,
    /// All settings.
    Settings,
    /// Read the file of settings again.
    ReloadSettings,
    /// Make another token.
    RotateToken,
}

impl Route {
    /// Whether its answer may wait for a disk.
    pub(super) fn may_wait_for_disk(self) -> bool {
        matches!(self, Route::Status | Route::Ranges | Route::Loads | Route::Heat | Route::RotateToken)
    }
}

/// A verb at a path.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) route: Route,
    /// What a token has to open; `None`: none is needed from this machine.
    pub(super) role: Option<Role>,
}

const fn endpoint(method: &'static str, path: &'static str, route: Route, role: Option<Role>) -> Endpoint {
    Endpoint { method, path, route, role }
}

const READ: Option<Role> = Some(Role::Read);
const OPERATE: Option<Role> = Some(Role::Operate);
const ADMIN: Option<Role> = Some(Role::Admin);

/// Everything that is answered. `GET` stands for `HEAD`, too.
pub(super) static ENDPOINTS: [Endpoint; 21] = [
    endpoint("GET", "/health", Route::Health, None),
    endpoint("GET", "/ready", Route::Ready, None),
    endpoint("GET", "/version", Route::Version, None),
    endpoint("GET", "/metrics", Route::Metrics, None),
    endpoint("GET", "/api/v1/openapi.json", Route::OpenApi, READ),
    endpoint("GET", "/api/v1/status", Route::Status, READ),
    endpoint("GET", "/api/v1/ranges", Route::Ranges, READ),
    endpoint("GET", "/api/v1/loads", Route::Loads, READ),
    endpoint("GET", "/api/v1/heat", Route::Heat, READ),
    endpoint("GET", "/api/v1/slow", Route::Slow, READ),
    endpoint("GET", "/api/v1/log-level", Route::LogLevel, READ),
    endpoint("PUT", "/api/v1/log-level", Route::SetLogLevel, OPERATE),
    endpoint("POST", "/api/v1/flush", Route::Flush, OPERATE),
    endpoint("POST", "/api/v1/compact", Route::Compact, OPERATE),
    endpoint("POST", "/api/v1/split", Route::Split, OPERATE),
    endpoint("PUT", "/api/v1/drain", Route::SetDrain, OPERATE),
    endpoint("GET", "/api/v1/simulate", Route::Simulate, READ),
    endpoint("PUT", "/api/v1/simulate", Route::SetSimulate, OPERATE),
    endpoint("GET", "/api/v1/settings", Route::Settings, READ),
    endpoint("POST", "/api/v1/settings/reload", Route::ReloadSettings, OPERATE),
    endpoint("POST", "/api/v1/token", Route::RotateToken, ADMIN),
];

/// Why a request is refused before anybody looks at what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nothing is there.
    NoSuchPath,
    /// Something is there for these verbs.
    NoSuchMethod(String),
    /// The request names another host than this machine: a page in a browser may have been led here by its
    /// name.
    OtherHost,
    /// A page of another origin sent it.
    OtherOrigin,
    /// It could not be answered.
    Failed(String),
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Cow<'static, str>,
    /// The verbs that are answered, if the request's is not.
    pub(super) allowed: Option<String>,
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

impl Answer {
    pub(super) fn new(status: u16, content_type: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Answer { status, content_type, body: body.into(), allowed: None }
    }

    pub(super) fn text(status: u16, body: impl Into<Cow<'static, str>>) -> Self {
        Answer::new(status, TEXT, body)
    }

    pub(super) fn json(status: u16, body: &serde_json::Value) -> Self {
        Answer::new(status, JSON, format!("{body}\n"))
    }

    /// A refusal of the API.
    pub(super) fn error(status: u16, code: &str, message: &str) -> Self {
        Answer::json(status, &serde_json::json!({ "error": { "code": code, "message": message } }))
    }
}

/// Where the API begins; its refusals are JSON.
const API_PREFIX: &str = "/api/";

impl Refused {
    /// The answer to a request for this path.
    pub(super) fn answer(self, path: &str) -> Answer {
        let (status, code, message) = match &self {
            Refused::NoSuchPath => {
                (404, "not_found", "there are /health, /ready, /version, /metrics and /api/v1/openapi.json")
            }
            Refused::NoSuchMethod(_) => (405, "method_not_allowed", "another verb is answered here"),
            Refused::OtherHost => (
                403,
                "other_host",
                "ask for an address of this machine, localhost, or a name of --admin-name",
            ),
            Refused::OtherOrigin => (403, "other_origin", "pages of other origins get no answer"),
            Refused::Failed(error) => (500, "failed", error.as_str()),
        };
        let answer = match path.starts_with(API_PREFIX) {
            true => Answer::error(status, code, message),
            false => Answer::text(status, format!("{message}\n")),
        };
        let allowed = if let Refused::NoSuchMethod(allowed) = self { Some(allowed) } else { None };
        Answer { allowed, ..answer }
    }
}

/// The names that this server has for those who ask for it.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnNames {
    /// What it listens on as it was given, if that is beyond this machine.
    pub(super) given: Option<String>,
    /// Those that `--admin-name` allows.
    pub(super) allowed: Vec<String>,
}

/// Where a request is for, and who may have sent it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addressed<'a> {
    /// Its `Host` header.
    pub(super) host: Option<&'a str>,
    /// Whether it has an `Origin`.
    pub(super) crosses: bool,
    /// The address that its connection came to.
    pub(super) local: IpAddr,
}

impl OwnNames {
    /// Whether a request may be for this server, and of no page of another.
    pub(super) fn check(&self, addressed: Addressed<'_>) -> Result<(), Refused> {
        if addressed.crosses {
            return Err(Refused::OtherOrigin);
        }
        let is_ours = |host| self.is_ours(name_of(host), addressed.local);
        if addressed.host.is_some_and(is_ours) { Ok(()) } else { Err(Refused::OtherHost) }
    }

    fn is_ours(&self, name: &str, local: IpAddr) -> bool {
        let address: Option<IpAddr> = name.parse().ok();
        let is_local =
            address.is_some_and(|address| address.is_loopback() || address == local.to_canonical());
        let mut known = self.given.iter().chain(&self.allowed);
        let is_given = known.any(|known| name.eq_ignore_ascii_case(known));
        is_local || is_given || name.eq_ignore_ascii_case("localhost")
    }
}

/// The name in a `Host` header.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

impl Endpoint {
    /// What a request is for.
    pub(super) fn find(method: &str, path: &str) -> Result<&'static Endpoint, Refused> {
        let method = if method == "HEAD" { "GET" } else { method };
        let here = || ENDPOINTS.iter().filter(|endpoint| endpoint.path == path);
        if let Some(found) = here().find(|endpoint| endpoint.method == method) {
            return Ok(found);
        }
        let verbs: Vec<&str> = here()
            .flat_map(|endpoint| match endpoint.method {
                "GET" => &["GET", "HEAD"][..],
                _ => std::slice::from_ref(&endpoint.method),
            })
            .copied()
            .collect();
        if verbs.is_empty() { Err(Refused::NoSuchPath) } else { Err(Refused::NoSuchMethod(verbs.join(", "))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_get() {
        let no_verb = |verbs: &str| Err(Refused::NoSuchMethod(verbs.to_owned()));
        for (method, path, expected) in [
            ("GET", "/health", Ok((Route::Health, None))),
            ("HEAD", "/ready", Ok((Route::Ready, None))),
            ("GET", "/version", Ok((Route::Version, None))),
            ("GET", "/metrics", Ok((Route::Metrics, None))),
            ("GET", "/api/v1/log-level", Ok((Route::LogLevel, READ))),
            ("PUT", "/api/v1/log-level", Ok((Route::SetLogLevel, OPERATE))),
            ("POST", "/api/v1/token", Ok((Route::RotateToken, ADMIN))),
            ("GET", "/metrics/", Err(Refused::NoSuchPath)),
            ("GET", "/", Err(Refused::NoSuchPath)),
            ("POST", "/health", no_verb("GET, HEAD")),
            ("GET", "/api/v1/flush", no_verb("POST")),
            ("DELETE", "/api/v1/log-level", no_verb("GET, HEAD, PUT")),
            ("POST", "/nothing", Err(Refused::NoSuchPath)),
        ] {
            let found = Endpoint::find(method, path).map(|endpoint| (endpoint.route, endpoint.role));
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    /// A page in a browser can reach a local port by a name of its own.
    #[test]
    fn only_names_of_this_server_are_answered() {
        let local = |text: &str| text.parse().expect("an address");
        let loopback = OwnNames::default();
        let beyond = OwnNames { given: Some("admin.example".to_owned()), ..OwnNames::default() };
        let allowed = ["db1".to_owned(), "db1.example".to_owned()].to_vec();
        let named = OwnNames { given: Some("0.0.0.0".to_owned()), allowed };
        for (names, host, crosses, at, expected) in [
            (&loopback, Some("127.0.0.1:10010"), false, "127.0.0.1", Ok(())),
            (&loopback, Some("localhost:10010"), false, "127.0.0.1", Ok(())),
            (&loopback, Some("[::1]:10010"), false, "::1", Ok(())),
            (&loopback, Some("LOCALHOST"), false, "127.0.0.1", Ok(())),
            (&loopback, None, false, "127.0.0.1", Err(Refused::OtherHost)),
            (&loopback, Some("example.org"), false, "127.0.0.1", Err(Refused::OtherHost)),
            (&loopback, Some("127.0.0.1.example.org:10010"), false, "127.0.0.1", Err(Refused::OtherHost)),
            (&loopback, Some("192.168.0.1:10010"), false, "127.0.0.1", Err(Refused::OtherHost)),
            (&loopback, Some("["), false, "127.0.0.1", Err(Refused::OtherHost)),
            (&loopback, Some("127.0.0.1:10010"), true, "127.0.0.1", Err(Refused::OtherOrigin)),
            (&beyond, Some("admin.example:10010"), false, "192.168.0.1", Ok(())),
            (&beyond, Some("192.168.0.1:10010"), false, "192.168.0.1", Ok(())),
            (&beyond, Some("192.168.0.2:10010"), false, "192.168.0.1", Err(Refused::OtherHost)),
            (&beyond, Some("other.example:10010"), false, "192.168.0.1", Err(Refused::OtherHost)),
            (&named, Some("DB1:10010"), false, "192.168.0.1", Ok(())),
            (&named, Some("db1.example"), false, "192.168.0.1", Ok(())),
            (&named, Some("db1.example"), true, "192.168.0.1", Err(Refused::OtherOrigin)),
            (&named, Some("db1.example.org"), false, "192.168.0.1", Err(Refused::OtherHost)),
            (&named, Some("db"), false, "192.168.0.1", Err(Refused::OtherHost)),
        ] {
            let addressed = Addressed { host, crosses, local: local(at) };
            assert_eq!(names.check(addressed), expected, "{host:?} at {at}");
        }
    }
}
