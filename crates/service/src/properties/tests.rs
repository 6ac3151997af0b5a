//! Service properties: what an update leaves out keeps its setting, bounds, and the stored form.

use super::*;
use proptest::prelude::*;

#[test]
fn a_root_that_is_left_out_keeps_its_setting() {
    let before = ServiceProperties {
        logging: Logging { write: true, ..Logging::default() },
        cors: vec![CorsRule { max_age_seconds: 5, ..CorsRule::default() }],
        ..ServiceProperties::default()
    };
    let update = ServicePropertiesUpdate {
        hour_metrics: Some(Metrics { enabled: true, ..Metrics::default() }),
        cors: Some(Vec::new()),
        ..ServicePropertiesUpdate::default()
    };
    let after = before.clone().updated(&update);
    assert!(after.logging.write && after.hour_metrics.enabled && after.cors.is_empty());
    assert_eq!(before.clone().updated(&ServicePropertiesUpdate::default()), before);
}

#[test]
fn limits() {
    let rules = |count: usize, len: usize| ServicePropertiesUpdate {
        cors: Some(vec![CorsRule { allowed_origins: "o".repeat(len), ..CorsRule::default() }; count]),
        ..ServicePropertiesUpdate::default()
    };
    assert_eq!(rules(5, 400).check(), Ok(()));
    assert_eq!(rules(6, 1).check(), Err(ServicePropertiesError::TooManyCorsRules));
    assert_eq!(rules(5, 410).check(), Err(ServicePropertiesError::CorsRulesTooLong));
    for (days, expected) in [(0, false), (1, true), (365, true), (366, false)] {
        let update = ServicePropertiesUpdate {
            minute_metrics: Some(Metrics {
                retention: RetentionPolicy { days: Some(days) },
                ..Metrics::default()
            }),
            ..ServicePropertiesUpdate::default()
        };
        assert_eq!(update.check().is_ok(), expected, "{days}");
    }
}

fn any_retention() -> impl Strategy<Value = RetentionPolicy> {
    prop::option::of(1u32..).prop_map(|days| RetentionPolicy { days })
}

fn any_metrics() -> impl Strategy<Value = Metrics> {
    (any::<String>(), any::<bool>(), any::<Option<bool>>(), any_retention()).prop_map(
        |(version, enabled, include_apis, retention)| Metrics { version, enabled, include_apis, retention },
    )
}

fn any_rule() -> impl Strategy<Value = CorsRule> {
    (any::<[String; 4]>(), any::<u32>()).prop_map(|(texts, max_age_seconds)| {
        let [allowed_origins, allowed_methods, allowed_headers, exposed_headers] = texts;
        CorsRule { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds }
    })
}

fn any_logging() -> impl Strategy<Value = Logging> {
    (any::<String>(), any::<[bool; 3]>(), any_retention()).prop_map(
        |(version, [delete, read, write], retention)| Logging { version, delete, read, write, retention },
    )
}

proptest! {
    #[test]
    fn properties_come_back(
        logging in any_logging(),
        hour_metrics in any_metrics(),
        minute_metrics in any_metrics(),
        cors in prop::collection::vec(any_rule(), 0..6),
        default_service_version: Option<String>,
    ) {
        let properties = ServiceProperties { logging, hour_metrics, minute_metrics, cors, default_service_version };
        prop_assert_eq!(ServiceProperties::decode(&properties.encode()), Ok(properties));
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in any::<Vec<u8>>()) {
        let _ = ServiceProperties::decode(&bytes);
        bytes.insert(0, FORMAT);
        let _ = ServiceProperties::decode(&bytes);
    }
}
