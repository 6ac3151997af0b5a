//! Holds `openapi.json` and the server to each other: every path, verb and role of one is in the other, every
//! answer is one that is described, and every described answer was seen.

use super::*;
use crate::admin::answers::{Admin, Head};
use crate::admin::readiness::Layers;
use crate::admin::route::{Addressed, ENDPOINTS, OwnNames};
use crate::admin::token_store::TOKEN_FILE_NAME;
use crate::admin::tokens::{ROLES, Role, Tokens};
use crate::configuration::simulation::Simulated;
use base::memory_disk::MemoryDisk;
use partition::{PartitionSettings, Partitions};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use stream::{IN_MEMORY_SEGMENT_SIZE_BYTES, StreamSettings, Streams};

/// What is not seen here: the first two need sockets, the third sixteen tries that wait, each of one
/// endpoint.
const SEEN_ELSEWHERE: [u16; 3] = [408, 413, 429];

fn description() -> Value {
    serde_json::from_str(DESCRIPTION).expect("JSON")
}

/// What is wrong with a value, by a schema.
fn mistake(all: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema = all.pointer(name.trim_start_matches('#')).expect("it is described");
        return mistake(all, schema, value, at);
    }
    if value.is_null() && schema["nullable"] == true {
        return None;
    }
    let is_of_type = match schema["type"].as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("{other} is not known"),
    };
    let is_one_of = schema["enum"].as_array().is_none_or(|values| values.contains(value));
    let number = value.as_f64().unwrap_or(0.0);
    let is_within = schema["minimum"].as_f64().is_none_or(|least| number >= least)
        && schema["maximum"].as_f64().is_none_or(|most| number <= most);
    if !is_of_type || !is_one_of || !is_within {
        return Some(format!("{at}: {value} is not {schema}"));
    }
    if let Some(items) = value.as_array() {
        return items.iter().find_map(|item| mistake(all, &schema["items"], item, &format!("{at}[]")));
    }
    let fields = value.as_object()?;
    let properties = schema["properties"].as_object();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Some(format!("{at}: {missing} is missing"));
    }
    fields.iter().find_map(|(name, field)| match properties.and_then(|known| known.get(name)) {
        Some(schema) => mistake(all, schema, field, &format!("{at}.{name}")),
        None if schema["additionalProperties"] == false => Some(format!("{at}: {name} is not described")),
        None => None,
    })
}

/// An admin side, and what was seen of it.
struct Trial {
    admin: Arc<Admin>,
    readiness: Arc<Readiness>,
    tokens: Tokens,
    description: Value,
    seen: BTreeSet<(String, u16)>,
}

impl Trial {
    fn new(folder: &std::path::Path, env: &base::Environment, beyond: bool, has_tokens: bool) -> Self {
        let readiness = Readiness::starting();
        let beyond = beyond.then(|| "admin.example".to_owned());
        let (metrics, clock) = (env.metrics.clone(), env.clock.clone());
        let names = OwnNames { given: beyond, ..OwnNames::default() };
        let admin = Arc::new(Admin::new(readiness.clone(), metrics, clock, "1.2.3", names));
        let path = folder.join(TOKEN_FILE_NAME);
        let store = TokenStore::open(&path).expect("tokens");
        let tokens = Tokens::parse(&std::fs::read_to_string(&path).expect("a file")).expect("tokens");
        if has_tokens {
            admin.note_tokens(store);
        }
        Trial { admin, readiness, tokens, description: description(), seen: BTreeSet::new() }
    }

    /// Sends a request; its answer has to be described.
    async fn send(&mut self, verb: (&str, &str), role: Option<Role>, body: &str) -> (u16, Value) {
        let token = role.and_then(|role| self.tokens.token(Some(role))).map(str::to_owned);
        self.send_to("127.0.0.1:1", verb, token.as_deref(), body).await
    }

    async fn send_to(
        &mut self,
        host: &str,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: &str,
    ) -> (u16, Value) {
        let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let addressed = Addressed { host: Some(host), crosses: false, local };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let head = Head { method, path, query, addressed, token, peer: SocketAddr::new(local, 2) };
        let answer = match self.admin.admit(head).await {
            Ok(admitted) => self.admin.answer(admitted, body.as_bytes()).await,
            Err(refused) => refused,
        };
        let described = &self.description["paths"][path][method.to_lowercase()];
        let response = &described["responses"][answer.status.to_string()];
        assert!(response.is_object(), "{method} {path}: {} is not described: {}", answer.status, answer.body);
        let media = answer.content_type.split(';').next().expect("a media type");
        let schema = &response["content"][media]["schema"];
        let value = match media {
            "application/json" => serde_json::from_str(&answer.body).expect("JSON"),
            _ => Value::String(answer.body.into_owned()),
        };
        assert!(schema.is_object(), "{method} {path}: {media} is not described for {}", answer.status);
        assert_eq!(mistake(&self.description, schema, &value, path), None);
        self.seen.insert((described["operationId"].as_str().expect("an id").to_owned(), answer.status));
        (answer.status, value)
    }
}

