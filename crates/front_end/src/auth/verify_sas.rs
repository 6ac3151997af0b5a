//! Verifying a shared access signature: what it grants, or why it is refused.
//!
//! Pure: the stored policy that a token names is fetched by the caller between [`SasRequest::policy_id`] and
//! here.

use super::bearer::Principal;
use super::delegation::{BoundRequest, DelegationKey, write_delegation_string};
use super::grant::{Grant, KeyBounds};
use super::sas::{ACCOUNT_SAS_SINCE, RESOURCE_KIND_SINCE, SERVICE_SAS_SINCE, SasService, SasToken};
use super::signature::{ClaimedSignature, SignSink, SigningKey};
use crate::accounts::Account;
use crate::error::ApiError;
use crate::error::error_code::ErrorCode;
use base::Ticks;
use service::{StoredPolicy, parse_date_time};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::time::UNIX_EPOCH;

/// What a service signature on a request must be for.
#[derive(Clone, Debug)]
pub(crate) struct SignedResource<'a> {
    /// Whose layout.
    pub(crate) service: SasService,
    /// The name below the account that is signed, decoded.
    pub(crate) name: Cow<'a, str>,
    /// The table, queue or blob container, whose stored policies count.
    pub(crate) container: Cow<'a, str>,
    /// The snapshot or version that a blob request names.
    pub(crate) snapshot: &'a str,
}

/// A token and the request it came with.
#[derive(Clone)]
pub(crate) struct SasRequest<'a> {
    /// The token.
    pub(crate) token: SasToken<'a>,
    /// What it is for, unless it is for the account.
    pub(crate) resource: SignedResource<'a>,
    /// What of the request a signature may bind.
    pub(crate) bound: BoundRequest<'a>,
    /// The client's address, if known.
    pub(crate) peer: Option<IpAddr>,
    /// Whether the connection is encrypted.
    pub(crate) encrypted: bool,
    /// The server's time.
    pub(crate) now: Ticks,
}

impl<'a> SasRequest<'a> {
    /// The stored policy of the container that must be fetched first.
    pub(crate) fn policy_id(&self) -> Option<&'a str> {
        if self.token.is_account() || self.token.is_delegated() {
            return None;
        }
        self.token.field("si").filter(|id| !id.is_empty())
    }
}

/// What a signature of the Blob service can be for, and since which version.
const BLOB_RESOURCES_SINCE: [(&str, &str); 5] = [
    ("b", SERVICE_SAS_SINCE),
    ("c", SERVICE_SAS_SINCE),
    ("bs", RESOURCE_KIND_SINCE),
    ("bv", RESOURCE_KIND_SINCE),
    ("d", "2020-02-10"),
];

/// The first version of signatures with a user delegation key.
const DELEGATION_SINCE: &str = "2018-11-09";

fn failed(detail: impl Into<String>) -> ApiError {
    ApiError::with_detail(ErrorCode::AuthenticationFailed, detail)
}

/// Verifies signature, time, source and protocol. `policies` are those of the container, if the token names
/// one.
pub(crate) fn verify_sas(
    account: &Account,
    request: &SasRequest<'_>,
    policies: &[StoredPolicy],
) -> Result<Grant, ApiError> {
    verify_sas_of(account, request, policies, None)
}

/// The same for a request with a bearer token, to whose user the signature may be limited.
pub(crate) fn verify_sas_of(
    account: &Account,
    request: &SasRequest<'_>,
    policies: &[StoredPolicy],
    principal: Option<&Principal>,
) -> Result<Grant, ApiError> {
    let token = request.token;
    if !token.is_account() && request.resource.service == SasService::Blob {
        check_blob_resource(token, &request.resource)?;
    }
    match token.is_delegated() {
        true => verify_delegation(account, request, principal)?,
        false => verify_signature(account, request)?,
    }
    if token.is_account() {
        let required = |name: &str| match token.field(name) {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(failed(format!("{name} is mandatory. Cannot be empty"))),
        };
        if token.version() < ACCOUNT_SAS_SINCE {
            return Err(failed("sv is not a version that account signatures exist in."));
        }
        check_time(token.field("st"), &required("se")?, request.now)?;
        check_source(request)?;
        return Ok(Grant::Account {
            services: required("ss")?,
            resource_types: required("srt")?,
            permissions: required("sp")?,
        });
    }
    if token.version() < SERVICE_SAS_SINCE {
        return Err(failed("sv is mandatory and must be a version that service signatures exist in."));
    }
    let policy = match request.policy_id() {
        None => None,
        Some(id) => Some(
            policies
                .iter()
                .find(|policy| policy.id == id)
                .ok_or_else(|| failed("The stored access policy named by si does not exist."))?,
        ),
    };
    let permissions = combine("sp", token, policy.and_then(|policy| policy.permission.clone()))?;
    let start = combine("st", token, policy.and_then(|policy| policy.start).map(service::date_time_text))?;
    let expiry = combine("se", token, policy.and_then(|policy| policy.expiry).map(service::date_time_text))?;
    let missing = |name: &str| failed(format!("{name} is mandatory. Cannot be empty"));
    let expiry = expiry.ok_or_else(|| missing("se"))?;
    check_time(start.as_deref(), &expiry, request.now)?;
    check_source(request)?;
    Ok(Grant::Service {
        resource: request.resource.name.clone().into_owned(),
        permissions: permissions.ok_or_else(|| missing("sp"))?,
        range: KeyBounds { start: bound(token, "spk", "srk")?, end: bound(token, "epk", "erk")? },
    })
}

