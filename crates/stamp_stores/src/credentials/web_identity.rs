//! Credentials of a role, for a token that a platform keeps in a file, from the security token service
//! (`AssumeRoleWithWebIdentity`).

use crate::credentials::search::{FetchError, Search};
use crate::credentials::{Credentials, Found};
use crate::s3::answers::error_code;
use crate::s3::signature::encode_query;
use crate::secret::Secret;
use base::date_time::parse_date_time;
use bytes::Bytes;
use http_client::xml::{self, Element};
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderValue};

const TOKEN_FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
const ROLE: &str = "AWS_ROLE_ARN";
const SESSION: &str = "AWS_ROLE_SESSION_NAME";
const SESSION_NAME: &str = "larimar";

/// Those of the role that the variables name; none if they name none.
pub(crate) async fn from_web_identity(search: &Search) -> Result<Option<Found>, String> {
    let surroundings = &search.surroundings;
    let (file, role) = match (surroundings.variable(TOKEN_FILE), surroundings.variable(ROLE)) {
        (Some(file), Some(role)) => (file, role),
        (None, _) => return Ok(None),
        (Some(_), None) => return Err(format!("{TOKEN_FILE} is set, and {ROLE} is not")),
    };
    let token =
        surroundings.read_file(file).await.map_err(|error| format!("the token file {file}: {error}"))?;
    let token = std::str::from_utf8(&token).map_err(|_| format!("the token file {file} is no UTF-8"))?.trim();
    let form = encode_query(&[
        ("Action", "AssumeRoleWithWebIdentity"),
        ("Version", "2011-06-15"),
        ("RoleArn", role),
        ("RoleSessionName", surroundings.variable(SESSION).unwrap_or(SESSION_NAME)),
        ("WebIdentityToken", token),
    ]);
    let url = surroundings.variable("AWS_ENDPOINT_URL_STS").map_or_else(
        || format!("https://sts.{}.amazonaws.com", search.region),
        |url| url.trim_end_matches('/').to_owned(),
    );
    let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let headers = vec![(CONTENT_TYPE, content_type)];
    let fetched = search.fetch(&search.dialer, &url, Method::POST, headers, Bytes::from(form)).await;
    let body = fetched.map_err(|error| {
        let code = match &error {
            FetchError::Status(_, body) => code_of(body),
            FetchError::Broken(_) => String::new(),
        };
        format!("the token service {url} gives no credentials for {role}: {} {code}", error.shown())
    })?;
    read_answer(&body).map(Some).map_err(|why| format!("the token service {url} can't be read: {why}"))
}

/// The code of an error, which may be inside an answer.
fn code_of(body: &[u8]) -> String {
    let own = error_code(body);
    let Ok(root) = xml::parse(body) else { return own };
    let inner = root.child("Error").map_or("", |error| error.text_of("Code"));
    if inner.chars().all(|letter| letter.is_ascii_alphanumeric()) && inner.len() < 64 && own.is_empty() {
        inner.to_owned()
    } else {
        own
    }
}

fn read_answer(body: &[u8]) -> Result<Found, String> {
    let root = xml::parse(body).map_err(|_| "it is no XML".to_owned())?;
    let result = root.child("AssumeRoleWithWebIdentityResult").ok_or("it has no result")?;
    let given = result.child("Credentials").ok_or("it has no credentials")?;
    let text = |name: &str| non_empty(given, name).ok_or(format!("its {name} is missing"));
    let ends_at =
        parse_date_time(&text("Expiration")?).map_err(|_| "its Expiration is no instant".to_owned())?;
    let credentials = Credentials {
        key_id: Secret::new(text("AccessKeyId")?),
        secret: Secret::new(text("SecretAccessKey")?),
        session_token: Some(Secret::new(text("SessionToken")?)),
    };
    Ok(Found { credentials, ends_at: Some(ends_at) })
}

fn non_empty(element: &Element, name: &str) -> Option<String> {
    Some(element.text_of(name).trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let body = "<AssumeRoleWithWebIdentityResponse xmlns='x'><AssumeRoleWithWebIdentityResult><Credentials>\
                    <AccessKeyId>A</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>\
                    <Expiration>2026-11-28T12:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>\
                    </AssumeRoleWithWebIdentityResponse>";
        let found = read_answer(body.as_bytes()).expect("credentials");
        assert_eq!(found.credentials.session_token, Some(Secret::new("t")));
        assert!(found.ends_at.is_some());
        for wrong in
            [body.replace("<SessionToken>t", "<SessionToken>"), body.replace("2026", "x"), String::new()]
        {
            assert!(read_answer(wrong.as_bytes()).is_err());
        }
        let error = b"<ErrorResponse><Error><Code>InvalidIdentityToken</Code></Error></ErrorResponse>";
        assert_eq!(code_of(error), "InvalidIdentityToken");
    }
}
