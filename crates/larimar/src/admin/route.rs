//! Which answer a request to the admin side gets: a pure choice.

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
}

const ROUTES: [(&str, Route); 4] = [
    ("/health", Route::Health),
    ("/ready", Route::Ready),
    ("/version", Route::Version),
    ("/metrics", Route::Metrics),
];

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Nothing is there.
    NoSuchPath,
    /// Only reads are answered.
    NoSuchMethod,
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
    /// Whether it names the verbs that are answered.
    pub(super) allows: bool,
}

impl Answer {
    pub(super) fn text(status: u16, body: impl Into<Cow<'static, str>>) -> Self {
        Answer { status, content_type: "text/plain; charset=utf-8", body: body.into(), allows: false }
    }

    pub(super) fn json(status: u16, body: String) -> Self {
        Answer { status, content_type: "application/json", body: body.into(), allows: false }
    }
}

impl Refused {
    pub(super) fn answer(self) -> Answer {
        match self {
            Refused::NoSuchPath => {
                Answer::text(404, "not found; there are /health, /ready, /version and /metrics\n")
            }
            Refused::NoSuchMethod => {
                Answer { allows: true, ..Answer::text(405, "only GET and HEAD are answered\n") }
            }
            Refused::OtherHost => Answer::text(403, "ask for 127.0.0.1 or localhost, not for another host\n"),
            Refused::OtherOrigin => Answer::text(403, "pages of other origins get no answer\n"),
            Refused::Failed(error) => Answer::text(500, format!("{error}\n")),
        }
    }
}

impl Route {
    /// What a request is for.
    pub(super) fn find(method: &str, path: &str, host: Option<&str>, crosses: bool) -> Result<Self, Refused> {
        if crosses {
            return Err(Refused::OtherOrigin);
        }
        if !host.is_some_and(is_this_machine) {
            return Err(Refused::OtherHost);
        }
        let (_, route) = ROUTES.into_iter().find(|(known, _)| *known == path).ok_or(Refused::NoSuchPath)?;
        if !matches!(method, "GET" | "HEAD") {
            return Err(Refused::NoSuchMethod);
        }
        Ok(route)
    }
}

/// Whether a `Host` header names this machine by a name that no other has.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or("", |(name, _)| name),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_requests_get() {
        let here = Some("127.0.0.1:10010");
        for (method, path, host, crosses, expected) in [
            ("GET", "/health", here, false, Ok(Route::Health)),
            ("HEAD", "/ready", Some("localhost:10010"), false, Ok(Route::Ready)),
            ("GET", "/version", Some("[::1]:10010"), false, Ok(Route::Version)),
            ("GET", "/metrics", Some("LOCALHOST"), false, Ok(Route::Metrics)),
            ("GET", "/metrics/", here, false, Err(Refused::NoSuchPath)),
            ("GET", "/", here, false, Err(Refused::NoSuchPath)),
            ("POST", "/health", here, false, Err(Refused::NoSuchMethod)),
            ("POST", "/nothing", here, false, Err(Refused::NoSuchPath)),
            ("GET", "/health", None, false, Err(Refused::OtherHost)),
            ("GET", "/health", Some("example.org"), false, Err(Refused::OtherHost)),
            ("GET", "/health", Some("127.0.0.1.example.org:10010"), false, Err(Refused::OtherHost)),
            ("GET", "/health", Some("192.168.0.1:10010"), false, Err(Refused::OtherHost)),
            ("GET", "/health", Some("["), false, Err(Refused::OtherHost)),
            ("GET", "/health", here, true, Err(Refused::OtherOrigin)),
        ] {
            assert_eq!(Route::find(method, path, host, crosses), expected, "{method} {path} {host:?}");
        }
    }
}
