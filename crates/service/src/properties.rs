//! Service properties: logging, metrics and CORS rules of one account's service.
//!
//! ```text
//! properties = u8 format (1), logging, hour metrics, minute metrics, varint rule count, each rule,
//!              u8 default version is there, [bytes(default version)]
//! logging    = bytes(version) u8 flags (1 delete, 2 read, 4 write) retention
//! metrics    = bytes(version) u8 flags (1 enabled, 2 include APIs is there, 4 include APIs) retention
//! retention  = u32 days; 0: kept for ever
//! rule       = bytes(origins) bytes(methods) bytes(headers) bytes(exposed headers) u32 max age in seconds
//!              bytes(x) is a varint length and then x
//! ```
//!
//! The settings are stored and returned; collecting logs or metrics is no part of this. CORS rules are obeyed
//! by the front end. What always holds: a change replaces whole roots and leaves the others alone.

use base::codec::{DecodeError, Decoder, Encode};

/// CORS rules of one service at most.
pub const CORS_RULES_MAX: usize = 5;
/// Bytes in all CORS rules of one service together.
pub const CORS_RULES_BYTES_MAX: usize = 2048;
/// Longest retention, in days.
pub const RETENTION_DAYS_MAX: u32 = 365;
/// Bytes of a version's text at most.
pub const VERSION_BYTES_MAX: usize = 64;

/// Why a change of service properties was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServicePropertiesError {
    /// A retention of no days or more than a year.
    #[error("retention must be 1 to 365 days")]
    RetentionDays,
    /// More than five CORS rules.
    #[error("at most 5 CORS rules are allowed")]
    TooManyCorsRules,
    /// More than 2 KiB of CORS rules.
    #[error("the CORS rules together are longer than 2048 bytes")]
    CorsRulesTooLong,
    /// A version text that can't be one.
    #[error("a version is too long")]
    VersionTooLong,
}

/// How long logs or metrics are kept: days, or for ever when `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RetentionPolicy {
    /// 1 to 365.
    pub days: Option<u32>,
}

/// Which requests are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logging {
    /// Version of the log format.
    pub version: String,
    /// Log deletes.
    pub delete: bool,
    /// Log reads.
    pub read: bool,
    /// Log writes.
    pub write: bool,
    /// How long logs are kept.
    pub retention: RetentionPolicy,
}

impl Default for Logging {
    fn default() -> Self {
        Logging {
            version: "1.0".to_owned(),
            delete: false,
            read: false,
            write: false,
            retention: RetentionPolicy::default(),
        }
    }
}

/// Which metrics are collected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Version of the metrics format.
    pub version: String,
    /// Whether any are.
    pub enabled: bool,
    /// Whether per API; only given when enabled.
    pub include_apis: Option<bool>,
    /// How long metrics are kept.
    pub retention: RetentionPolicy,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            version: "1.0".to_owned(),
            enabled: false,
            include_apis: None,
            retention: RetentionPolicy::default(),
        }
    }
}

/// Which pages of other origins may call the service. Lists are comma-separated, as sent.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CorsRule {
    /// Origins, or `*`.
    pub allowed_origins: String,
    /// Methods.
    pub allowed_methods: String,
    /// Request headers, prefixes ending in `*`.
    pub allowed_headers: String,
    /// Response headers that the page may see.
    pub exposed_headers: String,
    /// Seconds that a browser may remember a preflight.
    pub max_age_seconds: u32,
}

/// All settings of one account's service.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServiceProperties {
    /// Request logging.
    pub logging: Logging,
    /// Metrics by the hour.
    pub hour_metrics: Metrics,
    /// Metrics by the minute.
    pub minute_metrics: Metrics,
    /// CORS rules in the order they are tried.
    pub cors: Vec<CorsRule>,
    /// Version of requests that name none (Blob only).
    pub default_service_version: Option<String>,
}

