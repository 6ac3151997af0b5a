//! A map out of the shards' copies, put into its home.
//!
//! What always holds: a copy that can't be read stops it unless that shard is not believed; what was in the
//! home is replaced by a later epoch, and is in its history.

use crate::outcome::Outcome;
use crate::run::{OperationError, Run};
use shard_map::{Catalog, Name};
use shard_store::{HomeError, LocalCopy, recover};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) async fn recover_map(
    run: &Run,
    believed: Option<&BTreeSet<Name>>,
) -> Result<Outcome, OperationError> {
    let old = match run.home.load().await {
        Ok(old) => Some(old),
        Err(HomeError::NoCatalog { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let copies = copies(run, believed).await?;
    let all: BTreeSet<Name> = copies.keys().cloned().collect();
    let (catalog, recovery) = recover(old.as_ref(), &copies, believed.unwrap_or(&all))?;
    if !run.is_dry {
        put(run, old.as_ref(), &catalog).await?;
    }
    Ok(Outcome::Recovered { catalog, recovery, is_dry: run.is_dry })
}

async fn copies(
    run: &Run,
    believed: Option<&BTreeSet<Name>>,
) -> Result<BTreeMap<Name, LocalCopy>, OperationError> {
    let mut copies = BTreeMap::new();
    for (name, store) in &run.shards {
        let is_believed = believed.is_none_or(|believed| believed.contains(name));
        match store.read().await {
            Ok(Some(stored)) => drop(copies.insert(name.clone(), stored.copy)),
            Ok(None) => {}
            Err(error) if is_believed => return Err(OperationError::Copy(name.clone(), error)),
            // What it has is not used; that it may know later epochs is covered by the distance of epochs.
            Err(_) => {}
        }
    }
    Ok(copies)
}

async fn put(run: &Run, old: Option<&Catalog>, catalog: &Catalog) -> Result<(), OperationError> {
    let note = "recovered from the shards' copies";
    match old {
        Some(old) => run.home.replace(old, catalog, note).await?,
        None => drop(run.home.create_from(catalog, note).await?),
    }
    Ok(())
}