async fn layers(env: &base::Environment) -> Layers {
    let settings = StreamSettings {
        reserve_size_bytes: 0,
        journal_segment_size_bytes: IN_MEMORY_SEGMENT_SIZE_BYTES,
        ..StreamSettings::default()
    };
    let streams = Streams::open(env, settings).await.expect("streams");
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await;
    Layers { streams, partitions: Arc::new(partitions.expect("ranges")), disk: env.disk.clone() }
}

/// An API whose settings are read again with these outcomes, one after the other.
fn api(env: &base::Environment, simulates: bool, outcomes: Vec<Result<String, String>>) -> Api {
    let (settings, mut requests) = SettingsControl::new(Arc::new([]));
    tokio::spawn(async move {
        for outcome in outcomes {
            let request: tokio::sync::oneshot::Sender<_> = requests.recv().await.expect("a request");
            let _ = request.send(outcome);
        }
    });
    let simulated = Simulated::read("azure".as_ref()).expect("a profile");
    let simulation = simulates.then(|| simulated.control());
    let log = crate::output::log::control_for_tests();
    Api::new(
        Handles { log, settings, simulation, slow: Arc::default(), storage: "in memory".to_owned() },
        env,
    )
}

/// A body that each endpoint takes.
fn good_body(path: &str) -> Value {
    match path {
        "/api/v1/log-level" => json!({ "levels": "warn,partition=info" }),
        "/api/v1/split" => json!({ "table": "entity", "range": 0 }),
        "/api/v1/drain" => json!({ "draining": false }),
        "/api/v1/simulate" => json!({ "profile": "azure-large" }),
        "/api/v1/token" => json!({ "role": "read" }),
        _ => json!({}),
    }
}

#[test]
fn paths_verbs_and_roles_are_those_that_are_described() {
    let description = description();
    let mut described = BTreeSet::new();
    for (path, verbs) in description["paths"].as_object().expect("paths") {
        for (verb, operation) in verbs.as_object().expect("verbs") {
            let role = operation["x-role"].as_str().map(str::to_owned);
            let secured = operation["security"].as_array().is_some_and(|needed| !needed.is_empty());
            assert_eq!(secured, role.is_some(), "{verb} {path}");
            described.insert((verb.to_uppercase(), path.clone(), role));
        }
    }
    let of_endpoint = |endpoint: &crate::admin::route::Endpoint| {
        let role = endpoint.role.map(|role| role.name().to_owned());
        (endpoint.method.to_owned(), endpoint.path.to_owned(), role)
    };
    assert_eq!(described, ENDPOINTS.iter().map(of_endpoint).collect());
}

