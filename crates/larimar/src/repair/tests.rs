//! Runs of a repair whose core is a plain one: it writes a file anew that was removed, and says that a row is
//! lost for that.

use super::plan::Loss;
use super::*;
use base::OpenMode;
use base::checksum::crc64;
use blob::BlobService;
use partition::{
    LossOutcome, LostKeys, ObjectTable, PartitionSettings, Partitions, Row, RowKey, RowLoss, RowVersion,
};
use std::collections::BTreeMap;
use stream::{IN_MEMORY_SEGMENT_SIZE_BYTES, StreamSettings, Streams};
use tempfile::TempDir;

const REMOVED: &str = "FORMAT.second";

fn removed_row() -> Row {
    Row { key: RowKey::new("acct", 7, "b", "2h"), version: RowVersion(3), value: vec![0, 0xab].into() }
}

async fn mend(env: &Environment) -> Result<FolderRepair, PartitionError> {
    let failed = |error: std::io::Error| PartitionError::Storage(error.to_string());
    if env.disk.exists(REMOVED).await.map_err(failed)? {
        return Ok(FolderRepair::default());
    }
    let written = async {
        let other = env.disk.open("FORMAT", OpenMode::Read).await?;
        let content = other.read_at(0, other.size().await? as usize).await?;
        env.disk.open(REMOVED, OpenMode::CreateNew).await?.write_at(0, content).await
    };
    written.await.map_err(failed)?;
    let loss = RowLoss {
        table: ObjectTable::Entity,
        keys: LostKeys::Row(RowKey::new("acct", 7, "p", "r").as_bytes().clone()),
        outcome: LossOutcome::Lost,
        reason: "it was in the file".to_owned(),
    };
    Ok(FolderRepair {
        actions: vec![format!("{REMOVED} is written anew")],
        losses: vec![loss],
        needed_bytes: 100,
        replaced_rows: vec![(ObjectTable::Blob, removed_row())],
    })
}

type Progressed<'a> = &'a mut (dyn FnMut(&str) + Send);
type Done<'a> = BoxFuture<'a, Result<FolderRepair, PartitionError>>;

fn plain<'a>(env: &'a Environment, progress: Progressed<'a>) -> Done<'a> {
    progress("mending");
    Box::pin(mend(env))
}

/// Whether this is no plan: a disk in memory has any space.
async fn is_applied(env: &Environment) -> bool {
    env.disk.free_bytes().await.unwrap() < u64::MAX
}

fn broken_off<'a>(env: &'a Environment, _: Progressed<'a>) -> Done<'a> {
    Box::pin(async {
        let done = mend(env).await?;
        match is_applied(env).await {
            true => Err(PartitionError::Storage("killed".to_owned())),
            false => Ok(done),
        }
    })
}

fn different<'a>(env: &'a Environment, _: Progressed<'a>) -> Done<'a> {
    Box::pin(async {
        let mut done = mend(env).await?;
        if is_applied(env).await {
            let keys = LostKeys::Row(RowKey::new("acct", 7, "p", "s").as_bytes().clone());
            done.losses =
                done.losses.iter().map(|loss| RowLoss { keys: keys.clone(), ..loss.clone() }).collect();
        }
        Ok(done)
    })
}

fn hungry<'a>(env: &'a Environment, _: Progressed<'a>) -> Done<'a> {
    Box::pin(async { Ok(FolderRepair { needed_bytes: u64::MAX / 2, ..mend(env).await? }) })
}

struct Folder {
    folder: TempDir,
    env: Environment,
}

