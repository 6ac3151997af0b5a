//! Get and set the service's properties, and its replication stats, in XML.
//!
//! A root that is left out of a change keeps its setting; a root that is given must be complete. Clients
//! differ in the order of children, so they are read by name.

use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use crate::pipeline::cors::{BadRules, check_rules};
use crate::pipeline::{ApiRequest, ServiceApi};
use crate::reply::Reply;
use crate::xml::{MALFORMED, XML_DECLARATION, XmlElement, parse_xml, put_xml_element, put_xml_tag};
use base::Ticks;
use hyper::StatusCode;
use service::properties::RETENTION_DAYS_MAX;
use service::{CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties, ServicePropertiesUpdate};
use std::time::UNIX_EPOCH;

/// Versions of logs. Those of the second exist for blobs and queues only.
const LOGGING_VERSIONS: [&str; 2] = ["1.0", "2.0"];
const METRICS_VERSIONS: [&str; 1] = ["1.0"];

/// Gets the properties.
pub(crate) async fn read_properties(
    service: &impl ServiceApi,
    request: &ApiRequest<'_>,
) -> Result<Reply, ApiError> {
    let properties = service.properties(request.account).await?;
    Ok(Reply::xml(StatusCode::OK, write(&properties)))
}

/// Changes the properties.
pub(crate) async fn write_properties<S: ServiceApi>(
    service: &S,
    request: &ApiRequest<'_>,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let update = read(body, &[])?;
    if update.logging.as_ref().is_some_and(|logging| logging.version != "1.0") && !S::LOGS_IN_VERSION_2 {
        return Err(ErrorCode::InvalidXmlDocument.into());
    }
    let result = service.set_properties(request.account, update).await;
    request.environment.cors.forget(request.account);
    result?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}

/// Gets the replication stats, which are the secondary's to tell.
pub(crate) fn read_stats(request: &ApiRequest<'_>) -> Result<Reply, ApiError> {
    match request.address.secondary {
        true => Ok(stats(request.now)),
        false => Err(ApiError::invalid_parameter("comp", "stats", "")),
    }
}

/// There is one copy, so the secondary is always as new as the primary.
fn stats(now: Ticks) -> Reply {
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "StorageServiceStats");
    put_xml_tag(&mut out, "<", "GeoReplication");
    put_xml_element(&mut out, "Status", "live");
    let now = httpdate::fmt_http_date(UNIX_EPOCH + now.since_unix());
    put_xml_element(&mut out, "LastSyncTime", &now);
    put_xml_tag(&mut out, "</", "GeoReplication");
    put_xml_tag(&mut out, "</", "StorageServiceStats");
    Reply::xml(StatusCode::OK, out)
}

