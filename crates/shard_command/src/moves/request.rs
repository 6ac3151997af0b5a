//! What a plan is to reach, and the plan.
//!
//! What always holds: the changes of the map are a function of the request and the map, so those that a plan
//! was made with are made again when it is applied.

use crate::keys::key_of;
use crate::operation::find;
use crate::run::OperationError;
use serde::{Deserialize, Serialize};
use shard_map::{Catalog, Change, KeyValue, MapChange, MappingId, Name, RouteError, Shard, State};
use shard_mover::{
    Facts, MoveError, Plan, Refusal, is_added, plan_add, plan_drain, plan_move, plan_rebalance, plan_split,
};

/// What a plan is to reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PlanRequest {
    /// The mapping that holds a key goes to a shard.
    Move {
        /// The map.
        map: Name,
        /// The key: a text for each column.
        key: Vec<String>,
        /// The shard.
        to: Name,
        /// Whether the key gets a mapping of its own first, where it is, so that it goes alone.
        alone: bool,
    },
    /// Shards are even, with the fewest moves.
    Rebalance,
    /// A shard has no mappings.
    Drain {
        /// The shard.
        shard: Name,
    },
    /// A range becomes two.
    Split {
        /// The map.
        map: Name,
        /// The key that the second one begins with.
        key: Vec<String>,
        /// Where the second one goes; none: it stays.
        to: Option<Name>,
    },
    /// There is one shard more, which has its part.
    Add {
        /// The shard.
        shard: Shard,
    },
}

impl PlanRequest {
    /// A shard that the map does not have yet.
    pub fn new_shard(&self) -> Option<&Shard> {
        if let PlanRequest::Add { shard } = self { Some(shard) } else { None }
    }

    /// Changes of the map that move nothing, made before all moves.
    pub(crate) fn changes(&self, catalog: &Catalog) -> Result<Vec<Change>, OperationError> {
        Ok(match self {
            PlanRequest::Rebalance => Vec::new(),
            PlanRequest::Add { shard } if is_added(catalog, shard) => Vec::new(),
            PlanRequest::Add { shard } => vec![Change::AddShard(shard.clone())],
            PlanRequest::Drain { shard } => {
                let there = catalog.shard(shard.as_str());
                let there = there.ok_or_else(|| MoveError::from(Refusal::NoShard(shard.clone())))?;
                let drained = Shard { is_draining: true, ..there.clone() };
                if there.is_draining { Vec::new() } else { vec![Change::ChangeShard(drained)] }
            }
            PlanRequest::Split { map, key, .. } => {
                let at = values(catalog, map, key)?;
                vec![Change::Map(map.clone(), MapChange::Split { at })]
            }
            PlanRequest::Move { alone: false, .. } => Vec::new(),
            PlanRequest::Move { map, key, .. } => {
                let key = values(catalog, map, key)?;
                let route = find(catalog, map)?.route(&key).map_err(|error| no_route(map, error))?;
                match route.mapping {
                    MappingId::Pin(_) => Vec::new(),
                    // A move may be copying it, or whoever closed it has another reason.
                    mapping if route.placement.state != State::Online => {
                        let (mapping, state) =
                            (find(catalog, map)?.mapping_text(&mapping), route.placement.state);
                        return Err(OperationError::NotOnline { map: map.clone(), mapping, state });
                    }
                    _ => {
                        let shard = route.placement.shard.clone();
                        vec![Change::Map(map.clone(), MapChange::Pin { key, shard })]
                    }
                }
            }
        })
    }

    /// The plan. `after` is the catalog after the changes, whose mappings were measured.
    pub(crate) fn plan(&self, facts: &Facts, after: &Catalog) -> Result<Plan, OperationError> {
        let catalog = &facts.catalog;
        Ok(match self {
            PlanRequest::Rebalance => plan_rebalance(facts),
            PlanRequest::Drain { shard } => plan_drain(facts, shard).map_err(MoveError::from)?,
            PlanRequest::Add { shard } => plan_add(facts, shard).map_err(MoveError::from)?,
            PlanRequest::Split { map, key, to } => {
                let at = values(catalog, map, key)?;
                plan_split(facts, map, &at, to.as_ref()).map_err(MoveError::from)?
            }
            PlanRequest::Move { map, key, to, .. } => {
                let key = values(catalog, map, key)?;
                let now = find(catalog, map)?.route(&key).map_err(|error| no_route(map, error))?.mapping;
                // A move that has the mapping below would find it changed.
                if facts.moving.contains(&(map.clone(), now.clone())) {
                    let (map, mapping, id) = (map.clone(), now.to_string(), "another".to_owned());
                    return Err(MoveError::from(Refusal::Moving { map, mapping, id }).into());
                }
                let route = find(after, map)?.route(&key).map_err(|error| no_route(map, error))?;
                let facts = Facts { catalog: after.clone(), ..facts.clone() };
                let plan = plan_move(&facts, &(map.clone(), route.mapping), to);
                Plan { changes: self.changes(catalog)?, ..plan }
            }
        })
    }
}

fn values(catalog: &Catalog, map: &Name, key: &[String]) -> Result<Vec<KeyValue>, OperationError> {
    key_of(find(catalog, map)?.key_type(), key).map_err(|error| OperationError::Key(map.clone(), error))
}

fn no_route(map: &Name, error: RouteError) -> OperationError {
    OperationError::NoRoute(map.clone(), error.to_string())
}