impl Folder {
    /// One that was served, and has lost a file since.
    async fn damaged() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let env = base::system::environment_on(Arc::new(SystemDisk::new(folder.path())));
        let settings = StreamSettings {
            reserve_size_bytes: 0,
            journal_segment_size_bytes: IN_MEMORY_SEGMENT_SIZE_BYTES,
            ..StreamSettings::default()
        };
        let streams = Streams::open(&env, settings).await.unwrap();
        let partitions = Partitions::open(&env, streams.clone(), PartitionSettings::default()).await.unwrap();
        partitions.close().await;
        streams.close().await;
        std::fs::remove_file(folder.path().join(REMOVED)).unwrap();
        Folder { folder, env }
    }

    fn repair(&self, core: Core) -> Repair<'_> {
        Repair { env: &self.env, folder: "dir".to_owned(), core }
    }

    async fn plan(&self, core: Core) -> Planned {
        let before = self.contents();
        let planned = self.repair(core).plan(&mut Progress::new()).await.unwrap();
        assert_eq!(self.contents(), before, "a plan has changed something");
        planned
    }

    async fn apply(&self, core: Core) -> Result<Ended, RepairError> {
        let planned = self.plan(core).await;
        self.repair(core).apply(planned, &mut Progress::new()).await
    }

    /// A digest of each file.
    fn contents(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.folder.path()).unwrap().display().to_string();
                    all.insert(name, crc64(&[&std::fs::read(&path).unwrap()]));
                }
            }
        }
        all
    }

    fn read(&self, name: &str) -> Plan {
        let names: Vec<_> = self.contents().into_keys().filter(|path| path.ends_with(name)).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        Plan::from_json(&std::fs::read(self.folder.path().join(&names[0])).unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_plan_is_carried_out_and_kept_with_what_it_replaced() {
    let folder = Folder::damaged().await;
    let planned = folder.plan(plain).await;
    assert_eq!((planned.plan.actions.len(), planned.plan.losses.len()), (1, 1));
    assert!(planned.plan.still_damaged.is_empty() && planned.plan.needed_bytes > MARGIN_SIZE_BYTES);
    assert_eq!(planned.without_change().exit_code, EXIT_TO_BE_REPAIRED);

    let before = folder.contents();
    let ended = folder.apply(plain).await.unwrap();
    assert_eq!(ended.exit_code, 0, "{}", ended.text);
    let after = folder.contents();
    assert_eq!(after[REMOVED], after["FORMAT"]);
    let of_run =
        |name: &str| after.iter().find(|(path, _)| path.starts_with("repair/") && path.ends_with(name));
    for kept in ["FORMAT", "journal/table", "journal/table.second", "stream_manager/log"] {
        assert_eq!(of_run(&format!("/kept/{kept}")).map(|kept| *kept.1), Some(before[kept]), "{kept}");
    }
    assert!(of_run("/plan.txt").is_some() && of_run("/finished").is_some());
    let rows = of_run("/kept/rows.json").unwrap().0;
    let rows = std::fs::read_to_string(folder.folder.path().join(rows)).unwrap();
    assert!(rows.len() as u64 <= rows_size(&[(ObjectTable::Blob, removed_row())]));
    let row: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(
        (&row["table"], &row["version"], &row["value"]),
        (&"blob".into(), &"3".into(), &"00ab".into())
    );
    let (plan, result) = (folder.read("plan.json"), folder.read("result.json"));
    assert!(!plan.is_applied && result.is_applied && result.is_finished);
    assert_eq!((&plan.losses, &plan.actions), (&result.losses, &result.actions));

    let again = folder.plan(plain).await;
    assert!(again.plan.is_empty());
    assert_eq!(again.without_change().exit_code, 0);
}

/// Before, a run that was killed took with it what it had lost: the folder is whole, and the next plan says
/// so.
#[tokio::test]
async fn what_a_run_that_was_broken_off_may_have_lost_is_told_by_the_next() {
    let folder = Folder::damaged().await;
    let error = folder.apply(broken_off).await.err().unwrap();
    assert!(matches!(error, RepairError::BrokenOff { .. }), "{error}");
    for _ in 0..2 {
        let next = folder.plan(plain).await;
        assert_eq!((next.plan.actions.len(), next.plan.losses.len()), (0, 1));
        assert_eq!(next.plan.unfinished_runs.len(), 1);
        assert!(next.plan.text(true).contains("was broken off"));
        assert_eq!(next.without_change().exit_code, EXIT_TO_BE_REPAIRED);
    }
    std::fs::remove_file(folder.folder.path().join(REMOVED)).unwrap();
    assert!(folder.apply(broken_off).await.is_err(), "once more, with two plans to be remembered");
    assert_eq!(folder.plan(plain).await.plan.unfinished_runs.len(), 2);
    let ended = folder.apply(plain).await.unwrap();
    assert_eq!((ended.exit_code, ended.plan.losses.len()), (0, 1));
    assert!(folder.plan(plain).await.plan.is_empty());
}

/// A blob of 3 MB that has a snapshot with other bytes, of as many. Returns the snapshot's name.
async fn with_snapshot(env: &Environment) -> String {
    let settings = StreamSettings { reserve_size_bytes: 0, ..StreamSettings::default() };
    let streams = Streams::open(env, settings).await.unwrap();
    let partitions = Partitions::open(env, streams.clone(), PartitionSettings::default()).await.unwrap();
    let partitions = Arc::new(partitions);
    let service = BlobService::new(partitions.clone(), env.clock.clone(), Default::default());
    let (access, encryption) = (blob::PublicAccess::None, Default::default());
    service.create_container("acct", "box", Vec::new(), access, encryption).await.unwrap();
    let container = service.container("acct", "box").await.unwrap();
    let at = service.blob("acct", &container, "cat").unwrap();
    let mut snapshot = None;
    for tag in [SNAPSHOTS, 2] {
        let mut upload = service.upload(&at, true, false);
        upload.write(vec![tag; 3 << 20].into()).await.unwrap();
        let uploaded = upload.finish().await.unwrap();
        service
            .put_blob(&at, blob::BlobType::Block, uploaded, Default::default(), Default::default())
            .await
            .unwrap();
        if tag == SNAPSHOTS {
            let conditions = blob::Conditions::default();
            snapshot = Some(service.snapshot(&at, None, conditions).await.unwrap().0);
        }
    }
    partitions.close().await;
    streams.close().await;
    service::seven_digits_text(base::Ticks(snapshot.unwrap()))
}

/// What the snapshot's bytes are.
const SNAPSHOTS: u8 = 0xa5;

/// The blob went with its snapshot, of which some bytes were gone, and nothing of its rows was kept.
#[tokio::test]
async fn a_snapshot_that_does_not_read_goes_alone_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let env = base::system::environment_on(Arc::new(SystemDisk::new(folder.path())));
    let snapshot = with_snapshot(&env).await;
    let folder = Folder { folder, env };
    let extents = std::fs::read_dir(folder.folder.path().join("extents")).unwrap();
    let is_damaged = extents.map(|entry| entry.unwrap().path()).any(|path| {
        let mut content = std::fs::read(&path).unwrap();
        let at = content.windows(4096).position(|window| window.iter().all(|byte| *byte == SNAPSHOTS));
        at.map(|at| content[at..at + 512].fill(0)).map(|()| std::fs::write(path, content).unwrap()).is_some()
    });
    assert!(is_damaged);
    let ended = folder.apply(repair_all).await.unwrap();
    assert_eq!(ended.exit_code, 0, "{}", ended.text);
    let [Loss { lost: plan::Lost::Named(place), outcome: LossOutcome::Lost, .. }] = &ended.plan.losses[..]
    else {
        panic!("{:?}", ended.plan.losses);
    };
    assert_eq!(
        place.to_string(),
        format!("the snapshot {snapshot} of blob \"cat\" of container box of account acct")
    );
    let kept: Vec<_> =
        folder.contents().into_keys().filter(|path| path.ends_with("kept/rows.json")).collect();
    let kept = std::fs::read_to_string(folder.folder.path().join(&kept[0])).unwrap();
    assert_eq!(kept.lines().count(), 2, "the snapshot's row, and the head that counts it");
    assert!(folder.plan(repair_all).await.plan.is_empty());
}

/// Queues that were lost themselves had messages counted that the plan had not said would be: more was done
/// than planned.
#[tokio::test]
async fn messages_are_counted_if_a_plan_says_so_and_else_not() {
    let folder = Folder::damaged().await;
    let disk = &*folder.env.disk;
    let of_queue = |action: &str| Plan {
        actions: vec![action.to_owned()],
        losses: vec![Loss {
            lost: plan::Lost::Named(crate::places::Place {
                service: crate::places::Service::Queue,
                container: Some("tasks".to_owned()),
                ..Default::default()
            }),
            outcome: LossOutcome::Uncertain,
            reason: "why".to_owned(),
        }],
        ..Plan::default()
    };
    for (action, counts) in [("its log is written anew", false), (MESSAGES_COUNTED, true)] {
        let run = RunFolder::make(disk, folder.env.clock.now()).await.unwrap();
        run.write_plan(disk, "plan", &of_queue(action)).await.unwrap();
        assert_eq!(has_planned(disk, MESSAGES_COUNTED).await, counts, "{action}");
    }
}

#[tokio::test]
async fn a_run_that_ends_before_its_plan_is_there_has_changed_nothing() {
    let folder = Folder::damaged().await;
    let run = RunFolder::make(&*folder.env.disk, folder.env.clock.now()).await.unwrap();
    run.keep(&*folder.env.disk, &[("FORMAT".to_owned(), 1)], &mut |_| ()).await.unwrap();
    assert!(folder.plan(plain).await.plan.unfinished_runs.is_empty());
    run.write_plan(&*folder.env.disk, "plan", &Plan::default()).await.unwrap();
    assert_eq!(folder.plan(plain).await.plan.unfinished_runs.len(), 1);
    let path = folder.folder.path().join(run.path()).join("plan.json");
    std::fs::write(path, "{").unwrap();
    let refused = folder.repair(plain).plan(&mut Progress::new()).await.err().unwrap();
    assert!(
        refused.to_string().contains("plan.json"),
        "a plan that does not read is not forgotten: {refused}"
    );
}

#[tokio::test]
async fn a_result_that_differs_from_the_plan_is_told() {
    let folder = Folder::damaged().await;
    let ended = folder.apply(different).await.unwrap();
    assert_eq!(ended.exit_code, EXIT_NOT_REPAIRED);
    assert!(ended.text.contains("more was done or lost than was planned"), "{}", ended.text);
    assert_eq!(ended.plan.losses.len(), 2, "a loss that was printed stays listed");
}

#[tokio::test]
async fn nothing_begins_without_enough_space() {
    let folder = Folder::damaged().await;
    let before = folder.contents();
    let error = folder.apply(hungry).await.err().unwrap().to_string();
    assert!(error.starts_with("the repair needs ") && error.contains("GiB"), "{error}");
    assert!(error.ends_with("nothing was changed"), "{error}");
    assert_eq!(folder.contents(), before);
}

/// The core knows nothing to do: what is damaged is still told.
#[tokio::test]
async fn damage_that_stays_is_told() {
    fn nothing<'a>(_: &'a Environment, _: Progressed<'a>) -> Done<'a> {
        Box::pin(async { Ok(FolderRepair::default()) })
    }
    let folder = Folder::damaged().await;
    let planned = folder.plan(nothing).await;
    assert!(planned.plan.is_empty() && planned.plan.still_damaged.len() == 1);
    let ended = planned.without_change();
    assert_eq!(ended.exit_code, EXIT_TO_BE_REPAIRED);
    assert!(ended.plan.text(true).contains("what no repair can mend"));
}

#[tokio::test]
async fn copies_of_files_with_holes_are_the_same() {
    let folder = Folder::damaged().await;
    let mut content = vec![0; 3 << 20];
    content[2 << 20] = 7;
    content.push(8);
    std::fs::write(folder.folder.path().join("file"), &content).unwrap();
    let run = RunFolder::make(&*folder.env.disk, folder.env.clock.now()).await.unwrap();
    let size = content.len() as u64;
    run.keep(&*folder.env.disk, &[("file".to_owned(), size)], &mut |_| ()).await.unwrap();
    let kept = folder.folder.path().join(run.path()).join("kept/file");
    assert_eq!(std::fs::read(kept).unwrap(), content);
}
