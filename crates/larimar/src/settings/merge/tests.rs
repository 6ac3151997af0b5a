//! Which source wins, and which mistakes are seen before anything is parsed.

use super::*;
use crate::settings::file;
use std::os::unix::ffi::OsStringExt;

/// A case: flags, variables, the file.
type Given<'a> = (&'a [(&'static str, &'a str)], &'a [(&'a str, &'a str)], &'a str);

fn merged((typed, environment, text): Given<'_>) -> Result<Vec<Entry>, Vec<String>> {
    let mut values = Values::new();
    for (key, value) in typed {
        values.entry(*key).or_default().push(OsString::from(value));
    }
    let lookup =
        |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
    merge(&values, &lookup, &file::read(text).expect("a good file"), Some(Path::new("f.toml")))
}

/// What is not by default: key, values, and the first letter of the source.
fn given(case: Given<'_>) -> Vec<String> {
    let entries = merged(case).expect("no mistake");
    let given = entries.iter().filter(|entry| entry.origin != Origin::Default);
    given
        .map(|entry| {
            let source = match &entry.origin {
                Origin::Default => "default".to_owned(),
                Origin::File { line } => format!("line {line}"),
                Origin::Variable(variable) => variable.clone(),
                Origin::Flag => "flag".to_owned(),
            };
            let values = entry.values.join(OsStr::new(" ")).into_string().expect("text");
            format!("{}={values} {source}", entry.setting.key)
        })
        .collect()
}

#[test]
fn flags_beat_variables_which_beat_the_file() {
    let (flag, variable, text) = ([("table_port", "1")], [("LARIMAR_TABLE_PORT", "2")], "table_port = 3");
    for (case, expected) in [
        ((&flag[..], &variable[..], text), "table_port=1 flag"),
        ((&[], &variable, text), "table_port=2 LARIMAR_TABLE_PORT"),
        ((&[], &[], text), "table_port=3 line 1"),
        ((&flag, &[], text), "table_port=1 flag"),
        ((&flag, &variable, ""), "table_port=1 flag"),
    ] {
        assert_eq!(given(case), [expected], "{case:?}");
    }
    assert_eq!(given((&[], &[], "")), [""; 0]);
    assert_eq!(merged((&[], &[], "")).map(|entries| entries.len()), Ok(SETTINGS.len()));
    let all = (
        &flag[..],
        &[("LARIMAR_BLOB_PORT", "4"), ("LARIMAR_VERSIONED_ACCOUNTS", "a; b")][..],
        "host = \"h\"",
    );
    assert_eq!(
        given(all),
        [
            "host=h line 1",
            "blob_port=4 LARIMAR_BLOB_PORT",
            "table_port=1 flag",
            "versioned_accounts=a b LARIMAR_VERSIONED_ACCOUNTS"
        ]
    );
}

#[test]
fn a_pair_is_of_one_source() {
    for (case, expected) in [
        (
            (&[("in_memory", "true")][..], &[("LARIMAR_DATA", "d")][..], "data = \"e\""),
            &["in_memory=true flag"][..],
        ),
        ((&[("data", "d")], &[("LARIMAR_IN_MEMORY", "true")], ""), &["data=d flag"]),
        ((&[], &[("LARIMAR_IN_MEMORY", "true")], "data = \"e\""), &["in_memory=true LARIMAR_IN_MEMORY"]),
        // What is switched off excludes nothing.
        (
            (&[], &[("LARIMAR_IN_MEMORY", "false")], "in_memory = true\ndata = \"e\""),
            &["data=e line 2", "in_memory=false LARIMAR_IN_MEMORY"],
        ),
        (
            (&[("accounts", "a:AA")], &[("LARIMAR_ACCOUNTS", "b:BB")], "accounts_file = \"x\""),
            &["accounts=a:AA flag"],
        ),
        (
            (&[], &[("AZURITE_ACCOUNTS", "b:BB")], "accounts_file = \"x\""),
            &["accounts=b:BB AZURITE_ACCOUNTS"],
        ),
        (
            (&[], &[("LARIMAR_ACCOUNTS_FILE", "y")], "accounts = [\"a:AA\"]"),
            &["accounts_file=y LARIMAR_ACCOUNTS_FILE"],
        ),
        (
            (&[], &[("LARIMAR_ACCOUNTS_FILE", "y"), ("AZURITE_ACCOUNTS", "b:BB")], ""),
            &["accounts_file=y LARIMAR_ACCOUNTS_FILE"],
        ),
        (
            (&[], &[("LARIMAR_ACCOUNTS", "c:CC"), ("AZURITE_ACCOUNTS", "b:BB")], ""),
            &["accounts=c:CC LARIMAR_ACCOUNTS"],
        ),
        (
            (&[], &[], "accounts = [\"a:AA\"]\naccounts_file = \"x\""),
            &["accounts=a:AA line 1", "accounts_file=x line 2"],
        ),
        // A half of the pair of another source is as good.
        ((&[("tls_key", "k")], &[], "tls_cert = \"c\""), &["tls_cert=c line 1", "tls_key=k flag"]),
        ((&[], &[("LARIMAR_LOG", " ")], "log = \"info\""), &["log=info line 1"]),
    ] {
        assert_eq!(given(case), expected, "{case:?}");
    }
}

