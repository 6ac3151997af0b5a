//! Rule files that are read, and the line of each mistake.

use super::*;
use crate::simulate::fault_rule::{Choice, Disturbance, Match, When};
use hyper::StatusCode;
use proptest::prelude::*;

#[test]
fn a_file_with_everything() {
    let settings = parse_rule_file(
        r#"
profile = "azure-large"
seed = 0x2a
speed = 60

[limits]
partition_entities_per_second = 1_000
queue_messages_per_second = 0

[boundaries]
partitions = 1
empty = 0.25
page_rows = 10
examined_rows = 500

[balancing]
load = 0.8
begins_after_s = 120
away_min_s = 1.5

[[fault]]
name = "lost-answer"
account = "devstoreaccount1"
service = "table"
operation = ["InsertEntity", "MergeEntity"]
key_prefix = "tasks/p"
probability = 0.1
reset = "after"

[[fault]]
every = 3
times = 2
delay_ms = 1.5
status = 504
code = "GatewayTimeout"
message = "later"
when = "after"

[[fault]]
cut_body_bytes = 10
"#,
    )
    .expect("a good file");
    assert_eq!(settings.seed, 42);
    let limits = settings.limits;
    assert_eq!((limits.partition_entities, limits.queue_messages), (NonZeroU64::new(1000), None));
    assert_eq!(limits.account_requests, NonZeroU64::new(40_000), "of the profile");
    let boundaries =
        Boundaries { partitions: 1.0, empty: 0.25, page_rows: Some(10), examined_rows: Some(500) };
    assert_eq!(settings.boundaries, boundaries);
    let balancing = settings.balancing.expect("of the profile");
    assert_eq!((balancing.load, balancing.begins_after), (0.8, Duration::from_secs(2)));
    assert_eq!(balancing.away_for_min, Duration::from_millis(25));
    assert_eq!(balancing.cools_after, Duration::from_secs(10));
    let [lost, late, cut] = &settings.rules[..] else { panic!("{:?}", settings.rules) };
    let matches = Match {
        account: Some("devstoreaccount1".to_owned()),
        service: Some("table".to_owned()),
        operations: vec!["InsertEntity".to_owned(), "MergeEntity".to_owned()],
        key_prefix: "tasks/p".to_owned(),
    };
    assert_eq!(
        (lost.name.as_str(), &lost.matches, lost.choice),
        ("lost-answer", &matches, Choice::Probability(0.1))
    );
    assert_eq!(lost.disturbance, Some(Disturbance::Reset(When::After)));
    assert_eq!((late.name.as_str(), late.times), ("fault-2", Some(2)));
    assert_eq!(late.choice, Choice::Every(NonZeroU64::new(3).expect("not 0")));
    assert_eq!(late.delay, Some(Duration::from_micros(1500)));
    let answer = Disturbance::Answer {
        status: StatusCode::GATEWAY_TIMEOUT,
        code: "GatewayTimeout".to_owned(),
        message: Some("later".to_owned()),
        when: When::After,
    };
    assert_eq!(late.disturbance, Some(answer));
    assert_eq!(cut.disturbance, Some(Disturbance::CutBody(10)));
    assert_eq!(cut.choice, Choice::Every(NonZeroU64::MIN));
}

#[test]
fn an_empty_file_simulates_nothing() {
    assert_eq!(parse_rule_file(""), Ok(SimulationSettings::default()));
    let off = parse_rule_file("profile = \"azure\"\n[balancing]\nenabled = false").expect("a good file");
    assert_eq!(off.balancing, None);
    assert_eq!(off.limits, SimulationSettings::profile("azure").expect("a profile").limits);
}