fn text_of(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

pub(crate) fn write(properties: &ServiceProperties) -> Vec<u8> {
    let mut out = XML_DECLARATION.to_vec();
    put_xml_tag(&mut out, "<", "StorageServiceProperties");
    put_xml_tag(&mut out, "<", "Logging");
    let logging = &properties.logging;
    put_xml_element(&mut out, "Version", &logging.version);
    put_xml_element(&mut out, "Read", text_of(logging.read));
    put_xml_element(&mut out, "Write", text_of(logging.write));
    put_xml_element(&mut out, "Delete", text_of(logging.delete));
    write_retention(&mut out, logging.retention);
    put_xml_tag(&mut out, "</", "Logging");
    write_metrics(&mut out, "HourMetrics", &properties.hour_metrics);
    write_metrics(&mut out, "MinuteMetrics", &properties.minute_metrics);
    put_xml_tag(&mut out, "<", "Cors");
    for rule in &properties.cors {
        put_xml_tag(&mut out, "<", "CorsRule");
        put_xml_element(&mut out, "AllowedOrigins", &rule.allowed_origins);
        put_xml_element(&mut out, "AllowedMethods", &rule.allowed_methods);
        put_xml_element(&mut out, "MaxAgeInSeconds", &rule.max_age_seconds.to_string());
        put_xml_element(&mut out, "ExposedHeaders", &rule.exposed_headers);
        put_xml_element(&mut out, "AllowedHeaders", &rule.allowed_headers);
        put_xml_tag(&mut out, "</", "CorsRule");
    }
    put_xml_tag(&mut out, "</", "Cors");
    put_xml_tag(&mut out, "</", "StorageServiceProperties");
    out
}

fn write_metrics(out: &mut Vec<u8>, name: &str, metrics: &Metrics) {
    put_xml_tag(out, "<", name);
    put_xml_element(out, "Version", &metrics.version);
    put_xml_element(out, "Enabled", text_of(metrics.enabled));
    if let Some(include_apis) = metrics.include_apis {
        put_xml_element(out, "IncludeAPIs", text_of(include_apis));
    }
    write_retention(out, metrics.retention);
    put_xml_tag(out, "</", name);
}

fn write_retention(out: &mut Vec<u8>, retention: RetentionPolicy) {
    put_xml_tag(out, "<", "RetentionPolicy");
    put_xml_element(out, "Enabled", text_of(retention.days.is_some()));
    if let Some(days) = retention.days {
        put_xml_element(out, "Days", &days.to_string());
    }
    put_xml_tag(out, "</", "RetentionPolicy");
}

/// As recorded of the service, for all kinds of settings.
pub(crate) const RETENTION_REASON: &str =
    "Retention days must be greater than 0 and less than or equal to 365 days.";
const _: () = assert!(RETENTION_DAYS_MAX == 365);

/// As recorded of a retention without its days.
pub(crate) const DAYS_MISSING_REASON: &str = "Element is missing: Days.";

/// As the tests of the older .NET, Java and Node clients expect it.
fn bad_rules(bad: BadRules) -> ApiError {
    match bad {
        BadRules::Value(reason) => {
            ApiError::with_facts(ErrorCode::InvalidXmlNodeValue, [("Reason", reason.to_owned())])
        }
        BadRules::Together(reason) => ApiError::invalid_document_whole(reason),
    }
}

/// Reads a change; `own` are roots that the service reads itself.
pub(crate) fn read(body: &[u8], own: &[&str]) -> Result<ServicePropertiesUpdate, ApiError> {
    let document = Document(body);
    let root = parse_xml(body).map_err(|error| document.malformed(error.at))?;
    if root.name != "StorageServiceProperties" {
        return Err(document.malformed(root.at));
    }
    let mut update = ServicePropertiesUpdate::default();
    for child in &root.children {
        let repeated = match child.name.as_str() {
            "Logging" => update.logging.replace(document.logging(child)?).is_some(),
            // `Metrics` is what hour metrics were called before 2013-08-15.
            "HourMetrics" | "Metrics" => update.hour_metrics.replace(document.metrics(child)?).is_some(),
            "MinuteMetrics" => update.minute_metrics.replace(document.metrics(child)?).is_some(),
            "Cors" => update.cors.replace(document.cors(child)?).is_some(),
            other if own.contains(&other) => false,
            _ => true,
        };
        if repeated {
            return Err(document.malformed(child.at));
        }
    }
    Ok(update)
}

/// The document that elements are of, in which refusals say where they are.
#[derive(Clone, Copy)]
struct Document<'a>(&'a [u8]);

