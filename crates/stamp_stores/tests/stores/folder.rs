//! Objects in a folder.

use crate::object_rules;
use crate::surroundings;
use bytes::Bytes;
use stamp::PutAnswer;
use stamp_stores::{ObjectStoreSettings, OpenedObjectStore, open_object_store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

async fn open(path: &Path) -> OpenedObjectStore {
    let url = format!("file://{}", path.display());
    open_object_store(&url, &ObjectStoreSettings::default(), &surroundings(&[])).await.expect("a store")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_keeps_the_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = open(folder.path()).await;
    object_rules::hold(opened.store.clone(), "stamp").await;
    assert_eq!(opened.check_first_start().await, Ok(Vec::new()));
    let partial = std::fs::read_dir(folder.path().join(".partial")).expect("a folder");
    assert_eq!(partial.count(), 0, "nothing is left of what was written");
}

/// What a writer left that was killed is removed once it is old.
#[tokio::test]
async fn old_files_that_were_being_written_are_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let partial = folder.path().join(".partial");
    std::fs::create_dir(&partial).expect("a folder");
    let (old, new) = (partial.join("old"), partial.join("new"));
    for path in [&old, &new] {
        std::fs::write(path, "half").expect("a file");
    }
    let two_days_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(2 * 86_400);
    let file = std::fs::File::options().write(true).open(&old).expect("a file");
    file.set_modified(two_days_ago).expect("an instant");
    open(folder.path()).await;
    assert_eq!((old.exists(), new.exists()), (false, true));
}

/// Two processes have the same folder open.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_share_a_folder_one_creates() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (open(folder.path()).await, open(folder.path()).await);
    for round in 0..100 {
        // Its folder is made, and removed with its last object, under both.
        let name = format!("x/{}/{round}", round % 3);
        let content = |text: &'static str| Bytes::from_static(text.as_bytes());
        let answers = tokio::join!(
            first.store.create(&name, content("first")),
            second.store.create(&name, content("second")),
        );
        let expected = match answers {
            (PutAnswer::Created, PutAnswer::Refused) => "first",
            (PutAnswer::Refused, PutAnswer::Created) => "second",
            other => panic!("{other:?}"),
        };
        assert_eq!(second.store.read(&name, 0, 10).await, Ok(content(expected)));
        assert_eq!(first.store.delete(&name).await, Ok(()));
    }
}

/// A reader that saw a name with half of its content would take a part for damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_its_whole_content_from_the_first_moment() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = open(folder.path()).await;
    let content = Bytes::from(vec![7; 3 << 20]);
    for round in 0..10 {
        let path = folder.path().join(format!("part{round}"));
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = is_over.clone();
        let watcher = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                if let Ok(found) = std::fs::metadata(&path) {
                    return Some(found.len());
                }
            }
            None
        });
        let answer = opened.store.create(&format!("part{round}"), content.clone()).await;
        assert_eq!(answer, PutAnswer::Created);
        is_over.store(true, Ordering::Relaxed);
        if let Some(size) = watcher.join().expect("a thread") {
            assert_eq!(size, content.len() as u64);
        }
    }
}

/// Listed as empty, a folder that is not mounted would look like a new stamp.
#[tokio::test]
async fn a_folder_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}/absent", folder.path().display());
    let opened = open_object_store(&url, &ObjectStoreSettings::default(), &surroundings(&[])).await;
    let error = opened.err().expect("an error").to_string();
    assert!(error.contains("absent") && error.contains("make it, or mount it"), "{error}");
}

#[tokio::test]
async fn names_stay_below_the_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let inside = folder.path().join("inside");
    std::fs::create_dir(&inside).expect("a folder");
    std::fs::write(folder.path().join("secret"), "secret").expect("a file");
    std::os::unix::fs::symlink(folder.path().join("secret"), inside.join("link")).expect("a link");
    let opened = open(&inside).await;
    for name in ["../secret", "/etc/passwd", ".partial/x", "a/../../secret", "link"] {
        assert!(opened.store.read(name, 0, 10).await.is_err(), "{name}");
    }
    for name in ["../new", "/new", ".partial/x", ""] {
        let answer = opened.store.create(name, Bytes::from_static(b"x")).await;
        assert_eq!(answer, PutAnswer::Failed { status: 400 }, "{name}");
    }
}
