//! One pair of kinds: the range is moved from a shard of the one to a shard of the other.

use crate::chance::SeededRandom;
use crate::checks::Found;
use crate::client::{Changed, Client};
use crate::gate::{Gate, GatedBackend, GatedLocal, GatedRecords};
use crate::model::{Model, row};
use crate::places::{Kind, Places, ShardPlace, TABLE, client_settings, surroundings};
use crate::settings::{
    CLOCK_BOUND, OTHER_TENANTS, ROWS_OF_TENANT, SIGNED_FOR, Settings, TENANTS_OF_RANGE, WRITERS,
};
use crate::writers::{Counts, Writing, writer};
use base::memory_disk::MemoryDisk;
use base::{Environment, Random};
use futures_util::future::join_all;
use shard_backend::{
    Backend, BackendError, BatchBounds, DigestKey, FenceHold, MoveMode, Shardlet, choose_move, entity_of_row,
};
use shard_map::{Catalog, Change, Epoch, KeyKind, KeyType, MapBuilder, MappingId, Name, Placement, Shard};
use shard_mover::{
    Certificate, Move, MoveError, MoveId, MoveState, Mover, MoverSettings, NamedDigestKey, PlannedMove,
    Shards,
};
use shard_router::MapSettings;
use shard_store::{CatalogHome, HomeError, LocalStore, MemoryRecords, Records};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use storage_client::{
    AccountAddress, AccountKey, Credentials, DEVELOPMENT_ACCOUNT_KEY, DEVELOPMENT_ACCOUNT_NAME, Service,
    StorageAccount, TableSas,
};

pub(crate) const DIGEST_KEY: [u8; 16] = [7; 16];
const SHARDS: [&str; 3] = ["source", "target", "third"];
/// Rows of a tenant that only clients write that slept.
const SLEPT_NUMBER: i32 = ROWS_OF_TENANT - 1;
/// Movers of one move, at most: more than it has operations that are killed.
const MOVERS_MAX: u32 = 5000;
/// The writers go on for so long before and behind the move.
const AROUND: Duration = Duration::from_millis(500);

/// What a trial came to.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) pair: String,
    rows: u64,
    kills: usize,
    seconds: f64,
    done: u64,
    refused: u64,
    unknown: u64,
    lost: usize,
    twice: usize,
    /// Everything that is off, a line each.
    pub(crate) wrong: Vec<String>,
}

impl Outcome {
    pub(crate) const HEADER: &str =
        "pair                  rows moved  kills  seconds  writes  refused  unknown  lost  twice  verdict";
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { pair, rows, kills, seconds, done, refused, unknown, lost, twice, wrong } = self;
        let verdict = if wrong.is_empty() { "fine" } else { "OFF" };
        write!(
            out,
            "{pair:<20} {rows:>11} {kills:>6} {seconds:>8.1} {done:>7} {refused:>8} {unknown:>8} {lost:>5} {twice:>6}  {verdict}"
        )
    }
}

/// What a trial is made of.
struct Trial {
    pair: String,
    env: Environment,
    settings: Settings,
    places: Places,
    shards: BTreeMap<Name, ShardPlace>,
    records: Arc<dyn Records>,
    model: Arc<Model>,
}

/// Runs a pair; what fails is in its outcome.
pub(crate) async fn run((from, to): (Kind, Kind), settings: Settings) -> Outcome {
    let pair = format!("{from}-{to}");
    let mut outcome = Outcome { pair: pair.clone(), ..Outcome::default() };
    let trial = Trial::start(pair, (from, to), settings).await;
    if let Err(wrong) = trial.run(&mut outcome).await {
        outcome.wrong.push(wrong);
    }
    outcome
}

