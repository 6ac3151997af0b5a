//! The search against all solutions of small problems.

use super::*;
use base::random::splitmix64;

fn problem(pieces: &[(usize, u64)], shards: usize, cap: u64) -> Problem {
    let piece = |(shard, size): &(usize, u64)| Piece { shard: *shard, weight: [*size, 0], is_movable: true };
    let pieces = pieces.iter().map(piece).collect();
    Problem { pieces, shards, takes: vec![true; shards], cap: [cap, 0] }
}

/// Whether all shards are below the cap after the moves.
fn is_solved(problem: &Problem, moves: &[(usize, usize)]) -> bool {
    let mut state = State::new(problem);
    moves.iter().for_each(|(piece, to)| state.take(*piece, *to));
    state.heaviest().is_none()
}

/// The fewest moves of all placements.
fn fewest(problem: &Problem) -> Option<usize> {
    let (count, mut best) = (problem.shards.pow(problem.pieces.len() as u32), None);
    for mut code in 0..count {
        let mut moves = Vec::new();
        for (index, piece) in problem.pieces.iter().enumerate() {
            let to = code % problem.shards;
            code /= problem.shards;
            if to != piece.shard {
                moves.push((index, to));
            }
        }
        let is_allowed =
            moves.iter().all(|(index, to)| problem.pieces[*index].is_movable && problem.takes[*to]);
        if is_allowed && best.is_none_or(|best| moves.len() < best) && is_solved(problem, &moves) {
            best = Some(moves.len());
        }
    }
    best
}

#[test]
fn known_problems_have_their_fewest_moves() {
    for (pieces, shards, cap, expected) in [
        (&[(0, 5), (0, 5), (1, 1)][..], 2, 6, 1),
        (&[(0, 3), (0, 3), (1, 3), (1, 3)], 2, 6, 0),
        // A shard that is not too full must give something away first.
        (&[(0, 5), (0, 5), (1, 3), (1, 4), (2, 5)], 3, 9, 2),
        (&[(0, 9), (0, 1), (0, 1), (1, 2)], 2, 11, 0),
        (&[(0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)], 3, 2, 4),
    ] {
        let problem = problem(pieces, shards, cap);
        let found = search(&problem, 10_000);
        assert!(found.is_balanced && is_solved(&problem, &found.moves), "{pieces:?}: {found:?}");
        assert_eq!((found.moves.len(), fewest(&problem)), (expected, Some(expected)), "{pieces:?}");
        assert_eq!(found.at_least, expected);
    }
}

#[test]
fn small_problems_are_solved_with_the_fewest_moves() {
    let mut seed = 7;
    let mut below = |bound: u64| splitmix64(&mut seed) % bound;
    let mut better_than_greedy = 0;
    for _ in 0..400 {
        let shards = 2 + below(2) as usize;
        let pieces: Vec<Piece> = (0..=2 + below(4))
            .map(|_| Piece {
                shard: below(shards as u64) as usize,
                weight: [below(9), below(4)],
                is_movable: below(8) > 0,
            })
            .collect();
        let takes = (0..shards).map(|_| below(8) > 0).collect();
        let problem = Problem { pieces, shards, takes, cap: [6 + below(9), 3 + below(5)] };
        let (found, expected) = (search(&problem, usize::MAX), fewest(&problem));
        assert_eq!(found.is_balanced, expected.is_some(), "{problem:?}");
        if let Some(expected) = expected {
            assert!(is_solved(&problem, &found.moves), "{problem:?}");
            assert_eq!((found.moves.len(), found.at_least), (expected, expected), "{problem:?}");
            let (greedy, is_balanced) = greedy(&problem);
            better_than_greedy += usize::from(!is_balanced || greedy.len() > expected);
        }
    }
    assert!(better_than_greedy > 5, "{better_than_greedy}");
}

#[test]
fn a_search_ends_at_its_bound() {
    let pieces: Vec<(usize, u64)> = (0..40).map(|number| (0, 100 + number * 7 % 31)).collect();
    let problem = problem(&pieces, 4, 1190);
    let found = search(&problem, 500);
    assert!(found.at_least <= found.moves.len() && found.at_least > 0, "{found:?}");
}
