//! The fewest moves that bring all shards below a cap, in size and in load.
//!
//! The search deepens: with one more move at a time it takes a shard that is above its cap, and tries each of
//! its mappings on each other shard. That misses no solution: of a shard above its cap some mapping must go,
//! whatever else is moved. A shard above its cap by the sum of its n largest mappings needs n moves at least,
//! which cuts off most of the tree.
//!
//! What always holds: a solution is the fewest moves if the search came to its end. It looks at a bounded
//! number of states; then the greedy solution counts, with the number of moves that are needed at least.

use std::cmp::Reverse;

/// Size and load.
pub(super) type Weight = [u64; 2];

/// What can be moved, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) shard: usize,
    pub(super) weight: Weight,
    /// Whether it may be moved.
    pub(super) is_movable: bool,
}

/// The pieces of shards.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) pieces: Vec<Piece>,
    pub(super) shards: usize,
    /// Whether a shard takes pieces.
    pub(super) takes: Vec<bool>,
    pub(super) cap: Weight,
}

/// Pieces with their new shards.
pub(super) type Moves = Vec<(usize, usize)>;

/// What a search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Solution {
    pub(super) moves: Moves,
    pub(super) is_balanced: bool,
    /// No solution has fewer moves.
    pub(super) at_least: usize,
}

/// The fewest moves, as far as `nodes_max` states show it.
pub(super) fn search(problem: &Problem, nodes_max: usize) -> Solution {
    let (greedy, is_balanced) = greedy(problem);
    let mut state = State::new(problem);
    let mut at_least = state.lower_bound().unwrap_or(usize::MAX);
    let mut nodes_left = nodes_max;
    // Without a greedy solution there may be one all the same, of as many moves as there are pieces.
    let below = if is_balanced { greedy.len() } else { problem.pieces.len().saturating_add(1) };
    while at_least < below {
        match state.descend(at_least, &mut nodes_left) {
            Some(true) => {
                let moves = std::mem::take(&mut state.moves);
                return Solution { moves, is_balanced: true, at_least };
            }
            Some(false) => at_least += 1,
            None => break,
        }
    }
    Solution { at_least: at_least.min(greedy.len()), moves: greedy, is_balanced }
}

/// Moves the piece that helps most, again and again; whether that brings all below the cap.
fn greedy(problem: &Problem) -> (Moves, bool) {
    let mut state = State::new(problem);
    while let Some(from) = state.heaviest() {
        let target = |state: &State<'_>, piece: usize| {
            let weight = problem.pieces[piece].weight;
            let fits = |to: &usize| *to != from && problem.takes[*to] && state.fits(*to, weight);
            (0..problem.shards).filter(fits).min_by_key(|to| state.fullness(*to))
        };
        let mut pieces = state.movable_on(from);
        let excess = state.excess(from);
        // The smallest one that is enough; else the largest.
        pieces.sort_by_key(|piece| {
            let weight = problem.pieces[*piece].weight;
            let is_enough = weight[0] >= excess[0] && weight[1] >= excess[1];
            (!is_enough, if is_enough { weight } else { [u64::MAX - weight[0], u64::MAX - weight[1]] })
        });
        let Some((piece, to)) = pieces.iter().find_map(|piece| Some((*piece, target(&state, *piece)?)))
        else {
            return (state.moves, false);
        };
        state.take(piece, to);
    }
    (state.moves, true)
}

struct State<'a> {
    problem: &'a Problem,
    weights: Vec<Weight>,
    at: Vec<usize>,
    is_moved: Vec<bool>,
    moves: Moves,
}

impl<'a> State<'a> {
    fn new(problem: &'a Problem) -> Self {
        let mut weights = vec![[0; 2]; problem.shards];
        for piece in &problem.pieces {
            add(&mut weights[piece.shard], piece.weight);
        }
        let at = problem.pieces.iter().map(|piece| piece.shard).collect();
        let is_moved = vec![false; problem.pieces.len()];
        State { problem, weights, at, is_moved, moves: Vec::new() }
    }

    fn take(&mut self, piece: usize, to: usize) {
        let weight = self.problem.pieces[piece].weight;
        let from = self.at[piece];
        self.weights[from][0] -= weight[0];
        self.weights[from][1] -= weight[1];
        add(&mut self.weights[to], weight);
        self.at[piece] = to;
        self.is_moved[piece] = true;
        self.moves.push((piece, to));
    }

