//! Shared access signatures: their fields and their strings-to-sign.
//!
//! ```text
//! account  account sp ss srt st se sip spr sv [ses]       each line ended by a newline; ses from 2020-12-06
//! service  sp st se RESOURCE si [sip spr] sv, then
//!            Table: spk srk epk erk
//!            Blob:  [sr SNAPSHOT] [ses] rscc rscd rsce rscl rsct
//!          joined by newlines; sip and spr from 2015-04-05, sr from 2018-11-09, ses from 2020-12-06
//! RESOURCE /table/ACCOUNT/name-in-lower-case; without the service before 2015-02-21
//! ```
//!
//! Fields are signed decoded; an absent one is an empty line. What the token allows is decided in `grant`.

use super::signature::SignSink;
use crate::request::query_string::QueryParameters;

/// The first version of account signatures, and of `sip` and `spr` in service signatures.
pub(crate) const ACCOUNT_SAS_SINCE: &str = "2015-04-05";
/// The first version of service signatures that name their version.
pub(crate) const SERVICE_SAS_SINCE: &str = "2012-02-12";
const SERVICE_IN_RESOURCE_SINCE: &str = "2015-02-21";
const RESPONSE_HEADERS_SINCE: &str = "2013-08-15";
/// The first version of service signatures that sign what kind of resource they are for.
pub(crate) const RESOURCE_KIND_SINCE: &str = "2018-11-09";
pub(crate) const ENCRYPTION_SCOPE_SINCE: &str = "2020-12-06";

/// Whose service signature it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasService {
    /// A table, perhaps a range of its keys.
    Table,
    /// A queue.
    Queue,
    /// A blob or container.
    Blob,
}

impl SasService {
    /// The service's letter.
    pub fn letter(self) -> &'static str {
        match self {
            SasService::Table => "t",
            SasService::Queue => "q",
            SasService::Blob => "b",
        }
    }

    /// Its name in addresses.
    pub fn label(self) -> &'static str {
        match self {
            SasService::Table => "table",
            SasService::Queue => "queue",
            SasService::Blob => "blob",
        }
    }
}

/// The fields of a token, decoded; absent ones are `None`.
#[derive(Clone, Copy, Debug)]
pub struct SasToken<'a> {
    query: &'a QueryParameters<'a>,
}

impl<'a> SasToken<'a> {
    /// The token in a request's parameters, if there is one.
    pub fn find(query: &'a QueryParameters<'a>) -> Option<Self> {
        query.find("sig").map(|_| SasToken { query })
    }

    /// The token that these parameters are, signed or not.
    pub(crate) fn of_query(query: &'a QueryParameters<'a>) -> Self {
        SasToken { query }
    }

    /// A field by its short name, such as `sv`.
    pub fn field(&self, name: &str) -> Option<&'a str> {
        self.query.find(name)
    }

    /// How often a field is there.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.query.count(name)
    }

    /// The signature as sent. A plus sign that was not escaped has been read as a blank.
    pub fn signature(&self) -> String {
        self.field("sig").unwrap_or_default().replace(' ', "+")
    }

    /// The version that fixes the layout.
    pub fn version(&self) -> &'a str {
        self.field("sv").unwrap_or_default()
    }

    /// Whether it is for the account, and not for one resource.
    pub fn is_account(&self) -> bool {
        self.field("ss").is_some() || self.field("srt").is_some()
    }

    /// Whether it is signed with a user delegation key.
    pub fn is_delegated(&self) -> bool {
        !self.is_account() && self.field("skoid").is_some()
    }

    /// Whether `rscc`, `rscd`, `rsce`, `rscl` and `rsct` are signed if it is for a blob.
    pub(crate) fn signs_response_headers(&self) -> bool {
        !self.is_account() && self.version() >= RESPONSE_HEADERS_SINCE
    }

    fn line(&self, sink: &mut impl SignSink, name: &str) {
        sink.put(self.field(name).unwrap_or_default().as_bytes());
        sink.put(b"\n");
    }

    /// Writes the string that an account signature signs.
    pub fn write_account_string(&self, account: &str, sink: &mut impl SignSink) {
        sink.put(account.as_bytes());
        sink.put(b"\n");
        for name in ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"] {
            self.line(sink, name);
        }
        if self.version() >= ENCRYPTION_SCOPE_SINCE {
            self.line(sink, "ses");
        }
    }

    /// Writes the string that a service signature signs. `resource` is the name below the account, decoded,
    /// without leading slash; `snapshot` is the snapshot or version that a blob request names.
    pub fn write_service_string(
        &self,
        service: SasService,
        account: &str,
        resource: &str,
        snapshot: &str,
        sink: &mut impl SignSink,
    ) {
        let version = self.version();
        for name in ["sp", "st", "se"] {
            self.line(sink, name);
        }
        if version >= SERVICE_IN_RESOURCE_SINCE {
            sink.put(b"/");
            sink.put(service.label().as_bytes());
        }
        sink.put(b"/");
        sink.put(account.as_bytes());
        sink.put(b"/");
        match service {
            SasService::Table => sink.put(resource.to_lowercase().as_bytes()),
            SasService::Queue | SasService::Blob => sink.put(resource.as_bytes()),
        }
        sink.put(b"\n");
        sink.put(self.field("si").unwrap_or_default().as_bytes());
        if version < SERVICE_SAS_SINCE {
            return;
        }
        let mut rest: Vec<&str> = Vec::with_capacity(12);
        if version >= ACCOUNT_SAS_SINCE {
            rest.extend(["sip", "spr"]);
        }
        rest.push("sv");
        match service {
            SasService::Table => rest.extend(["spk", "srk", "epk", "erk"]),
            SasService::Queue => {}
            SasService::Blob => {
                if version >= RESOURCE_KIND_SINCE {
                    rest.extend(["sr", "snapshot"]);
                }
                if version >= ENCRYPTION_SCOPE_SINCE {
                    rest.push("ses");
                }
                if self.signs_response_headers() {
                    rest.extend(["rscc", "rscd", "rsce", "rscl", "rsct"]);
                }
            }
        }
        for name in rest {
            sink.put(b"\n");
            match name {
                "snapshot" => sink.put(snapshot.as_bytes()),
                _ => sink.put(self.field(name).unwrap_or_default().as_bytes()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_query_is_signed_or_has_no_token(query in "(sig|sv|ss|srt|sp|se|st|tn|spk)=[^#]{0,8}(&(sig|sv|tn|si)=[^#]{0,8}){0,4}") {
            if let Ok(query) = QueryParameters::parse(Some(&query))
                && let Some(token) = SasToken::find(&query)
            {
                let mut text = Vec::new();
                token.write_account_string("acct", &mut text);
                for service in [SasService::Table, SasService::Queue, SasService::Blob] {
                    token.write_service_string(service, "acct", "name", "", &mut text);
                }
                let _ = token.signature();
            }
        }
    }
}
