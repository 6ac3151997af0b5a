//! Credentials as containers and machines get them: `{"AccessKeyId":…,"SecretAccessKey":…,"Token":…,
//! "Expiration":…}`.

use crate::credentials::{Credentials, Found};
use crate::secret::Secret;
use base::date_time::parse_date_time;

#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Document {
    access_key_id: String,
    secret_access_key: String,
    token: Option<String>,
    expiration: Option<String>,
}

/// Reads a document; an error says what is wrong, and shows nothing of it.
pub(crate) fn read_document(body: &[u8]) -> Result<Found, String> {
    // The error's own text would show a part of it.
    let document: Document =
        serde_json::from_slice(body).map_err(|_| "it is no document of credentials".to_owned())?;
    let ends_at = document.expiration.as_deref().map(parse_date_time).transpose();
    let credentials = Credentials {
        key_id: Secret::new(document.access_key_id),
        secret: Secret::new(document.secret_access_key),
        session_token: document.token.filter(|token| !token.is_empty()).map(Secret::new),
    };
    Ok(Found { credentials, ends_at: ends_at.map_err(|_| "its Expiration is no instant".to_owned())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_or_refused_without_being_shown() {
        let text = r#"{"Code":"Success","AccessKeyId":"A","SecretAccessKey":"s","Token":"t","Expiration":"2026-11-28T12:00:00Z"}"#;
        let found = read_document(text.as_bytes()).expect("credentials");
        assert_eq!(found.credentials.secret, Secret::new("s"));
        assert_eq!(found.ends_at, parse_date_time("2026-11-28T12:00:00Z").ok());
        let plain = read_document(br#"{"AccessKeyId":"A","SecretAccessKey":"s"}"#).expect("credentials");
        assert_eq!((plain.ends_at, plain.credentials.session_token), (None, None));
        for text in [
            "",
            "{}",
            r#"{"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"soon"}"#,
            "[\"hunter2\"",
        ] {
            let error = read_document(text.as_bytes()).expect_err(text);
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
