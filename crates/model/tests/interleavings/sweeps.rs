//! Sweeps beside live owners.

use crate::stage::{Stage, W};
use stamp::{Listing, NamedExtents, SweepRefused, SweepView, choose_sweep};

/// A sweep reads the documents, then lists the store; an extent that was created in between looks unnamed.
#[test]
fn the_listing_comes_first_and_the_documents_after() {
    let mut stage = Stage::new();
    let mut held = stage.take(W);
    let named = |stage: &Stage| NamedExtents {
        extents: stage.metadata.documents().flat_map(|document| document.extents()).collect(),
        read_at: stage.metadata.revision(),
    };
    let read_too_early = named(&stage);
    let extent = stage.name_extent(&mut held);
    let mut window = stage.open(&held, extent, None);
    let part = window.push(10, 1).unwrap();
    stage.put(part);
    let listing =
        Listing { paths: stage.store.list(), ended_at: stage.metadata.revision(), ..Listing::default() };
    assert!(!read_too_early.extents.contains(&extent));

    // The rule: documents that are older than the listing are refused; those that are not name the extent.
    let view = SweepView { listing, named: read_too_early, is_collection_on: true, ..SweepView::default() };
    assert!(matches!(choose_sweep(&view), Err(SweepRefused::DocumentsTooOld { .. })));
    let view = SweepView { named: named(&stage), ..view };
    assert_eq!(choose_sweep(&view), Ok(Vec::new()));
}