/// A change: roots that are `None` keep their setting.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ServicePropertiesUpdate {
    /// Request logging.
    pub logging: Option<Logging>,
    /// Metrics by the hour.
    pub hour_metrics: Option<Metrics>,
    /// Metrics by the minute.
    pub minute_metrics: Option<Metrics>,
    /// CORS rules; an empty list removes all.
    pub cors: Option<Vec<CorsRule>>,
    /// Version of requests that name none (Blob only).
    pub default_service_version: Option<String>,
}

impl ServiceProperties {
    /// These settings with the roots of `update` in place of theirs.
    pub fn updated(mut self, update: &ServicePropertiesUpdate) -> Self {
        fn replace<T: Clone>(present: &mut T, new: &Option<T>) {
            if let Some(new) = new {
                present.clone_from(new);
            }
        }
        replace(&mut self.logging, &update.logging);
        replace(&mut self.hour_metrics, &update.hour_metrics);
        replace(&mut self.minute_metrics, &update.minute_metrics);
        replace(&mut self.cors, &update.cors);
        if update.default_service_version.is_some() {
            self.default_service_version.clone_from(&update.default_service_version);
        }
        self
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        out.put_u8_field(FORMAT);
        put_logging(&mut out, &self.logging);
        put_metrics(&mut out, &self.hour_metrics);
        put_metrics(&mut out, &self.minute_metrics);
        out.put_varint(self.cors.len() as u64);
        for rule in &self.cors {
            out.put_bytes_field(rule.allowed_origins.as_bytes());
            out.put_bytes_field(rule.allowed_methods.as_bytes());
            out.put_bytes_field(rule.allowed_headers.as_bytes());
            out.put_bytes_field(rule.exposed_headers.as_bytes());
            out.put_u32_field(rule.max_age_seconds);
        }
        out.put_u8_field(u8::from(self.default_service_version.is_some()));
        if let Some(version) = &self.default_service_version {
            out.put_bytes_field(version.as_bytes());
        }
        out
    }

    /// Reads the stored form.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes);
        if decoder.u8("service properties format")? != FORMAT {
            return Err(DecodeError("service properties format"));
        }
        let logging = take_logging(&mut decoder)?;
        let hour_metrics = take_metrics(&mut decoder)?;
        let minute_metrics = take_metrics(&mut decoder)?;
        let mut cors = Vec::new();
        for _ in 0..decoder.varint("CORS rule count")? {
            cors.push(CorsRule {
                allowed_origins: decoder.text("allowed origins")?.to_owned(),
                allowed_methods: decoder.text("allowed methods")?.to_owned(),
                allowed_headers: decoder.text("allowed headers")?.to_owned(),
                exposed_headers: decoder.text("exposed headers")?.to_owned(),
                max_age_seconds: decoder.u32("max age")?,
            });
        }
        let default_service_version = match decoder.u8("default version flag")? {
            0 => None,
            1 => Some(decoder.text("default version")?.to_owned()),
            _ => return Err(DecodeError("default version flag")),
        };
        decoder.finish("service properties")?;
        Ok(ServiceProperties { logging, hour_metrics, minute_metrics, cors, default_service_version })
    }
}

impl ServicePropertiesUpdate {
    /// Checks the limits that all services share.
    pub fn check(&self) -> Result<(), ServicePropertiesError> {
        let retentions = [
            self.logging.as_ref().map(|logging| logging.retention),
            self.hour_metrics.as_ref().map(|metrics| metrics.retention),
            self.minute_metrics.as_ref().map(|metrics| metrics.retention),
        ];
        for days in retentions.into_iter().flatten().filter_map(|retention| retention.days) {
            if !(1..=RETENTION_DAYS_MAX).contains(&days) {
                return Err(ServicePropertiesError::RetentionDays);
            }
        }
        let versions = [
            self.logging.as_ref().map(|logging| &logging.version),
            self.hour_metrics.as_ref().map(|metrics| &metrics.version),
            self.minute_metrics.as_ref().map(|metrics| &metrics.version),
            self.default_service_version.as_ref(),
        ];
        if versions.into_iter().flatten().any(|version| version.len() > VERSION_BYTES_MAX) {
            return Err(ServicePropertiesError::VersionTooLong);
        }
        let rules = self.cors.as_deref().unwrap_or_default();
        if rules.len() > CORS_RULES_MAX {
            return Err(ServicePropertiesError::TooManyCorsRules);
        }
        if rules.iter().map(CorsRule::text_len).sum::<usize>() > CORS_RULES_BYTES_MAX {
            return Err(ServicePropertiesError::CorsRulesTooLong);
        }
        Ok(())
    }
}

