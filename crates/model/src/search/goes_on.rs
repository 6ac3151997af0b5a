//! Whether somebody can always go on: from every state a state is reached in which every range has a live
//! owner whose next append succeeds.
//!
//! Found backwards: from those states over all steps, against their direction. What always holds: every state
//! that is not met has no way to one of them.

use crate::search::explore::Graph;

/// The first state, by distance from the start, from which the stamp never goes on.
pub(crate) fn first_stuck(graph: &Graph) -> Option<usize> {
    let states = graph.goes_on.len();
    let mut counts = vec![0u64; states + 1];
    for follower in &graph.followers {
        counts[*follower as usize + 1] += 1;
    }
    for at in 0..states {
        counts[at + 1] += counts[at];
    }
    let first_of = counts.clone();
    let mut leaders = vec![0u32; graph.followers.len()];
    for state in 0..states {
        let (from, to) = (graph.first_of[state] as usize, graph.first_of[state + 1] as usize);
        for follower in &graph.followers[from..to] {
            let next = &mut counts[*follower as usize];
            leaders[*next as usize] = state as u32;
            *next += 1;
        }
    }
    let mut is_met = graph.goes_on.clone();
    let mut open: Vec<u32> = (0..states as u32).filter(|state| is_met[*state as usize]).collect();
    while let Some(state) = open.pop() {
        let (from, to) = (first_of[state as usize] as usize, first_of[state as usize + 1] as usize);
        for leader in &leaders[from..to] {
            if !std::mem::replace(&mut is_met[*leader as usize], true) {
                open.push(*leader);
            }
        }
    }
    is_met.iter().position(|met| !met)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[&[u32]], goes_on: &[usize]) -> Graph {
        let mut graph = Graph { goes_on: vec![false; edges.len()], ..Graph::default() };
        for followers in edges {
            graph.first_of.push(graph.followers.len() as u64);
            graph.followers.extend_from_slice(followers);
        }
        graph.first_of.push(graph.followers.len() as u64);
        for state in goes_on {
            graph.goes_on[*state] = true;
        }
        graph
    }

    #[test]
    fn a_state_without_a_way_on_is_found() {
        assert_eq!(first_stuck(&graph(&[&[1], &[2], &[0]], &[2])), None);
        assert_eq!(first_stuck(&graph(&[&[1, 2], &[], &[3], &[3]], &[1])), Some(2));
        assert_eq!(first_stuck(&graph(&[&[1], &[1]], &[])), Some(0));
        assert_eq!(first_stuck(&graph(&[&[1], &[]], &[1])), None);
    }
}