    fn put_back(&mut self) {
        let Some((piece, to)) = self.moves.pop() else { return };
        let (weight, from) = (self.problem.pieces[piece].weight, self.problem.pieces[piece].shard);
        self.weights[to][0] -= weight[0];
        self.weights[to][1] -= weight[1];
        add(&mut self.weights[from], weight);
        self.at[piece] = from;
        self.is_moved[piece] = false;
    }

    /// By how much a shard is above its cap; one that takes nothing has a cap of its own: none.
    fn excess(&self, shard: usize) -> Weight {
        let (weight, cap) = (self.weights[shard], self.problem.cap);
        [weight[0].saturating_sub(cap[0]), weight[1].saturating_sub(cap[1])]
    }

    fn fits(&self, shard: usize, more: Weight) -> bool {
        let (weight, cap) = (self.weights[shard], self.problem.cap);
        weight[0].saturating_add(more[0]) <= cap[0] && weight[1].saturating_add(more[1]) <= cap[1]
    }

    /// How full a shard is, in parts of a million of its cap, by what it has most of.
    fn fullness(&self, shard: usize) -> u128 {
        let part = |which: usize| {
            u128::from(self.weights[shard][which]) * 1_000_000 / u128::from(self.problem.cap[which].max(1))
        };
        part(0).max(part(1))
    }

    /// The fullest shard that is above its cap.
    fn heaviest(&self) -> Option<usize> {
        let above = (0..self.problem.shards).filter(|shard| self.excess(*shard) != [0, 0]);
        above.max_by_key(|shard| (self.fullness(*shard), Reverse(*shard)))
    }

    /// Pieces on a shard that may be moved and were not, the largest first, one of each weight.
    fn movable_on(&self, shard: usize) -> Vec<usize> {
        let is_movable = |piece: &usize| {
            self.at[*piece] == shard && !self.is_moved[*piece] && self.problem.pieces[*piece].is_movable
        };
        let mut pieces: Vec<usize> = (0..self.at.len()).filter(is_movable).collect();
        let weight = |piece: &usize| self.problem.pieces[*piece].weight;
        pieces.sort_by_key(|piece| (Reverse(weight(piece)), *piece));
        // Which of two equal ones goes makes no difference.
        pieces.dedup_by_key(|piece| weight(piece));
        pieces
    }

    /// Moves that are needed at least; none: whatever is moved, a shard stays above its cap.
    fn lower_bound(&self) -> Option<usize> {
        let above = (0..self.problem.shards).filter(|shard| self.excess(*shard) != [0, 0]);
        above.map(|shard| self.needed(shard)).sum()
    }

    /// How many pieces must leave a shard at least.
    fn needed(&self, shard: usize) -> Option<usize> {
        let excess = self.excess(shard);
        let count_of = |which: usize| {
            let is_there = |piece: &&Piece| piece.is_movable;
            let here = self.problem.pieces.iter().enumerate();
            let here = here.filter(|(index, _)| self.at[*index] == shard && !self.is_moved[*index]);
            let mut weights: Vec<u64> =
                here.map(|(_, piece)| piece).filter(is_there).map(|piece| piece.weight[which]).collect();
            weights.sort_unstable_by_key(|weight| Reverse(*weight));
            let mut left = excess[which];
            let mut count = 0;
            for weight in weights {
                if left == 0 {
                    break;
                }
                left = left.saturating_sub(weight);
                count += 1;
            }
            (left == 0).then_some(count)
        };
        Some(count_of(0)?.max(count_of(1)?))
    }

    /// Whether so many further moves are enough; none: the bound of states was reached.
    fn descend(&mut self, moves_left: usize, nodes_left: &mut usize) -> Option<bool> {
        *nodes_left = nodes_left.checked_sub(1)?;
        let Some(from) = self.heaviest() else { return Some(true) };
        if self.lower_bound().is_none_or(|needed| needed > moves_left) {
            return Some(false);
        }
        for piece in self.movable_on(from) {
            for to in 0..self.problem.shards {
                if to == from || !self.problem.takes[to] {
                    continue;
                }
                self.take(piece, to);
                match self.descend(moves_left - 1, nodes_left) {
                    Some(false) => self.put_back(),
                    found => return found,
                }
            }
        }
        Some(false)
    }
}

fn add(weight: &mut Weight, more: Weight) {
    weight[0] = weight[0].saturating_add(more[0]);
    weight[1] = weight[1].saturating_add(more[1]);
}

#[cfg(test)]
mod tests;
