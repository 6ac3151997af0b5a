//! Endpoint, region and style of a bucket.
//!
//! ```text
//! https://s3.REGION.amazonaws.com/BUCKET/key      the bucket in the path
//! https://BUCKET.s3.REGION.amazonaws.com/key      the bucket in the host's name
//! ```

use crate::error::OpenError;
use crate::objects::settings::ObjectStoreSettings;
use crate::surroundings::StoreSurroundings;
use http_client::Endpoint;
use std::net::IpAddr;

const REGION: &str = "us-east-1";

/// Where a bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BucketAddress {
    pub(crate) endpoint: Endpoint,
    /// The path before the name of an object, without a slash at its end.
    pub(crate) base: String,
    pub(crate) region: String,
}

/// Where a bucket is, by settings and variables.
pub(crate) fn bucket_address(
    bucket: &str,
    settings: &ObjectStoreSettings,
    surroundings: &StoreSurroundings,
) -> Result<BucketAddress, OpenError> {
    let variable = |name: &str| surroundings.variable(name).map(str::to_owned);
    let region = settings.region.clone();
    let region = region.or_else(|| variable("AWS_REGION")).or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = region.unwrap_or_else(|| REGION.to_owned());
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    if region.is_empty() || !region.chars().all(is_letter) {
        return Err(OpenError::setting("the region", format!("'{region}' is no name of a region")));
    }
    let given = settings.endpoint.clone();
    let given = given.or_else(|| variable("AWS_ENDPOINT_URL_S3")).or_else(|| variable("AWS_ENDPOINT_URL"));
    let is_path_style = settings.path_style.unwrap_or(given.is_some() || bucket.contains('.'));
    let url = given.unwrap_or_else(|| {
        let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
        format!("https://s3.{region}.amazonaws.com{suffix}")
    });
    let what = || format!("the endpoint {url}");
    let mut endpoint = Endpoint::parse(&url).map_err(|why| OpenError::setting("the endpoint", why))?;
    let mut base = endpoint.path.clone();
    if is_path_style {
        base.push('/');
        base.push_str(bucket);
    } else if endpoint.origin.host.parse::<IpAddr>().is_ok() {
        let why = "a bucket can't be in an address of numbers: set the path style, or a host's name";
        return Err(OpenError::setting(what(), why));
    } else {
        endpoint.origin.host = format!("{bucket}.{}", endpoint.origin.host);
        endpoint.authority = format!("{bucket}.{}", endpoint.authority);
    }
    Ok(BucketAddress { endpoint, base, region })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn address(
        bucket: &str,
        endpoint: Option<&str>,
        path_style: Option<bool>,
        variables: &[(&str, &str)],
    ) -> Result<(String, String, String), OpenError> {
        let variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let surroundings =
            StoreSurroundings { variables: Arc::new(variables), ..StoreSurroundings::system() };
        let endpoint = endpoint.map(str::to_owned);
        let settings = ObjectStoreSettings { endpoint, path_style, ..ObjectStoreSettings::default() };
        let address = bucket_address(bucket, &settings, &surroundings)?;
        assert!(address.endpoint.authority.starts_with(&address.endpoint.origin.host));
        Ok((address.endpoint.authority, address.base, address.region))
    }

    #[tokio::test]
    async fn buckets_in_paths_and_in_hosts() {
        let expect = |authority: &str, base: &str, region: &str| {
            Ok((authority.to_owned(), base.to_owned(), region.to_owned()))
        };
        let aws = expect("bkt.s3.us-east-1.amazonaws.com", "", "us-east-1");
        assert_eq!(address("bkt", None, None, &[]), aws);
        let dotted = expect("s3.eu-west-1.amazonaws.com", "/b.kt", "eu-west-1");
        assert_eq!(address("b.kt", None, None, &[("AWS_REGION", "eu-west-1")]), dotted);
        let china = expect("bkt.s3.cn-north-1.amazonaws.com.cn", "", "cn-north-1");
        assert_eq!(address("bkt", None, None, &[("AWS_DEFAULT_REGION", "cn-north-1")]), china);
        let own = expect("127.0.0.1:9000", "/bkt", "us-east-1");
        assert_eq!(address("bkt", Some("http://127.0.0.1:9000/"), None, &[]), own);
        let below = expect("h", "/s3/bkt", "us-east-1");
        assert_eq!(address("bkt", Some("https://h/s3"), None, &[]), below);
        let named = expect("bkt.objects.test:81", "", "us-east-1");
        assert_eq!(address("bkt", Some("http://objects.test:81"), Some(false), &[]), named);
        let variables = [("AWS_ENDPOINT_URL", "http://a"), ("AWS_ENDPOINT_URL_S3", "http://b")];
        assert_eq!(address("bkt", None, None, &variables), expect("b", "/bkt", "us-east-1"));
    }

    #[tokio::test]
    async fn what_is_no_place_is_refused() {
        for (endpoint, path_style) in [
            ("127.0.0.1:9000", None),
            ("http://127.0.0.1", Some(false)),
            ("http://u:p@h", None),
            ("ftp://h", None),
        ] {
            let error = address("bkt", Some(endpoint), path_style, &[]).expect_err(endpoint);
            assert!(!error.to_string().contains("u:p"), "{error}");
        }
        assert!(address("bkt", None, None, &[("AWS_REGION", "a/b")]).is_err());
    }
}