fn name(text: &str) -> Name {
    Name::parse(text).expect("a name")
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// The range that is moved.
fn moved() -> MappingId {
    let key_type = KeyType::new([KeyKind::Int64]).expect("a type");
    MappingId::Range(key_type.bound(&[]).expect("a bound"))
}

impl Trial {
    async fn start(pair: String, (from, to): (Kind, Kind), settings: Settings) -> Self {
        let env = base::system::environment_on(Arc::new(MemoryDisk::new()));
        let random: Arc<dyn Random> = Arc::new(SeededRandom::new(settings.seed));
        let env = Environment { random, ..env };
        let places = Places::start(&env, &[from, to]);
        let mut shards = BTreeMap::new();
        for (shard, kind) in SHARDS.into_iter().zip([from, to, to]) {
            shards.insert(name(shard), places.shard(kind, shard).await);
        }
        let records = Arc::new(MemoryRecords::new("the home", env.random.clone()));
        Trial { pair, env, settings, places, shards, records, model: Arc::default() }
    }

    async fn run(&self, outcome: &mut Outcome) -> Result<(), String> {
        let can = |shard: &str| self.shards[shard].backend.capabilities();
        let choice = choose_move(&can("source"), &can("target"));
        if choice.mode == MoveMode::Offline {
            return Err(format!("the pair can be moved offline only: {:?}", choice.reasons));
        }
        let before = self.create_map().await?;
        self.fill(&before).await?;
        self.say(&format!("{} rows are there", self.settings.rows));
        let slept =
            self.client(MapSettings { refresh_after: Duration::from_secs(3600), ..MapSettings::default() });
        let read_at = slept.map().get().await.map_err(text)?.read_at;
        let counts = Arc::new(Counts::default());
        let writers: Vec<_> =
            (0..WRITERS).map(|number| tokio::spawn(writer(self.writing(&counts), number))).collect();
        let moved = self.move_killed(outcome).await;
        counts.stop();
        join_all(writers).await;
        outcome.done = counts.done.load(Ordering::Relaxed);
        outcome.refused = counts.refused.load(Ordering::Relaxed);
        outcome.unknown = counts.unknown.load(Ordering::Relaxed);
        let (_, certificate) = moved?;
        outcome.rows = certificate.tables.iter().map(|table| table.rows).sum();
        self.late_write_is_refused(&before, read_at).await.unwrap_or_else(|wrong| outcome.wrong.push(wrong));
        self.slept_is_routed(&slept).await.unwrap_or_else(|wrong| outcome.wrong.push(wrong));
        self.check(outcome).await?;
        self.move_back(outcome).await
    }

    fn say(&self, what: &str) {
        println!("{:<20} {what}", self.pair);
    }

    fn home(&self) -> CatalogHome {
        CatalogHome::new(self.records.clone(), self.env.clock.clone(), self.env.random.clone())
    }

    fn client(&self, settings: MapSettings) -> Client {
        let kinds = self.shards.iter().map(|(name, place)| (name.clone(), place.kind)).collect();
        Client::new(&self.env, self.home(), &self.places, Arc::new(kinds), settings)
    }

    fn writing(&self, counts: &Arc<Counts>) -> Writing {
        Writing {
            client: self.client(MapSettings::default()),
            model: self.model.clone(),
            counts: counts.clone(),
            clock: self.env.clock.clone(),
            random: self.env.random.clone(),
            settings: self.settings,
        }
    }

    /// Three ranges on the three shards.
    async fn create_map(&self) -> Result<Catalog, String> {
        let home = self.home();
        let empty = home.create(&name("app")).await.map_err(text)?;
        let mut map = MapBuilder::new(name("m"), KeyType::new([KeyKind::Int64]).map_err(text)?);
        let (second, third) = (TENANTS_OF_RANGE, 2 * TENANTS_OF_RANGE);
        let on = |shard| Placement::on(name(shard));
        map.range(&[], Some(&[second.into()]), on("source")).map_err(text)?;
        map.range(&[second.into()], Some(&[third.into()]), on("target")).map_err(text)?;
        map.range(&[third.into()], None, on("third")).map_err(text)?;
        let shards = self.shards.iter();
        let shards = shards.map(|(name, place)| Change::AddShard(Shard::new(name.clone(), &*place.location)));
        let changes: Vec<Change> = shards.chain([Change::AddMap(map.build().map_err(text)?)]).collect();
        let decide = |_: &_| Ok::<_, HomeError>(changes.clone());
        let catalog = home.change(&empty, "start", decide).await.map_err(text)?.catalog;
        let locals = self.shards.iter().map(|(name, place)| (name.clone(), place.local.clone())).collect();
        let published = home.publish(&catalog, &locals).await.map_err(text)?;
        match published.is_complete() {
            true => Ok(catalog),
            false => Err(format!("not published: {published:?}")),
        }
    }

    /// The moved range's rows, and a few of the others.
    async fn fill(&self, catalog: &Catalog) -> Result<(), String> {
        let others = [1, 2]
            .into_iter()
            .flat_map(|range| (0..OTHER_TENANTS).map(move |tenant| range * TENANTS_OF_RANGE + tenant));
        let tenants: Vec<i64> = (0..self.settings.tenants()).chain(others).collect();
        let (map, table) =
            (catalog.map("m").ok_or("no map")?, self.places.schema.table(TABLE).ok_or("no table")?);
        // Tenants of one mapping, as many as a batch takes.
        let range_of = |tenant: &i64| tenant / TENANTS_OF_RANGE;
        for of_range in tenants.chunk_by(|one, other| range_of(one) == range_of(other)) {
            for tenants in of_range.chunks(10) {
                let route = map.route(&[tenants[0].into()]).map_err(text)?;
                let (shard, since) = (route.placement.shard.clone(), route.placement.since);
                let shardlet = Shardlet::new(map.clone(), route.mapping).ok_or("no shardlet")?;
                let keys =
                    tenants.iter().flat_map(|tenant| (0..ROWS_OF_TENANT).map(|number| (*tenant, number)));
                let keys: Vec<_> = keys.collect();
                let rows: Vec<_> = keys.iter().map(|key| row(*key, "first")).collect();
                let backend = &self.shards[&shard].backend;
                backend.write(table, &shardlet, FenceHold::Open(since), &rows).await.map_err(text)?;
                keys.into_iter().for_each(|key| self.model.done(key, Some("first")));
            }
        }
        Ok(())
    }

    fn mover(&self, gate: &Arc<Gate>) -> Mover {
        let local = |(name, place): (&Name, &ShardPlace)| {
            let gated = GatedLocal(place.local.clone(), gate.clone(), name.to_string());
            (name.clone(), Arc::new(gated) as Arc<dyn LocalStore>)
        };
        let backend = |(name, place): (&Name, &ShardPlace)| {
            let gated = GatedBackend(place.backend.clone(), gate.clone(), name.to_string());
            (name.clone(), Arc::new(gated) as Arc<dyn Backend>)
        };
        let shards = Shards {
            locals: self.shards.iter().map(local).collect(),
            backends: self.shards.iter().map(backend).collect(),
        };
        let mut settings =
            MoverSettings::new(NamedDigestKey { id: "trial".to_owned(), key: DigestKey::new(DIGEST_KEY) });
        (settings.expires_after, settings.clock_bound) = (SIGNED_FOR, CLOCK_BOUND);
        settings.batch = BatchBounds { rows_max: self.settings.batch_rows, ..BatchBounds::default() };
        settings.progress_every_rows = (self.settings.rows / 5).max(1);
        let records = Arc::new(GatedRecords(self.records.clone(), gate.clone()));
        let outside = (self.env.clock.clone(), self.env.random.clone());
        Mover::new(records, shards, self.places.schema.clone(), settings, outside)
    }

    fn planned(&self, from: &str, to: &str) -> PlannedMove {
        PlannedMove {
            map: name("m"),
            mapping: moved(),
            from: name(from),
            to: name(to),
            mode: MoveMode::ReadOnly,
            rows: self.settings.rows,
            bytes: 0,
            pause: Duration::ZERO,
        }
    }

    /// Moves the range and deletes the source's rows; each operation is the end of a mover once a way.
    async fn move_killed(&self, outcome: &mut Outcome) -> Result<(MoveId, Certificate), String> {
        let gate = Gate::new(self.env.random.clone());
        self.env.clock.sleep(AROUND).await;
        let started_at = Instant::now();
        let id =
            self.mover(&Gate::opened(self.env.random.clone())).begin(&self.planned("source", "target")).await;
        let id = id.map_err(text)?;
        let ended = self.finish_killed(&gate, &id, |state| matches!(state, MoveState::Done { .. })).await;
        let certificate = match ended?.state() {
            MoveState::Done { certificate } => Certificate::clone(certificate),
            state => return Err(format!("the move ended as {state:?}")),
        };
        let deleted = |state: &MoveState| matches!(state, MoveState::SourceDeleted { .. });
        self.finish_killed(&gate, &id, deleted).await?;
        (outcome.kills, outcome.seconds) = (gate.kill_count(), started_at.elapsed().as_secs_f64());
        self.say(&format!("moved after {} kills and {:.1} s", outcome.kills, outcome.seconds));
        self.env.clock.sleep(AROUND).await;
        Ok((id, certificate))
    }

    /// Mover after mover, until the move is where it is to be.
    async fn finish_killed(
        &self,
        gate: &Arc<Gate>,
        id: &MoveId,
        is_end: impl Fn(&MoveState) -> bool,
    ) -> Result<Move, String> {
        let (mut last, started_at) = (gate.move_state(), Instant::now());
        for _ in 0..MOVERS_MAX {
            gate.begin();
            let mover = self.mover(gate);
            let drive = async {
                let ended = mover.finish(id, &|_| {}).await?;
                match ended.state() {
                    MoveState::Done { .. } if !is_end(ended.state()) => {
                        mover.delete_source(id, &|_| {}).await
                    }
                    _ => Ok(ended),
                }
            };
            let ended: Option<Result<Move, MoveError>> = tokio::select! { biased;
                ended = drive => Some(ended),
                () = gate.killed() => None,
            };
            let state = gate.move_state();
            if state != last {
                let seconds = started_at.elapsed().as_secs_f64();
                self.say(&format!("{state:<14} {} kills, {seconds:.1} s", gate.kill_count()));
                last = state;
            }
            match ended {
                None => {}
                Some(Ok(ended)) if is_end(ended.state()) => return Ok(ended),
                Some(Ok(ended)) => return Err(format!("the move ended as {:?}", ended.state())),
                Some(Err(error)) => return Err(format!("the mover failed: {error}")),
            }
        }
        Err(format!("{MOVERS_MAX} movers did not finish the move"))
    }

    /// What a client sends that slept through the move, in its middle: the shard itself refuses it.
    async fn late_write_is_refused(&self, before: &Catalog, read_at: base::Ticks) -> Result<(), String> {
        let source = &self.shards["source"];
        let table = self.places.schema.table(TABLE).ok_or("no table")?;
        let late = row((1, SLEPT_NUMBER), "late");
        if source.kind == Kind::Account {
            let (account, ends_at) = (DEVELOPMENT_ACCOUNT_NAME, read_at.plus(SIGNED_FOR));
            let sas = TableSas { account, table: TABLE, permissions: "raud", partition_key: None, ends_at };
            let key = AccountKey::from_base64(DEVELOPMENT_ACCOUNT_KEY)?;
            let address = AccountAddress::of(account, Credentials::Anonymous);
            let address = address.with_endpoint(Service::Table, &source.location).map_err(text)?;
            let opened = StorageAccount::new(address, client_settings(), surroundings(&self.env));
            let signed = opened.with_credentials(sas.sign(&key)).table(TABLE);
            return match signed.insert_or_replace(&entity_of_row(table, &late).map_err(text)?).await {
                Err(error) if error.status() == Some(403) => Ok(()),
                done => Err(format!("a write that was signed before the move: {done:?}")),
            };
        }
        let map = before.map("m").ok_or("no map")?;
        let since = map.placement(&moved()).map_or(Epoch(0), |placement| placement.since);
        let shardlet = Shardlet::new(map.clone(), moved()).ok_or("no shardlet")?;
        match source.backend.write(table, &shardlet, FenceHold::Open(since), &[late]).await {
            Err(BackendError::Fence { .. }) => Ok(()),
            done => Err(format!("a write with the map of before the move: {done:?}")),
        }
    }

    /// A client whose map is older than the move writes: its row is where the map of now says.
    async fn slept_is_routed(&self, slept: &Client) -> Result<(), String> {
        let (key, label) = ((1, SLEPT_NUMBER), "slept");
        match slept.change(key, Some(label)).await {
            Changed::Done => {
                self.model.done(key, Some(label));
                Ok(())
            }
            other if self.shards["source"].kind == self.shards["target"].kind => {
                Err(format!("a client that slept was not routed right: {other:?}"))
            }
            // Its map named a shard of another kind, whose router has none for the one of now: it asks again.
            Changed::Refused(_) => match slept.change(key, Some(label)).await {
                Changed::Done => {
                    self.model.done(key, Some(label));
                    Ok(())
                }
                other => Err(format!("a client that slept was not routed right: {other:?}")),
            },
            other => Err(format!("a client that slept: {other:?}")),
        }
    }

    async fn check(&self, outcome: &mut Outcome) -> Result<(), String> {
        let catalog = self.home().load().await.map_err(text)?;
        let found = Found::read(&self.places.schema, &self.shards).await?;
        let wrong = found.check(&catalog, &self.model);
        outcome.lost += wrong.lost;
        outcome.twice += wrong.twice;
        outcome.wrong.extend(wrong.named);
        Ok(())
    }

    /// With no writers: the certificate of a move back must be that of the rows, as they are read here.
    async fn move_back(&self, outcome: &mut Outcome) -> Result<(), String> {
        let mover = self.mover(&Gate::opened(self.env.random.clone()));
        let started_at = Instant::now();
        let id = mover.begin(&self.planned("target", "source")).await.map_err(text)?;
        let ended = mover.finish(&id, &|_| {}).await.map_err(text)?;
        let MoveState::Done { certificate } = ended.state() else {
            return Err(format!("the move back ended as {:?}", ended.state()));
        };
        let seconds = started_at.elapsed().as_secs_f64();
        let catalog = self.home().load().await.map_err(text)?;
        let schema = &self.places.schema;
        let found = Found::read(schema, &self.shards).await?;
        for shard in ["target", "source"] {
            let found = found.check_certificate((schema, &catalog), &moved(), certificate, shard);
            found.unwrap_or_else(|wrong| outcome.wrong.push(wrong));
        }
        mover.delete_source(&id, &|_| {}).await.map_err(text)?;
        self.say(&format!("moved back in {seconds:.1} s"));
        self.check(outcome).await
    }
}