impl Document<'_> {
    fn malformed(self, at: usize) -> ApiError {
        ApiError::invalid_document(self.0, at, MALFORMED)
    }

    fn required<'e>(self, element: &'e XmlElement, name: &str) -> Result<&'e XmlElement, ApiError> {
        element.child(name).ok_or_else(|| self.malformed(element.end))
    }

    fn boolean(self, element: &XmlElement) -> Result<bool, ApiError> {
        match element.text.as_str() {
            text if text.eq_ignore_ascii_case("true") => Ok(true),
            text if text.eq_ignore_ascii_case("false") => Ok(false),
            text => Err(ApiError::invalid_node(&element.name, text, "It must be true or false.")),
        }
    }

    fn flag(self, element: &XmlElement, name: &str) -> Result<bool, ApiError> {
        self.boolean(self.required(element, name)?)
    }

    fn version(self, element: &XmlElement, known: &[&str]) -> Result<String, ApiError> {
        let version = self.required(element, "Version")?;
        match known.contains(&version.text.as_str()) {
            true => Ok(version.text.clone()),
            false => Err(ApiError::invalid_document(self.0, version.end, "Unexpected value for Version.")),
        }
    }

    fn logging(self, element: &XmlElement) -> Result<Logging, ApiError> {
        Ok(Logging {
            version: self.version(element, &LOGGING_VERSIONS)?,
            delete: self.flag(element, "Delete")?,
            read: self.flag(element, "Read")?,
            write: self.flag(element, "Write")?,
            retention: self.retention(element)?,
        })
    }

    fn metrics(self, element: &XmlElement) -> Result<Metrics, ApiError> {
        let enabled = self.flag(element, "Enabled")?;
        let include_apis = element.child("IncludeAPIs").map(|apis| self.boolean(apis)).transpose()?;
        if enabled && include_apis.is_none() {
            return Err(self.malformed(element.end));
        }
        Ok(Metrics {
            version: self.version(element, &METRICS_VERSIONS)?,
            enabled,
            include_apis: include_apis.filter(|_| enabled),
            retention: self.retention(element)?,
        })
    }

    fn retention(self, element: &XmlElement) -> Result<RetentionPolicy, ApiError> {
        let policy = self.required(element, "RetentionPolicy")?;
        if !self.flag(policy, "Enabled")? {
            return Ok(RetentionPolicy { days: None });
        }
        let missing = || ApiError::invalid_document(self.0, policy.end, DAYS_MISSING_REASON);
        let days = policy.child("Days").ok_or_else(missing)?;
        match days.text.parse() {
            Ok(number) if (1..=RETENTION_DAYS_MAX).contains(&number) => {
                Ok(RetentionPolicy { days: Some(number) })
            }
            _ => Err(ApiError::invalid_document(self.0, days.end, RETENTION_REASON)),
        }
    }

    fn cors(self, element: &XmlElement) -> Result<Vec<CorsRule>, ApiError> {
        let mut rules = Vec::with_capacity(element.children.len());
        for rule in &element.children {
            if rule.name != "CorsRule" {
                return Err(self.malformed(rule.at));
            }
            let text = |name| self.required(rule, name).map(|element| element.text.clone());
            // Documented as required, and taken all the same if they are left out.
            let optional = |name| rule.child_text(name).unwrap_or_default().to_owned();
            let age = self.required(rule, "MaxAgeInSeconds")?;
            rules.push(CorsRule {
                allowed_origins: text("AllowedOrigins")?,
                allowed_methods: text("AllowedMethods")?,
                allowed_headers: optional("AllowedHeaders"),
                exposed_headers: optional("ExposedHeaders"),
                max_age_seconds: age.text.parse().map_err(|_| {
                    ApiError::invalid_node(&age.name, &age.text, "It must be a number of seconds.")
                })?,
            });
        }
        check_rules(&rules).map_err(bad_rules)?;
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_come_back() {
        let properties = ServiceProperties {
            logging: Logging {
                read: true,
                retention: RetentionPolicy { days: Some(5) },
                ..Logging::default()
            },
            hour_metrics: Metrics { enabled: true, include_apis: Some(false), ..Metrics::default() },
            cors: vec![CorsRule {
                allowed_origins: "http://a".into(),
                allowed_methods: "GET".into(),
                max_age_seconds: 5,
                ..CorsRule::default()
            }],
            ..ServiceProperties::default()
        };
        let update = read(&write(&properties), &[]).expect("an update");
        assert_eq!(update.logging, Some(properties.logging));
        assert_eq!(update.hour_metrics, Some(properties.hour_metrics));
        assert_eq!(update.minute_metrics, Some(properties.minute_metrics));
        assert_eq!(update.cors, Some(properties.cors));
    }

    #[test]
    fn roots_left_out_are_not_changed() {
        let body = b"<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties><Cors/></StorageServiceProperties>";
        let update = read(body, &[]).expect("an update");
        let expected = ServicePropertiesUpdate { cors: Some(vec![]), ..ServicePropertiesUpdate::default() };
        assert_eq!(update, expected);
    }

    #[test]
    fn refused() {
        let code = |inside: &str| {
            let body = format!("<StorageServiceProperties>{inside}</StorageServiceProperties>");
            read(body.as_bytes(), &[]).err().map(|error| error.code)
        };
        let retention = "<RetentionPolicy><Enabled>true</Enabled><Days>0</Days></RetentionPolicy>";
        assert_eq!(code("<Logging/>"), Some(ErrorCode::InvalidXmlDocument));
        assert_eq!(code("<Other/>"), Some(ErrorCode::InvalidXmlDocument));
        assert_eq!(code("<Cors/><Cors/>"), Some(ErrorCode::InvalidXmlDocument));
        let rule = "<AllowedOrigins>a</AllowedOrigins><AllowedMethods>GET</AllowedMethods>";
        let age = "<MaxAgeInSeconds>5</MaxAgeInSeconds>";
        let cors = |inside: &str| code(&format!("<Cors><CorsRule>{inside}</CorsRule></Cors>"));
        assert_eq!(cors(&format!("{rule}{age}")), None, "headers may be left out");
        assert_eq!(cors(rule), Some(ErrorCode::InvalidXmlDocument));
        assert_eq!(
            cors(&format!("{rule}<MaxAgeInSeconds>x</MaxAgeInSeconds>")),
            Some(ErrorCode::InvalidXmlNodeValue)
        );
        let metrics =
            format!("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>{retention}</HourMetrics>");
        assert_eq!(code(&metrics), Some(ErrorCode::InvalidXmlDocument));
        assert!(read(b"x", &[]).is_err());
    }
}