/// A start in Kubernetes was refused because a service beside it was called `larimar-blob`.
#[test]
fn addresses_of_services_are_no_ports() {
    let kubernetes = [
        ("LARIMAR_BLOB_PORT", "tcp://10.0.0.1:10000"),
        ("LARIMAR_BLOB_PORT_10000_TCP", "tcp://10.0.0.1:10000"),
        ("LARIMAR_QUEUE_PORT", "udp://10.0.0.2:10001"),
        ("LARIMAR_ADMIN_PORT", "sctp://10.0.0.3:10010"),
        ("LARIMAR_TABLE_PORT", "7"),
    ];
    let case: Given<'_> = (&[], &kubernetes, "queue_port = 8");
    assert_eq!(given(case), ["queue_port=8 line 1", "table_port=7 LARIMAR_TABLE_PORT"]);
    let noted = |case: Given<'_>| -> Vec<String> {
        let entries = merged(case).expect("no mistake");
        entries
            .iter()
            .filter_map(Entry::note)
            .filter_map(|note| note.split(' ').next().map(str::to_owned))
            .collect()
    };
    assert_eq!(noted(case), ["LARIMAR_BLOB_PORT", "LARIMAR_QUEUE_PORT", "LARIMAR_ADMIN_PORT"]);
    assert_eq!(noted((&[("blob_port", "1")], &kubernetes[..2], "")), [""; 0]);
    for (variable, value) in [
        ("LARIMAR_BLOB_PORT", "10.0.0.1:10000"),
        ("LARIMAR_BLOB_PORT", "http://a"),
        ("LARIMAR_MAX_RANGES", "tcp://a"),
    ] {
        assert!(merged((&[], &[(variable, value)], "")).is_err(), "{variable} {value}");
    }
}

#[test]
fn all_mistakes_are_named() {
    for (case, expected) in [
        (
            (&[][..], &[("LARIMAR_TABLE_PORT", "x"), ("LARIMAR_HOST", "")][..], ""),
            &[
                "LARIMAR_HOST is set but empty; unset it, or give it a value",
                "LARIMAR_TABLE_PORT must be a port from 1 to 65535, or 0 for a free one",
            ][..],
        ),
        (
            (&[], &[("LARIMAR_LOG", "inof")], ""),
            &[
                "LARIMAR_LOG \"inof\": give off, error, warn, info, debug or trace, or several such as warn,partition=debug",
            ],
        ),
        (
            (&[], &[], "data = \"d\"\nin_memory = true"),
            &["f.toml line 1: data and in_memory can't both be set"],
        ),
        (
            (&[], &[("LARIMAR_DATA", "d"), ("LARIMAR_IN_MEMORY", "true")], ""),
            &["LARIMAR_DATA and LARIMAR_IN_MEMORY can't both be set"],
        ),
        (
            (&[], &[("LARIMAR_ACCOUNTS", "a:AA"), ("LARIMAR_ACCOUNTS_FILE", "y")], ""),
            &["LARIMAR_ACCOUNTS and LARIMAR_ACCOUNTS_FILE are both set; keep one of them"],
        ),
        // The development account was served, with a key that everybody knows.
        (
            (&[], &[("LARIMAR_ACCOUNT", "a:AA"), ("LARIMAR_VERSIONED_ACCOUNT", "a")], ""),
            &[
                "LARIMAR_ACCOUNT is set, but no setting has this variable; did you mean LARIMAR_ACCOUNTS?",
                "LARIMAR_VERSIONED_ACCOUNT is set, but no setting has this variable; did you mean \
                 LARIMAR_VERSIONED_ACCOUNTS?",
            ],
        ),
        // Nothing beat the accounts of the file.
        (
            (&[], &[("LARIMAR_VERSIONED_ACCOUNTS", " ; ")], "versioned_accounts = \"a\""),
            &["LARIMAR_VERSIONED_ACCOUNTS is set but names nothing; unset it, or give it a value"],
        ),
        ((&[], &[], "\ntls_cert = \"c\""), &["f.toml line 2: tls_cert needs tls_key, which is not set"]),
        ((&[], &[("LARIMAR_OAUTH", "basic")], ""), &["LARIMAR_OAUTH needs tls_cert, which is not set"]),
    ] {
        assert_eq!(merged(case).expect_err("a mistake"), expected, "{case:?}");
    }
    let garbage = |name: &str| (name == "LARIMAR_HOST").then(|| OsString::from_vec(vec![0xff]));
    let refused = merge(&Values::new(), &garbage, &[], None).expect_err("no text");
    assert_eq!(refused, ["LARIMAR_HOST is not UTF-8 text"]);
}

#[test]
fn what_is_not_typed_becomes_flags() {
    let case: Given<'_> = (
        &[("table_port", "1")],
        &[("LARIMAR_ACCOUNTS", "b:BB"), ("LARIMAR_PIN_WORKERS", "false")],
        "table_port = 3\nblob_port = 4\nunencrypted_customer_keys = true\nversioned_accounts = [\"a\", \"b\"]",
    );
    let words = as_flags(&merged(case).expect("no mistake"));
    let expected = [
        "--blob-port=4",
        "--versioned-account=a",
        "--versioned-account=b",
        "--unencrypted-customer-keys",
        "--pin-workers=false",
    ];
    assert_eq!(words, expected.map(OsString::from));
}
