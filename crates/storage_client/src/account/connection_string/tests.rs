//! Tables of connection strings.

use super::*;
use proptest::prelude::*;

fn urls(text: &str) -> Vec<String> {
    let address = AccountAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let pairs = address.endpoints.values();
    pairs.flat_map(|(first, second)| [Some(first), second.as_ref()]).flatten().map(Endpoint::url).collect()
}

#[test]
fn endpoints_come_from_names_or_are_given() {
    let key = "AccountKey=AAEC";
    for (text, expected) in [
        (
            "UseDevelopmentStorage=true".to_owned(),
            &[
                "http://127.0.0.1:10000/devstoreaccount1",
                "http://127.0.0.1:10000/devstoreaccount1-secondary",
                "http://127.0.0.1:10001/devstoreaccount1",
                "http://127.0.0.1:10001/devstoreaccount1-secondary",
                "http://127.0.0.1:10002/devstoreaccount1",
                "http://127.0.0.1:10002/devstoreaccount1-secondary",
            ][..],
        ),
        (
            format!("accountname=abc; {key} ;"),
            &[
                "https://abc.blob.core.windows.net",
                "https://abc-secondary.blob.core.windows.net",
                "https://abc.queue.core.windows.net",
                "https://abc-secondary.queue.core.windows.net",
                "https://abc.table.core.windows.net",
                "https://abc-secondary.table.core.windows.net",
            ],
        ),
        (
            "BlobEndpoint=http://h:1/abc/;SharedAccessSignature=?sv=1&sig=a%3D".to_owned(),
            &["http://h:1/abc", "http://h:1/abc-secondary"],
        ),
        (
            "TableEndpoint=http://h/abc;TableSecondaryEndpoint=https://other/abc;SharedAccessSignature=sig=x"
                .to_owned(),
            &["http://h/abc", "https://other/abc"],
        ),
        (
            format!(
                "DefaultEndpointsProtocol=HTTP;AccountName=abc;{key};EndpointSuffix=s.test:81;QueueEndpoint=http://[::1]:2/abc;FileEndpoint=x"
            ),
            &[
                "http://abc.blob.s.test:81",
                "http://abc-secondary.blob.s.test:81",
                "http://[::1]:2/abc",
                "http://[::1]:2/abc-secondary",
                "http://abc.table.s.test:81",
                "http://abc-secondary.table.s.test:81",
            ],
        ),
    ] {
        assert_eq!(urls(&text), expected, "{text}");
    }
    let proxied = "UseDevelopmentStorage=true;DevelopmentStorageProxyUri=http://myhost/";
    assert_eq!(urls(proxied)[0], "http://myhost:10000/devstoreaccount1");
}

#[test]
fn what_is_wrong_is_named_without_keys() {
    for (text, expected) in [
        ("", "the connection string is empty"),
        (" ; ", "the connection string is empty"),
        ("AccountName", "part 1 of the connection string has no '='; write Name=Value;Name=Value"),
        (
            "Acountname=x",
            "the connection string has the unknown name 'Acountname'; did you mean 'AccountName'?",
        ),
        ("AccountName=a;ACCOUNTNAME=b", "the connection string has 'AccountName' twice"),
        ("AccountName=a", "the connection string has no AccountKey or SharedAccessSignature"),
        ("AccountKey=AAEC", "the connection string has no AccountName"),
        (
            "AccountName=a;AccountKey=secret!",
            "AccountKey of the connection string can't be used: it is not Base64",
        ),
        (
            "AccountName=a;AccountKey=AAEC;SharedAccessSignature=sig=x",
            "the connection string has both AccountKey and SharedAccessSignature; give one of them",
        ),
        ("SharedAccessSignature=sig=x", "the connection string has no AccountName, nor an endpoint"),
        (
            "AccountName=a;SharedAccessSignature=sv=1",
            "SharedAccessSignature of the connection string can't be used: it has no 'sig'",
        ),
        (
            "BlobEndpoint=ftp://h/a;SharedAccessSignature=sig=x",
            "BlobEndpoint of the connection string can't be used: its scheme is neither http nor https",
        ),
        (
            "UseDevelopmentStorage=false",
            "UseDevelopmentStorage of the connection string can't be used: it must be 'true' or left out",
        ),
        (
            "UseDevelopmentStorage=true;AccountName=a",
            "the connection string has both UseDevelopmentStorage and AccountName; give one of them",
        ),
        (
            "DefaultEndpointsProtocol=ftp;AccountName=a;AccountKey=AAEC",
            "DefaultEndpointsProtocol of the connection string can't be used: it must be http or https",
        ),
    ] {
        let error = AccountAddress::parse(text).map(|address| address.name).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn the_account_of_a_signature_comes_from_its_endpoint() {
    for (text, account) in [
        ("BlobEndpoint=http://127.0.0.1:1/abc;SharedAccessSignature=sig=x", "abc"),
        ("BlobEndpoint=https://abc.blob.core.windows.net;SharedAccessSignature=sig=x", "abc"),
    ] {
        assert_eq!(AccountAddress::parse(text).map(|address| address.name).as_deref(), Ok(account));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(AccountName|AccountKey|BlobEndpoint|[a-zA-Z]{0,5})?[=;:/a-z?#\\[\\]% -]{0,40}") {
        let _ = AccountAddress::parse(&text);
    }
}

#[test]
fn an_endpoint_is_the_same_in_all_spellings() {
    let same = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|url| {
            let address = AccountAddress::of("a", Credentials::Anonymous);
            address.with_endpoint(Service::Table, url).expect("an endpoint")
        });
        assert!(!one.has_same_endpoint(&other, Service::Queue), "it has none");
        one.has_same_endpoint(&other, Service::Table)
    };
    for (one, other) in [
        ("http://127.0.0.1:10002/a", "http://localhost:10002/a/"),
        ("http://127.0.0.1:10002/a", "http://[::1]:10002/a"),
        ("http://LOCALHOST:10002/a", "http://127.0.0.2:10002/a"),
        ("https://a.table.core.windows.net", "https://A.Table.core.windows.net.:443/"),
        ("https://a.table.core.windows.net", "http://a.table.core.windows.net"),
    ] {
        assert!(same(one, other), "{one} {other}");
    }
    for (one, other) in [
        ("http://127.0.0.1:10002/a", "http://127.0.0.1:10003/a"),
        ("http://127.0.0.1:10002/a", "http://127.0.0.1:10002/b"),
        ("http://10.0.0.1:10002/a", "http://127.0.0.1:10002/a"),
        ("https://a.table.core.windows.net", "https://b.table.core.windows.net"),
    ] {
        assert!(!same(one, other), "{one} {other}");
    }
}
