//! Get and set the service's properties, and its replication stats, in XML.
//!
//! A root that is left out of a change keeps its setting; a root that is given must be complete. Clients differ in the
//! order of children, so they are read by name.

use super::cors::{BadRules, check_rules};
use super::{ApiRequest, ServiceApi};
use crate::error::ApiError;
use crate::error_code::ErrorCode;
use crate::reply::Reply;
use crate::xml::{XML_DECLARATION, XmlElement, parse_xml, put_xml_element, put_xml_tag};
use base::Ticks;
use hyper::StatusCode;
use service::properties::RETENTION_DAYS_MAX;
use service::{CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties, ServicePropertiesUpdate};
use std::time::UNIX_EPOCH;

/// Gets the properties.
pub(crate) async fn read_properties(
    service: &impl ServiceApi,
    request: &ApiRequest<'_>,
) -> Result<Reply, ApiError> {
    let properties = service.properties(request.account).await?;
    Ok(Reply::xml(StatusCode::OK, write(&properties)))
}

/// Changes the properties.
pub(crate) async fn write_properties(
    service: &impl ServiceApi,
    request: &ApiRequest<'_>,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let update = read(body, &[])?;
    let result = service.set_properties(request.account, update).await;
    request.cors.forget(request.account);
    result?;
    Ok(Reply::new(StatusCode::ACCEPTED))
}

/// Gets the replication stats, which are the secondary's to tell.
pub(crate) fn read_stats(request: &ApiRequest<'_>) -> Result<Reply, ApiError> {
    match request.address.secondary {
        true => Ok(stats(request.now)),
        false => Err(ErrorCode::InvalidQueryParameterValue.into()),
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

fn bad_document() -> ApiError {
    ErrorCode::InvalidXmlDocument.into()
}

/// Settings out of bounds, as recorded of all services (tests of their Python clients).
fn out_of_bounds(reason: impl Into<String>) -> ApiError {
    ApiError::with_facts(ErrorCode::InvalidXmlDocument, [("Reason", reason.into())])
}

/// As the tests of the older .NET, Java and Node clients expect it.
fn bad_rules(bad: BadRules) -> ApiError {
    match bad {
        BadRules::Value(reason) => {
            ApiError::with_facts(ErrorCode::InvalidXmlNodeValue, [("Reason", reason.to_owned())])
        }
        BadRules::Together(reason) => out_of_bounds(reason),
    }
}

fn bad_value() -> ApiError {
    ErrorCode::InvalidXmlNodeValue.into()
}

/// Reads a change; `own` are roots that the service reads itself.
pub(crate) fn read(body: &[u8], own: &[&str]) -> Result<ServicePropertiesUpdate, ApiError> {
    let root = parse_xml(body).map_err(|_| bad_document())?;
    if root.name != "StorageServiceProperties" {
        return Err(bad_document());
    }
    let mut update = ServicePropertiesUpdate::default();
    for child in &root.children {
        let repeated = match child.name.as_str() {
            "Logging" => update.logging.replace(read_logging(child)?).is_some(),
            // `Metrics` is what hour metrics were called before 2013-08-15.
            "HourMetrics" | "Metrics" => update.hour_metrics.replace(read_metrics(child)?).is_some(),
            "MinuteMetrics" => update.minute_metrics.replace(read_metrics(child)?).is_some(),
            "Cors" => update.cors.replace(read_cors(child)?).is_some(),
            other if own.contains(&other) => false,
            _ => true,
        };
        if repeated {
            return Err(bad_document());
        }
    }
    Ok(update)
}

fn required<'a>(element: &'a XmlElement, name: &str) -> Result<&'a str, ApiError> {
    element.child_text(name).ok_or_else(bad_document)
}

fn boolean(text: &str) -> Result<bool, ApiError> {
    match text {
        _ if text.eq_ignore_ascii_case("true") => Ok(true),
        _ if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(bad_value()),
    }
}

fn version(element: &XmlElement) -> Result<String, ApiError> {
    match required(element, "Version")? {
        text @ ("1.0" | "2.0") => Ok(text.to_owned()),
        _ => Err(bad_value()),
    }
}

fn read_logging(element: &XmlElement) -> Result<Logging, ApiError> {
    Ok(Logging {
        version: version(element)?,
        delete: boolean(required(element, "Delete")?)?,
        read: boolean(required(element, "Read")?)?,
        write: boolean(required(element, "Write")?)?,
        retention: read_retention(element)?,
    })
}

fn read_metrics(element: &XmlElement) -> Result<Metrics, ApiError> {
    let enabled = boolean(required(element, "Enabled")?)?;
    let include_apis = element.child_text("IncludeAPIs").map(boolean).transpose()?;
    if enabled && include_apis.is_none() {
        return Err(bad_document());
    }
    Ok(Metrics {
        version: version(element)?,
        enabled,
        include_apis: include_apis.filter(|_| enabled),
        retention: read_retention(element)?,
    })
}

fn read_retention(element: &XmlElement) -> Result<RetentionPolicy, ApiError> {
    let element = element.child("RetentionPolicy").ok_or_else(bad_document)?;
    if !boolean(required(element, "Enabled")?)? {
        return Ok(RetentionPolicy { days: None });
    }
    match required(element, "Days")?.parse() {
        Ok(days) if (1..=RETENTION_DAYS_MAX).contains(&days) => Ok(RetentionPolicy { days: Some(days) }),
        _ => Err(out_of_bounds(format!("RetentionPolicy: Days must be from 1 to {RETENTION_DAYS_MAX}."))),
    }
}

fn read_cors(element: &XmlElement) -> Result<Vec<CorsRule>, ApiError> {
    let rules: Vec<CorsRule> = element
        .children
        .iter()
        .map(|rule| {
            if rule.name != "CorsRule" {
                return Err(bad_document());
            }
            Ok(CorsRule {
                allowed_origins: required(rule, "AllowedOrigins")?.to_owned(),
                allowed_methods: required(rule, "AllowedMethods")?.to_owned(),
                allowed_headers: required(rule, "AllowedHeaders")?.to_owned(),
                exposed_headers: required(rule, "ExposedHeaders")?.to_owned(),
                max_age_seconds: required(rule, "MaxAgeInSeconds")?.parse().map_err(|_| bad_value())?,
            })
        })
        .collect::<Result<_, _>>()?;
    check_rules(&rules).map_err(bad_rules)?;
    Ok(rules)
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
        let metrics =
            format!("<HourMetrics><Version>1.0</Version><Enabled>false</Enabled>{retention}</HourMetrics>");
        assert_eq!(code(&metrics), Some(ErrorCode::InvalidXmlDocument));
        assert!(read(b"x", &[]).is_err());
    }
}