/// Refuses kinds of resources that the token's version does not have. Old versions don't sign the kind, and
/// none signs the depth: adding them to a token must not change its scope.
fn check_blob_resource(token: SasToken<'_>, resource: &SignedResource<'_>) -> Result<(), ApiError> {
    for name in ["sr", "sdd", "sv"] {
        if token.count(name) > 1 {
            return Err(failed(format!("{name} is given more than once.")));
        }
    }
    let Some(kind) = token.field("sr") else { return Ok(()) };
    let Some((_, since)) = BLOB_RESOURCES_SINCE.iter().find(|(known, _)| *known == kind) else {
        return Err(failed("sr must be b, c, bs, bv or d."));
    };
    if token.version() < *since {
        return Err(failed(format!("sr={kind} needs version {since} or a later one.")));
    }
    if kind == "d" {
        let folder = resource.name.get(resource.container.len() + 1..).unwrap_or_default();
        let depth = if folder.is_empty() { 0 } else { folder.split('/').count() };
        if token.field("sdd").and_then(|depth| depth.parse().ok()) != Some(depth) {
            return Err(failed("sdd must be the depth of a directory that the request is below."));
        }
    }
    Ok(())
}

/// Verifies a signature under a user delegation key.
fn verify_delegation(
    account: &Account,
    request: &SasRequest<'_>,
    principal: Option<&Principal>,
) -> Result<(), ApiError> {
    let token = request.token;
    let SignedResource { service, name, snapshot, .. } = &request.resource;
    let resource = (*service, account.name(), name.as_ref(), *snapshot);
    let key = DelegationKey::of_token(&token)
        .filter(|_| *service != SasService::Table && token.version() >= DELEGATION_SINCE)
        .ok_or_else(|| {
            failed("The user delegation key is not described by skoid, sktid, ske, sks and skv.")
        })?;
    let signature = token.signature();
    let claimed = ClaimedSignature::parse(signature.as_bytes());
    let verifies = |claimed: &ClaimedSignature| {
        account.keys().iter().any(|own| {
            let derived = SigningKey::new(&key.derive(account.name(), own));
            derived.verifies(claimed, |sink| write_delegation_string(&token, resource, request.bound, sink))
        })
    };
    if !claimed.as_ref().is_some_and(verifies) {
        let mut text = Vec::new();
        write_delegation_string(&token, resource, request.bound, &mut text);
        return Err(failed(format!(
            "Signature did not match. String to sign used was {}",
            String::from_utf8_lossy(&text)
        )));
    }
    if !key.is_good(*service, request.now) {
        return Err(failed("The user delegation key is not valid at this time or for this service."));
    }
    check_user(token.field("sduoid").unwrap_or_default(), key.delegated_tid, principal)
}

/// Refuses principals other than the only user of a signature, if it has one. An empty `tenant` is any.
fn check_user(user: &str, tenant: &str, principal: Option<&Principal>) -> Result<(), ApiError> {
    if user.is_empty() {
        return match tenant.is_empty() {
            true => Ok(()),
            false => Err(failed("skdutid needs sduoid.")),
        };
    }
    let is_user = |principal: &Principal| {
        principal.object_id.eq_ignore_ascii_case(user)
            && (tenant.is_empty() || principal.tenant_id.eq_ignore_ascii_case(tenant))
    };
    match principal.is_some_and(is_user) {
        true => Ok(()),
        false => Err(failed("The signature is for one user, whose token the request must bear.")),
    }
}