impl CorsRule {
    fn text_len(&self) -> usize {
        self.allowed_origins.len()
            + self.allowed_methods.len()
            + self.allowed_headers.len()
            + self.exposed_headers.len()
    }
}

const FORMAT: u8 = 1;

const LOG_DELETE: u8 = 1;
const LOG_READ: u8 = 2;
const LOG_WRITE: u8 = 4;

const METRICS_ENABLED: u8 = 1;
const METRICS_HAVE_INCLUDE_APIS: u8 = 2;
const METRICS_INCLUDE_APIS: u8 = 4;

fn bit(set: bool, flag: u8) -> u8 {
    if set { flag } else { 0 }
}

fn put_logging(out: &mut Vec<u8>, logging: &Logging) {
    out.put_bytes_field(logging.version.as_bytes());
    let flags = bit(logging.delete, LOG_DELETE) | bit(logging.read, LOG_READ) | bit(logging.write, LOG_WRITE);
    out.put_u8_field(flags);
    out.put_u32_field(logging.retention.days.unwrap_or(0));
}

fn take_logging(decoder: &mut Decoder<'_>) -> Result<Logging, DecodeError> {
    let version = decoder.text("logging version")?.to_owned();
    let flags = decoder.u8("logging flags")?;
    if flags & !(LOG_DELETE | LOG_READ | LOG_WRITE) != 0 {
        return Err(DecodeError("logging flags"));
    }
    Ok(Logging {
        version,
        delete: flags & LOG_DELETE != 0,
        read: flags & LOG_READ != 0,
        write: flags & LOG_WRITE != 0,
        retention: take_retention(decoder)?,
    })
}

fn put_metrics(out: &mut Vec<u8>, metrics: &Metrics) {
    out.put_bytes_field(metrics.version.as_bytes());
    let flags = bit(metrics.enabled, METRICS_ENABLED)
        | bit(metrics.include_apis.is_some(), METRICS_HAVE_INCLUDE_APIS)
        | bit(metrics.include_apis == Some(true), METRICS_INCLUDE_APIS);
    out.put_u8_field(flags);
    out.put_u32_field(metrics.retention.days.unwrap_or(0));
}

fn take_metrics(decoder: &mut Decoder<'_>) -> Result<Metrics, DecodeError> {
    let version = decoder.text("metrics version")?.to_owned();
    let flags = decoder.u8("metrics flags")?;
    if flags & !(METRICS_ENABLED | METRICS_HAVE_INCLUDE_APIS | METRICS_INCLUDE_APIS) != 0 {
        return Err(DecodeError("metrics flags"));
    }
    let include_apis = flags & METRICS_INCLUDE_APIS != 0;
    Ok(Metrics {
        version,
        enabled: flags & METRICS_ENABLED != 0,
        include_apis: (flags & METRICS_HAVE_INCLUDE_APIS != 0).then_some(include_apis),
        retention: take_retention(decoder)?,
    })
}

fn take_retention(decoder: &mut Decoder<'_>) -> Result<RetentionPolicy, DecodeError> {
    let days = decoder.u32("retention days")?;
    Ok(RetentionPolicy { days: (days != 0).then_some(days) })
}

#[cfg(test)]
mod tests;