/// Refusals that all endpoints have: no token, too low a role, another host, a server that starts.
async fn send_refused(env: &base::Environment, folder: &std::path::Path) -> BTreeSet<(String, u16)> {
    let mut seen = BTreeSet::new();
    for endpoint in &ENDPOINTS {
        let verb = (endpoint.method, endpoint.path);
        let is_public = endpoint.role.is_none();
        let mut trial = Trial::new(folder, env, is_public, true);
        let foreign = trial.send_to("example.org", verb, None, "").await.0;
        assert_eq!((trial.send(verb, None, "").await.0, foreign), (401, 403), "{verb:?}");
        let lower = ROLES.into_iter().rev().find(|role| endpoint.role.is_some_and(|needed| *role < needed));
        if let Some(lower) = lower {
            assert_eq!(trial.send(verb, Some(lower), "").await.0, 403, "{verb:?}");
        }
        let wrong = trial.send_to("127.0.0.1", verb, Some("0"), "").await;
        assert_eq!((wrong.0, &wrong.1["error"]["code"]), (401, &json!("token_wrong")));
        seen.append(&mut trial.seen);
        let mut starting = Trial::new(folder, env, is_public, !is_public);
        assert_eq!(starting.send(verb, endpoint.role.or(Some(Role::Read)), "").await.0, 503, "{verb:?}");
        seen.append(&mut starting.seen);
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_described_and_every_described_answer_is_given() {
    let folder = tempfile::tempdir().expect("a folder");
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let mut seen = send_refused(&env, folder.path()).await;
    let mut trial = Trial::new(folder.path(), &env, false, true);
    assert_eq!(trial.send(("GET", "/ready"), None, "").await.0, 503);
    let layers = layers(&env).await;
    trial.readiness.note_serving(layers.clone());
    let outcomes = vec![Ok("done".to_owned()), Err("a mistake".to_owned())];
    trial.admin.note_serving(api(&env, true, outcomes));
    for endpoint in &ENDPOINTS {
        let verb = (endpoint.method, endpoint.path);
        let mut body = good_body(endpoint.path);
        if endpoint.path == "/api/v1/split" {
            let ranges = trial.send(("GET", "/api/v1/ranges"), Some(Role::Read), "").await.1;
            let is_entity = |range: &&Value| range["table"] == "entity";
            let found = ranges["ranges"].as_array().and_then(|ranges| ranges.iter().find(is_entity));
            body["range"] = found.expect("a range")["range"].clone();
        }
        if endpoint.role > Some(Role::Read) {
            for wrong in ["[]", "{\"nonsense\":1}", "{"] {
                assert_eq!(trial.send(verb, endpoint.role, wrong).await.0, 400, "{verb:?} {wrong}");
            }
        }
        let (status, answer) = trial.send(verb, endpoint.role, &body.to_string()).await;
        assert_eq!(status, 200, "{verb:?}: {answer}");
    }
    assert_eq!(trial.send(("POST", "/api/v1/settings/reload"), Some(Role::Admin), "").await.0, 409);
    let absent = "{\"table\":\"entity\",\"range\":99999}";
    for path in ["/api/v1/flush", "/api/v1/compact", "/api/v1/split"] {
        assert_eq!(trial.send(("POST", path), Some(Role::Operate), absent).await.0, 404, "{path}");
    }
    for (query, status) in [("top=no", 400), ("range=99999", 404), ("top=5&hours=4&rows=7&table=entity", 200)]
    {
        let path = format!("/api/v1/heat?{query}");
        assert_eq!(trial.send(("GET", &path), Some(Role::Admin), "").await.0, status, "{query}");
    }
    seen.append(&mut trial.seen);
    seen.append(&mut send_while_busy(folder.path(), &env, layers).await);
    let mut described = BTreeSet::new();
    for verbs in trial.description["paths"].as_object().expect("paths").values() {
        for operation in verbs.as_object().expect("verbs").values() {
            let id = operation["operationId"].as_str().expect("an id");
            let statuses = operation["responses"].as_object().expect("responses").keys();
            described.extend(statuses.map(|status| (id.to_owned(), status.parse().expect("a status"))));
        }
    }
    described.retain(|(_, status)| !SEEN_ELSEWHERE.contains(status));
    assert_eq!(described.difference(&seen).collect::<Vec<_>>(), Vec::<&(String, u16)>::new());
}

/// Tasks that never run.
#[derive(Default)]
struct HeldTasks(parking_lot::Mutex<Vec<base::BoxFuture<'static, ()>>>);

impl Spawner for HeldTasks {
    fn spawn(&self, _: &'static str, task: base::BoxFuture<'static, ()>) {
        self.0.lock().push(task);
    }
    fn spawn_dedicated(&self, name: &'static str, task: base::BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.spawn(name, task);
        Ok(())
    }
    fn spawn_background(
        &self,
        name: &'static str,
        task: base::BoxFuture<'static, ()>,
    ) -> std::io::Result<()> {
        self.spawn(name, task);
        Ok(())
    }
    fn start_thread(&self, _: &'static str) -> std::io::Result<Arc<dyn base::TaskThread>> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

/// What an API without a simulation refuses, and one with a change under way; and one that waits for nothing.
async fn send_while_busy(
    folder: &std::path::Path,
    env: &base::Environment,
    layers: Layers,
) -> BTreeSet<(String, u16)> {
    let mut trial = Trial::new(folder, env, false, true);
    trial.readiness.note_serving(layers);
    let mut api = api(env, false, Vec::new());
    api.wait_max = Duration::ZERO;
    let held = Arc::new(HeldTasks::default());
    api.spawner = held.clone();
    trial.admin.note_serving(api);
    let operate = Some(Role::Operate);
    let simulate = trial.send(("PUT", "/api/v1/simulate"), operate, "{\"profile\":\"azure\"}").await;
    assert_eq!(simulate.0, 409);
    for path in ["/api/v1/flush", "/api/v1/compact", "/api/v1/split"] {
        let body = "{\"table\":\"entity\",\"range\":1}";
        assert_eq!(trial.send(("POST", path), operate, body).await.0, 202, "{path}");
        // It goes on, and others are refused as long.
        assert_eq!(trial.send(("POST", path), operate, body).await.0, 409, "{path}");
        held.0.lock().clear();
    }
    trial.seen
}

/// Sixteen wrong tokens wait; the next one is refused at once, and a right one waits for nothing.
#[tokio::test]
async fn many_wrong_tokens_at_once_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let trial = Arc::new(Trial::new(folder.path(), &env, false, true));
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let addressed = Addressed { host: Some("localhost"), crosses: false, local };
    let admit = async |token: &str| {
        let (method, path) = ("GET", "/api/v1/status");
        let head =
            Head { method, path, query: "", addressed, token: Some(token), peer: SocketAddr::new(local, 2) };
        trial.admin.admit(head).await.map_err(|refused| refused.status)
    };
    let tries = std::pin::pin!(async {
        tokio::join!(
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
            admit("1"),
        )
    });
    let right = trial.tokens.token(Some(Role::Read)).expect("a token");
    let one_more = async {
        assert_eq!(admit("1").await.expect_err("wrong"), 429);
        assert!(admit(right).await.is_ok());
    };
    tokio::select! {
        biased;
        _ = tries => panic!("they wait"),
        () = one_more => {}
    }
}

/// A rotation wrote its file on the thread that answers `/health`, and held the lock by which tokens are
/// compared.
#[tokio::test]
async fn a_stalled_disk_stalls_neither_health_nor_tokens() {
    const STALLED_FOR_MAX: Duration = Duration::from_secs(10);
    let folder = tempfile::tempdir().expect("a folder");
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let mut trial = Trial::new(folder.path(), &env, false, true);
    let layers = layers(&env).await;
    trial.readiness.note_serving(layers);
    trial.admin.note_serving(api(&env, false, Vec::new()));
    let admin = trial.admin.clone();
    let (stalled, is_stalled) = std::sync::mpsc::channel();
    let (end, ends) = std::sync::mpsc::channel();
    let disk = std::thread::spawn(move || {
        let _stall = admin.tokens().expect("tokens").stall();
        stalled.send(()).expect("the test");
        ends.recv_timeout(STALLED_FOR_MAX).is_ok()
    });
    is_stalled.recv().expect("a stall");
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let addressed = Addressed { host: Some("localhost"), crosses: false, local };
    let (admin, tokens) = (trial.admin.clone(), trial.tokens.clone());
    let ask = async |(method, path): (&str, &str), role: Role, body: &[u8]| {
        let token = tokens.token(Some(role));
        let head = Head { method, path, query: "", addressed, token, peer: SocketAddr::new(local, 2) };
        let admitted = admin.admit(head).await.map_err(|refused| refused.status).expect("let in");
        admin.answer(admitted, body).await.status
    };
    let others = async {
        let statuses = (
            ask(("GET", "/health"), Role::Read, b"").await,
            ask(("GET", "/api/v1/log-level"), Role::Read, b"").await,
            ask(("GET", "/api/v1/ranges"), Role::Read, b"").await,
            ask(("GET", "/metrics"), Role::Read, b"").await,
        );
        // It may have given up.
        let _ = end.send(());
        statuses
    };
    let rotation = ask(("POST", "/api/v1/token"), Role::Admin, b"{\"role\":\"read\"}");
    assert_eq!(tokio::join!(rotation, others), (200, (200, 200, 200, 200)));
    assert!(disk.join().expect("a thread"), "the others were answered while it was stalled");
    let after = trial.send(("GET", "/api/v1/log-level"), Some(Role::Read), "").await.0;
    assert_eq!(after, 401, "the rotation was done");
}

/// The audit log had the begin of a reload that took long, and nothing behind it.
#[tokio::test]
async fn a_reload_that_takes_long_has_words_for_the_audit_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
    let trial = Trial::new(folder.path(), &env, false, true);
    let mut api = api(&env, false, Vec::new());
    let (settings, _never_read) = SettingsControl::new(Arc::new([]));
    (api.settings, api.wait_max) = (settings, Duration::ZERO);
    let (readiness, tokens) = (&*trial.readiness, trial.admin.tokens().expect("tokens"));
    let call = Call { body: b"", query: "", readiness, metrics: &env.metrics, tokens, version: "1.2.3" };
    let (answer, words) = api.answer(Route::ReloadSettings, call).await;
    let expected = "the file is still being read; the log says what comes of it";
    assert_eq!((answer.status, words.as_deref()), (409, Some(expected)));
}