fn verify_signature(account: &Account, request: &SasRequest<'_>) -> Result<(), ApiError> {
    if let Some(claimed) = ClaimedSignature::parse(request.token.signature().as_bytes()) {
        for key in account.keys() {
            if key.verifies(&claimed, |sink| {
                write_string(request.token, &request.resource, account.name(), sink)
            }) {
                return Ok(());
            }
        }
    }
    let mut text = Vec::new();
    write_string(request.token, &request.resource, account.name(), &mut text);
    Err(failed(format!(
        "Signature did not match. String to sign used was {}",
        String::from_utf8_lossy(&text)
    )))
}

/// Writes the string that a token signs, unless it is signed with a user delegation key.
pub(crate) fn write_string(
    token: SasToken<'_>,
    resource: &SignedResource<'_>,
    account: &str,
    sink: &mut impl SignSink,
) {
    if token.is_account() {
        token.write_account_string(account, sink);
    } else {
        let SignedResource { service, name, snapshot, .. } = resource;
        token.write_service_string(*service, account, name, snapshot, sink);
    }
}

/// A field comes from the token or from the policy; from both is an error, as the reference says.
fn combine(
    name: &'static str,
    token: SasToken<'_>,
    stored: Option<String>,
) -> Result<Option<String>, ApiError> {
    let sent = token.field(name).filter(|value| !value.is_empty());
    match (sent, stored.filter(|value| !value.is_empty())) {
        (Some(_), Some(_)) => Err(ApiError::with_message(
            ErrorCode::InvalidQueryParameterValue,
            format!("{name} is given by the token and by its stored access policy."),
        )),
        (sent, stored) => Ok(sent.map(str::to_owned).or(stored)),
    }
}

fn check_time(start: Option<&str>, expiry: &str, now: Ticks) -> Result<(), ApiError> {
    let parse = |name: &str, text: &str| {
        parse_date_time(text).map_err(|_| failed(format!("{name} is not a date that signatures may have.")))
    };
    let start = match start.filter(|start| !start.is_empty()) {
        Some(start) => parse("st", start)?,
        // As the service: so a token that is over and says no start seems to end before it starts.
        None => now,
    };
    let expiry = parse("se", expiry)?;
    let text = |at: Ticks| httpdate::fmt_http_date(UNIX_EPOCH + at.min(service::TICKS_MAX).since_unix());
    if expiry <= start {
        return Err(failed(format!(
            "Signed expiry time [{}] has to be after signed start time [{}]",
            text(expiry),
            text(start)
        )));
    }
    if now < start || now >= expiry {
        return Err(failed(format!(
            "Signature not valid in the specified time frame: Start [{}] - Expiry [{}] - Current [{}]",
            text(start),
            text(expiry),
            text(now)
        )));
    }
    Ok(())
}

fn check_source(request: &SasRequest<'_>) -> Result<(), ApiError> {
    if let Some(range) = request.token.field("sip").filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let parse = |text: &str| {
            let address: Result<Ipv4Addr, _> = text.trim().parse();
            address.map_err(|_| failed("sip is not an IPv4 address or range."))
        };
        let (first, last) = (parse(first)?, parse(last)?);
        let peer = request.peer.map(|peer| peer.to_canonical());
        let inside = matches!(peer, Some(IpAddr::V4(peer)) if first <= peer && peer <= last);
        if !inside {
            return Err(ErrorCode::AuthorizationSourceIPMismatch.into());
        }
    }
    match request.token.field("spr").filter(|protocols| !protocols.is_empty()) {
        Some("https") if !request.encrypted => Err(ErrorCode::AuthorizationProtocolMismatch.into()),
        None | Some("https" | "https,http" | "http,https") => Ok(()),
        Some(_) => Err(failed("spr must be https or https,http.")),
    }
}