#[test]
fn each_mistake_names_its_line() {
    for (text, expected) in [
        ("profil = \"azure\"", "line 1: the file has no key \"profil\"; did you mean profile?"),
        ("\n\n[limit]\n", "line 3: the file has no key \"limit\"; did you mean limits?"),
        ("colour = 1", "line 1: the file has no key \"colour\""),
        (
            "profile = \"azur\"",
            "line 1: there is no profile \"azur\" (azure, azure-large); did you mean azure?",
        ),
        ("seed = -1", "line 1: seed in the file must be a number from 0 to 9000000000000000"),
        ("speed = 0", "line 1: speed in the file must be a number from 0.001 to 1000000"),
        ("limits = 3", "line 1: limits in the file must be a table"),
        (
            "[limits]\npartition_entities = 3",
            "line 2: limits has no key \"partition_entities\"; did you mean partition_entities_per_second?",
        ),
        (
            "[limits]\n\nqueue_messages_per_second = 1.5",
            "line 3: queue_messages_per_second in limits must be a whole number from 0 to 1125899906842624",
        ),
        ("[boundaries]\nempty = 2", "line 2: empty in boundaries must be a number from 0 to 1"),
        (
            "[boundaries]\npage_rows = 0",
            "line 2: page_rows in boundaries must be a whole number from 1 to 1000",
        ),
        ("[balancing]\nenabled = 1", "line 2: enabled in balancing must be true or false"),
        ("[balancing]\n\naway_max_s = 2", "line 3: away_min_s is more than away_max_s"),
        ("[fault]\nstatus = 503", "line 1: fault rules are written as [[fault]]"),
        (
            "[[fault]]\nstatus = 503\nprobabilty = 0.5",
            "line 3: [[fault]] has no key \"probabilty\"; did you mean probability?",
        ),
        (
            "[[fault]]\nstatus = 503\nevery = 2\nprobability = 0.5",
            "line 4: a fault rule has every or probability, not both",
        ),
        (
            "[[fault]]\nstatus = 503\nevery = 0",
            "line 3: every in [[fault]] must be a whole number from 1 to 9223372036854775807",
        ),
        ("[[fault]]\nstatus = 200", "line 2: status in [[fault]] must be a whole number from 400 to 599"),
        ("[[fault]]\nstatus = 418", "line 2: status 418 has no usual code: give code"),
        (
            "[[fault]]\nstatus = 503\ncode = \"Server Busy\"",
            "line 3: code in [[fault]] must be 1 to 64 letters, digits, dots, hyphens and underscores",
        ),
        ("[[fault]]\nreset = \"after\"\ncode = \"X\"", "line 3: code goes with status only"),
        (
            "[[fault]]\nreset = \"later\"",
            "line 2: reset in [[fault]] must be \"before\" or \"after\" the work is done",
        ),
        ("[[fault]]\nstatus = 503\nreset = \"after\"", "line 3: a fault rule has status or reset, not both"),
        (
            "\n[[fault]]\nservice = \"table\"",
            "line 3: a fault rule must do something: give status, reset, cut_body_bytes or delay_ms",
        ),
        (
            "[[fault]]\ndelay_ms = 1\nservice = \"tables\"",
            "line 3: there is no service \"tables\" (blob, queue, table); did you mean table?",
        ),
        (
            "[[fault]]\ndelay_ms = 1\noperation = \"InsertEntities\"",
            "line 3: there is no operation \"InsertEntities\"; did you mean InsertEntity?",
        ),
        (
            "[[fault]]\ndelay_ms = 1\noperation = []",
            "line 3: operation in [[fault]] must be a text, in quotes, or a list of texts",
        ),
        (
            "[[fault]]\nname = \"a\"\ndelay_ms = 1\n[[fault]]\nname = \"a\"\ndelay_ms = 1",
            "line 5: there is another rule of the name \"a\"",
        ),
        ("[[fault]]\naccount = devstoreaccount1", "line 2: this is not TOML: "),
        ("seed = 1\nseed = 2", "line 2: this is not TOML: duplicate key"),
    ] {
        let error = parse_rule_file(text).expect_err(text).to_string();
        let is_expected =
            if expected.ends_with(": ") { error.starts_with(expected) } else { error == expected };
        assert!(is_expected, "{text:?}\n found {error}\nwanted {expected}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let many = "[[fault]]\ndelay_ms = 1\n".repeat(FAULT_RULES_MAX + 1);
    assert_eq!(parse_rule_file(&many).expect_err("too many").line, 1);
    let large = "#".repeat(settings_file::FILE_SIZE_BYTES_MAX + 1);
    assert!(parse_rule_file(&large).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = parse_rule_file(&text);
    }

    #[test]
    fn any_value_of_a_key_is_read_or_refused(
        key in prop::sample::select(fault::KEYS.to_vec()),
        value in prop::sample::select(vec!["1", "-1", "0.5", "nan", "inf", "\"\"", "\"x\"", "[]", "[[1]]", "true", "{}", "1979-05-27", "9223372036854775807"]),
    ) {
        let _ = parse_rule_file(&format!("[[fault]]\n{key} = {value}\n"));
    }
}
