//! Whether a bucket keeps or removes objects by itself, looked at when a stamp starts for the first time.
//!
//! A bucket with versions keeps what a stamp deletes, for ever; one with life-cycle rules removes what a
//! stamp needs. Both are refused. Where the store does not know the question, or the credentials may not
//! ask it, the stamp starts with a warning: the probe has shown that a name is created once, few
//! credentials have rights on the bucket itself, and a refusal would only make people widen them.

use crate::error::OpenError;
use crate::s3::answers::{ERROR_SIZE_BYTES_MAX, error_code, shown};
use crate::s3::bucket::{Bucket, BucketRequest};
use bytes::Bytes;
use http_client::xml::{self, Element};
use hyper::Method;

/// Bytes of a bucket's life-cycle rules, at most: there are up to 1,000.
const RULES_SIZE_BYTES_MAX: usize = 4 << 20;
/// How often a question is asked.
const TRIES_MAX: usize = 3;

/// What a bucket answered to a question about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    status: u16,
    body: Bytes,
}

/// Asks the bucket for its settings. Gives warnings.
pub(crate) async fn check_bucket(bucket: &Bucket) -> Result<Vec<String>, OpenError> {
    let what = bucket.shown();
    let found = bucket.check_credentials().await;
    found.map_err(|why| OpenError::setting(format!("the credentials of {what}"), why))?;
    let mut warnings = Vec::new();
    let versioning = ask(bucket, "versioning").await?;
    let lifecycle = ask(bucket, "lifecycle").await?;
    for (asked, verdict) in
        [(&versioning, versioning_verdict(&versioning)), (&lifecycle, lifecycle_verdict(&lifecycle))]
    {
        match verdict {
            Verdict::Fine => {}
            Verdict::Unfit(why) => return Err(OpenError::unfit(what, why)),
            Verdict::NotKnown(why) => warnings.push(format!("{what}: {why}")),
            Verdict::Unreachable => {
                let why = shown(asked.status, &error_code(&asked.body));
                return Err(OpenError::Unavailable { what, why });
            }
        }
    }
    Ok(warnings)
}

async fn ask(bucket: &Bucket, question: &str) -> Result<Asked, OpenError> {
    let mut last = Err(String::new());
    for _ in 0..TRIES_MAX {
        let query = [(question, "")];
        let body = Bytes::new();
        let request = BucketRequest { method: Method::GET, key: "", query: &query, headers: &[], body };
        last = match bucket.send(request, RULES_SIZE_BYTES_MAX).await {
            Ok(answer) => Ok(Asked { status: answer.status, body: answer.body }),
            Err(lost) => Err(lost.what().to_owned()),
        };
        match &last {
            Ok(asked) if asked.status < 500 || asked.status == 501 => break,
            _ => {}
        }
    }
    last.map_err(|why| OpenError::Unavailable { what: bucket.shown(), why })
}

/// What an answer means for a stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    Unfit(String),
    NotKnown(String),
    Unreachable,
}

/// What follows from a status that is no success, for a question that needs this right.
fn unanswered(asked: &Asked, right: &str) -> Verdict {
    let code = error_code(&asked.body.slice(..asked.body.len().min(ERROR_SIZE_BYTES_MAX)));
    let not_known = |why: String| {
        Verdict::NotKnown(format!("{why}; see to it that it has neither versions nor life-cycle rules"))
    };
    match (asked.status, code.as_str()) {
        (_, "NoSuchBucket") => Verdict::Unfit("it is not there; make the bucket first".to_owned()),
        (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch") | (401, _) => {
            Verdict::Unfit("it refuses the credentials; are they right?".to_owned())
        }
        (403, "AccessDenied" | "") => not_known(format!("the credentials lack the right {right}")),
        (404 | 405 | 501, _) | (_, "NotImplemented" | "MethodNotAllowed") => {
            not_known(format!("the store does not know what {right} asks for"))
        }
        (301 | 307 | 308 | 400 | 403, _) => Verdict::Unfit(shown(asked.status, &code)),
        _ => Verdict::Unreachable,
    }
}

