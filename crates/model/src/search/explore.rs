//! The breadth-first search.
//!
//! States are visited in order of their distance from the first, so the first violation that is met has a
//! shortest way to it. What always holds: the same setting gives the same states in the same order.

use crate::actions::steps;
use crate::search::interned::{Interned, Numbers, Packed};
use crate::setting::Setting;
use crate::world::World;
use crate::world::check::{check_state, goes_on};

/// What a search has found.
#[derive(Debug)]
pub(crate) struct Explored {
    /// States that were met.
    pub(crate) states: usize,
    /// Steps between them.
    pub(crate) steps: usize,
    /// The longest shortest way.
    pub(crate) depth: usize,
    /// Whether all states were met: none was left out for `states_max` or for a violation.
    pub(crate) is_complete: bool,
    /// The first violation, if any.
    pub(crate) found: Option<Finding>,
    /// The graph, for a complete search.
    pub(crate) graph: Graph,
}

/// A violation, or a state from which the stamp never goes on.
#[derive(Debug)]
pub(crate) struct Finding {
    /// What is wrong, in words.
    pub(crate) what: String,
    /// The steps that lead there.
    pub(crate) trace: Vec<String>,
}

/// Which state follows on which.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    /// For each state the place of its first follower; one more at the end.
    pub(crate) first_of: Vec<u64>,
    /// The followers of all states.
    pub(crate) followers: Vec<u32>,
    /// For each state whether the stamp goes on in it.
    pub(crate) goes_on: Vec<bool>,
    /// For each state the one from which it was met first, and the step's place among that one's steps.
    pub(crate) parents: Vec<(u32, u32)>,
    pub(crate) packed: Vec<Packed>,
}

/// A search under way.
struct Search<'a> {
    setting: &'a Setting,
    interned: Interned,
    numbers: Numbers<Packed, u32>,
    graph: Graph,
    depth_of: Vec<u16>,
}

/// Searches from `start`, up to so many states.
pub(crate) fn explore(start: &World, setting: &Setting, states_max: usize) -> (Explored, Trace) {
    let mut search = Search {
        setting,
        interned: Interned::new(),
        numbers: Numbers::default(),
        graph: Graph::default(),
        depth_of: Vec::new(),
    };
    let packed = search.interned.pack(start, None);
    search.add(packed, start, (0, 0), 0);
    let mut found = check_state(start, None, setting.breaches).err().map(|what| (0, None, what));
    let mut at = 0;
    while at < search.graph.packed.len() && found.is_none() && search.graph.packed.len() < states_max {
        found = search.expand(at);
        at += 1;
    }
    let is_complete = found.is_none() && at == search.graph.packed.len();
    search.graph.first_of.push(search.graph.followers.len() as u64);
    let mut explored = Explored {
        states: search.graph.packed.len(),
        steps: search.graph.followers.len(),
        depth: search.depth_of.last().copied().unwrap_or(0).into(),
        is_complete,
        found: None,
        graph: Graph::default(),
    };
    let trace = Trace { interned: search.interned };
    explored.graph = search.graph;
    explored.found = found.map(|(state, last, what)| {
        let mut steps = trace.to(&explored.graph, setting, state);
        steps.extend(last.and_then(|place| trace.words(&explored.graph, setting, state, place)));
        Finding { what, trace: steps }
    });
    (explored, trace)
}

impl Search<'_> {
    fn add(&mut self, packed: Packed, world: &World, parent: (u32, u32), depth: u16) -> u32 {
        let number = self.graph.packed.len() as u32;
        self.numbers.insert(packed, number);
        self.graph.packed.push(packed);
        self.graph.parents.push(parent);
        self.graph.goes_on.push(goes_on(world));
        self.depth_of.push(depth);
        number
    }

    /// Adds the followers of a state; the state before, the place of the step among its steps, and what is
    /// wrong after it, if anything is.
    fn expand(&mut self, at: usize) -> Option<(usize, Option<usize>, String)> {
        let packed = self.graph.packed[at];
        let world = self.interned.unpack(&packed, self.setting.processes);
        self.graph.first_of.push(self.graph.followers.len() as u64);
        for (place, step) in steps(&world, self.setting, false).into_iter().enumerate() {
            if let Some(violation) = step.violation {
                return Some((at, Some(place), violation));
            }
            let next = self.interned.pack(&step.world, Some((&world, &packed)));
            if next == packed {
                continue;
            }
            if let Some(known) = self.numbers.get(&next) {
                self.graph.followers.push(*known);
                continue;
            }
            if let Err(violation) = check_state(&step.world, Some(&world), self.setting.breaches) {
                return Some((at, Some(place), violation));
            }
            let number = self.add(next, &step.world, (at as u32, place as u32), self.depth_of[at] + 1);
            self.graph.followers.push(number);
        }
        None
    }
}

/// What is needed to tell the way to a state.
pub(crate) struct Trace {
    interned: Interned,
}

impl Trace {
    /// The steps of a shortest way to a state.
    pub(crate) fn to(&self, graph: &Graph, setting: &Setting, state: usize) -> Vec<String> {
        let mut way = Vec::new();
        let mut at = state;
        while at != 0 {
            let (parent, place) = graph.parents[at];
            at = parent as usize;
            way.extend(self.words(graph, setting, at, place as usize));
        }
        way.reverse();
        way
    }

    /// The words of a step from a state, by its place among the steps.
    fn words(&self, graph: &Graph, setting: &Setting, state: usize, place: usize) -> Option<String> {
        let world = self.interned.unpack(&graph.packed[state], setting.processes);
        let step = steps(&world, setting, true).into_iter().nth(place)?;
        Some(step.action.to_string())
    }
}