fn bound(
    token: SasToken<'_>,
    partition: &str,
    row: &str,
) -> Result<Option<(String, Option<String>)>, ApiError> {
    let row_key = token.field(row).map(str::to_owned);
    match token.field(partition) {
        Some(partition_key) => Ok(Some((partition_key.to_owned(), row_key))),
        None if row_key.is_some() => Err(failed(format!("{row} needs {partition}."))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::query_string::QueryParameters;

    static NO_HEADERS: std::sync::LazyLock<hyper::header::HeaderMap> =
        std::sync::LazyLock::new(Default::default);
    const NOW: &str = "2026-11-21T09:00:00Z";

    fn request<'a>(parameters: &'a QueryParameters<'a>, now: &str) -> SasRequest<'a> {
        let token = SasToken::find(parameters).expect("a token");
        let table = token.field("tn").unwrap_or_default();
        SasRequest {
            token,
            resource: SignedResource {
                service: SasService::Table,
                name: table.into(),
                container: table.into(),
                snapshot: "",
            },
            bound: BoundRequest { headers: &NO_HEADERS, query: parameters },
            peer: Some("10.0.0.5".parse().expect("address")),
            encrypted: false,
            now: parse_date_time(now).expect("date"),
        }
    }

    fn verify(query: &str, policies: &[StoredPolicy]) -> Result<Grant, ErrorCode> {
        let account = Account::new("contoso", &["AAECAw=="]).expect("an account");
        let parameters = QueryParameters::parse(Some(query)).expect("parameters");
        let unsigned = request(&parameters, NOW);
        let signature =
            account.keys()[0].sign(|sink| write_string(unsigned.token, &unsigned.resource, "contoso", sink));
        let query = query.replace("sig=x", &format!("sig={}", signature.replace('+', "%2B")));
        let parameters = QueryParameters::parse(Some(&query)).expect("parameters");
        verify_sas(&account, &request(&parameters, NOW), policies).map_err(|error| error.code)
    }

    const ACCOUNT: &str = "sv=2019-02-02&ss=t&srt=o&sp=r&sig=x";

    #[test]
    fn account_signatures_are_checked_in_order() {
        use ErrorCode::*;
        let check = |more: &str| verify(&format!("{ACCOUNT}&{more}"), &[]).err();
        assert_eq!(check("se=2026-12-01"), None);
        assert_eq!(check("se=2026-11-21T09:00Z"), Some(AuthenticationFailed));
        assert_eq!(check("se=2026-12-01&st=2026-11-21T09:01Z"), Some(AuthenticationFailed));
        assert_eq!(check("st=2026-01-01"), Some(AuthenticationFailed));
        assert_eq!(check("se=2026-12-01&sip=10.0.0.1-10.0.0.9"), None);
        assert_eq!(check("se=2026-12-01&sip=10.0.0.6"), Some(AuthorizationSourceIPMismatch));
        assert_eq!(check("se=2026-12-01&sip=x"), Some(AuthenticationFailed));
        assert_eq!(check("se=2026-12-01&spr=https"), Some(AuthorizationProtocolMismatch));
        assert_eq!(check("se=2026-12-01&spr=https,http"), None);
        assert_eq!(check("se=2026-12-01&spr=http"), Some(AuthenticationFailed));
    }

    /// The words are those of the service's own answers.
    #[test]
    fn refusals_say_why() {
        let of = |query: &str| {
            let account = Account::new("contoso", &["AAECAw=="]).expect("an account");
            let parameters = QueryParameters::parse(Some(query)).expect("parameters");
            let unsigned = request(&parameters, NOW);
            let signature = account.keys()[0]
                .sign(|sink| write_string(unsigned.token, &unsigned.resource, "contoso", sink));
            let query = query.replace("sig=x", &format!("sig={}", signature.replace('+', "%2B")));
            let parameters = QueryParameters::parse(Some(&query)).expect("parameters");
            let error = verify_sas(&account, &request(&parameters, NOW), &[]).expect_err("refused");
            error.detail().unwrap_or_default().to_owned()
        };
        let table = "sv=2019-02-02&tn=People&sig=x";
        for (query, detail) in [
            (
                format!("{ACCOUNT}&st=2026-11-19&se=2026-11-20T18:00Z"),
                "Signature not valid in the specified time frame: Start [Thu, 19 Nov 2026 00:00:00 GMT] - Expiry [Fri, 20 Nov 2026 18:00:00 GMT] - Current [Sat, 21 Nov 2026 09:00:00 GMT]",
            ),
            (
                format!("{ACCOUNT}&se=2026-11-20"),
                "Signed expiry time [Fri, 20 Nov 2026 00:00:00 GMT] has to be after signed start time [Sat, 21 Nov 2026 09:00:00 GMT]",
            ),
            (
                format!("{ACCOUNT}&st=2026-12-02&se=2026-12-01"),
                "Signed expiry time [Tue, 01 Dec 2026 00:00:00 GMT] has to be after signed start time [Wed, 02 Dec 2026 00:00:00 GMT]",
            ),
            (format!("{table}&sp=r"), "se is mandatory. Cannot be empty"),
            (format!("{table}&se=2026-12-01"), "sp is mandatory. Cannot be empty"),
        ] {
            assert_eq!(of(&query), detail, "{query}");
        }
    }

    #[test]
    fn a_policy_fills_in_what_the_token_leaves_out() {
        let policy = StoredPolicy {
            id: "pol1".into(),
            expiry: Some(parse_date_time("2026-12-01").expect("date")),
            permission: Some("ra".into()),
            ..StoredPolicy::default()
        };
        let policies = [policy];
        let query = "sv=2019-02-02&tn=People&si=pol1&sig=x";
        let grant = verify(query, &policies).expect("granted");
        assert!(matches!(grant, Grant::Service { permissions, .. } if permissions == "ra"));
        assert_eq!(verify(query, &[]), Err(ErrorCode::AuthenticationFailed));
        let both = format!("{query}&sp=r");
        assert_eq!(verify(&both, &policies), Err(ErrorCode::InvalidQueryParameterValue));
    }

    #[test]
    fn a_row_bound_needs_its_partition_bound() {
        let query = "sv=2019-02-02&tn=People&sp=r&se=2026-12-01&sig=x";
        assert!(verify(query, &[]).is_ok());
        assert_eq!(verify(&format!("{query}&srk=a"), &[]), Err(ErrorCode::AuthenticationFailed));
        let grant = verify(&format!("{query}&spk=a&srk=b&epk=c"), &[]).expect("granted");
        let Grant::Service { range, .. } = grant else { panic!("a table's grant") };
        assert_eq!(range.start, Some(("a".into(), Some("b".into()))));
        assert_eq!(range.end, Some(("c".into(), None)));
    }

    const DELEGATED: &str = "sv=2026-06-06&sp=r&se=2026-12-01&skoid=o&sktid=t&skt=2026-11-20T00:00:00Z\
        &ske=2026-11-25T00:00:00Z&skv=2026-06-06&sig=x";

    /// Signs for the queue "tasks" with the key that `query` names, then verifies it with `added` behind it.
    fn verify_delegated(query: &str, added: &str, bearer: Option<(&str, &str)>) -> bool {
        let account = Account::new("contoso", &["AAECAw=="]).expect("an account");
        let at_queue = |parameters| SasRequest {
            resource: SignedResource {
                service: SasService::Queue,
                name: "tasks".into(),
                container: "tasks".into(),
                snapshot: "",
            },
            ..request(parameters, NOW)
        };
        let parameters = QueryParameters::parse(Some(query)).expect("parameters");
        let unsigned = at_queue(&parameters);
        let key = DelegationKey::of_token(&unsigned.token).expect("a key");
        let signature = SigningKey::new(&key.derive("contoso", &account.keys()[0])).sign(|sink| {
            let resource = (SasService::Queue, "contoso", "tasks", "");
            write_delegation_string(&unsigned.token, resource, unsigned.bound, sink);
        });
        let query = query.replace("sig=x", &format!("sig={}", signature.replace('+', "%2B")));
        let query = format!("{query}{added}");
        let parameters = QueryParameters::parse(Some(&query)).expect("parameters");
        let principal = bearer
            .map(|(object, tenant)| Principal { object_id: object.to_owned(), tenant_id: tenant.to_owned() });
        verify_sas_of(&account, &at_queue(&parameters), &[], principal.as_ref()).is_ok()
    }

    #[test]
    fn a_delegated_signature_is_for_its_service_and_user() {
        let query = format!("{DELEGATED}&sks=q");
        assert!(verify_delegated(&query, "", None));
        assert!(!verify_delegated(&format!("{DELEGATED}&sks=b"), "", None));
        let bound = format!("{query}&sduoid=u");
        assert!(!verify_delegated(&bound, "", None) && !verify_delegated(&bound, "", Some(("v", "t"))));
        assert!(verify_delegated(&bound, "", Some(("u", "t"))));
        let of_tenant = format!("{bound}&skdutid=d");
        assert!(!verify_delegated(&of_tenant, "", Some(("u", "t"))));
        assert!(verify_delegated(&of_tenant, "", Some(("u", "d"))));
        assert!(!verify_delegated(&format!("{query}&skdutid=d"), "", Some(("u", "d"))), "a tenant alone");
    }

    #[test]
    fn a_delegated_signature_is_never_one_for_the_account() {
        let query = format!("{DELEGATED}&sks=q");
        assert!(!verify_delegated(&query, "&ss=q&srt=sco", None));
        assert!(!verify_delegated(&query, "&ss=q", None));
    }

    #[test]
    fn a_wrong_signature_shows_the_string() {
        let account = Account::new("contoso", &["AAECAw=="]).expect("an account");
        let parameters =
            QueryParameters::parse(Some("sv=2019-02-02&tn=People&sp=r&sig=AAAA")).expect("parameters");
        let error = verify_sas(&account, &request(&parameters, NOW), &[]).expect_err("refused");
        assert!(error.detail().is_some_and(|detail| detail.contains("/table/contoso/people")));
    }
}