fn versioning_verdict(asked: &Asked) -> Verdict {
    if asked.status != 200 {
        return unanswered(asked, "s3:GetBucketVersioning");
    }
    let Ok(root) = xml::parse(&asked.body) else {
        return Verdict::NotKnown("what it says of versions can't be read".to_owned());
    };
    match root.text_of("Status") {
        "" => Verdict::Fine,
        "Suspended" => {
            let why = "it had versions once, which are suspended, and keeps a marker for each deletion; use a new bucket";
            Verdict::Unfit(why.to_owned())
        }
        _ => Verdict::Unfit(
            "it keeps versions, so nothing that is deleted is ever freed; use a bucket without versions"
                .to_owned(),
        ),
    }
}

fn lifecycle_verdict(asked: &Asked) -> Verdict {
    if asked.status == 404 && error_code(&asked.body) == "NoSuchLifecycleConfiguration" {
        return Verdict::Fine;
    }
    if asked.status != 200 {
        return unanswered(asked, "s3:GetLifecycleConfiguration");
    }
    let Ok(root) = xml::parse(&asked.body) else {
        return Verdict::NotKnown("what it says of life-cycle rules can't be read".to_owned());
    };
    let rules = root.children.iter().filter(|child| child.name == "Rule");
    match rules.filter(|rule| changes_objects(rule)).count() {
        0 => Verdict::Fine,
        count => Verdict::Unfit(format!(
            "{count} of its life-cycle rules would remove or move objects by age; remove them, or use a bucket of its own"
        )),
    }
}

/// Whether a rule does more than to end uploads in parts, which a stamp has none of.
fn changes_objects(rule: &Element) -> bool {
    let harmless = ["ID", "Prefix", "Filter", "Status", "AbortIncompleteMultipartUpload"];
    rule.text_of("Status") != "Disabled"
        && rule.children.iter().any(|child| !harmless.contains(&child.name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(status: u16, body: &str) -> Asked {
        Asked { status, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn error(status: u16, code: &str) -> Asked {
        asked(status, &format!("<Error><Code>{code}</Code></Error>"))
    }

    fn kind(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Fine => "fine",
            Verdict::Unfit(_) => "unfit",
            Verdict::NotKnown(_) => "not known",
            Verdict::Unreachable => "unreachable",
        }
    }

    #[test]
    fn versions() {
        let with = |status: &str| {
            asked(200, &format!("<VersioningConfiguration>{status}</VersioningConfiguration>"))
        };
        for (answer, expected) in [
            (with(""), "fine"),
            (with("<Status>Enabled</Status>"), "unfit"),
            (with("<Status>Suspended</Status>"), "unfit"),
            (asked(200, "?"), "not known"),
            (error(403, "AccessDenied"), "not known"),
            (error(501, "NotImplemented"), "not known"),
            (error(405, "MethodNotAllowed"), "not known"),
            (error(404, "NoSuchBucket"), "unfit"),
            (error(403, "SignatureDoesNotMatch"), "unfit"),
            (error(403, "InvalidAccessKeyId"), "unfit"),
            (error(301, "PermanentRedirect"), "unfit"),
            (error(503, "SlowDown"), "unreachable"),
        ] {
            assert_eq!(kind(&versioning_verdict(&answer)), expected, "{answer:?}");
        }
    }

    #[test]
    fn life_cycle_rules() {
        let with = |rule: &str| {
            asked(
                200,
                &format!("<LifecycleConfiguration><Rule><ID>a</ID>{rule}</Rule></LifecycleConfiguration>"),
            )
        };
        for (answer, expected) in [
            (error(404, "NoSuchLifecycleConfiguration"), "fine"),
            (asked(200, "<LifecycleConfiguration/>"), "fine"),
            (with("<Status>Enabled</Status><Expiration><Days>1</Days></Expiration>"), "unfit"),
            (with("<Status>Disabled</Status><Expiration><Days>1</Days></Expiration>"), "fine"),
            (with("<Status>Enabled</Status><Transition><Days>1</Days></Transition>"), "unfit"),
            (with("<Status>Enabled</Status><AbortIncompleteMultipartUpload/>"), "fine"),
            (with("<Status>Enabled</Status><Filter><Prefix>x</Prefix></Filter><SomethingNew/>"), "unfit"),
            (error(403, "AccessDenied"), "not known"),
            (error(404, "NoSuchBucket"), "unfit"),
            (error(501, "NotImplemented"), "not known"),
        ] {
            assert_eq!(kind(&lifecycle_verdict(&answer)), expected, "{answer:?}");
        }
    }
}
