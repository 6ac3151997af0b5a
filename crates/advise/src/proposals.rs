//! Proposals: many candidates are tried, and the best of each kind is kept.
//!
//! What always holds: the same sample, mix and answers give the same proposals in the same order.

use crate::answers::Answers;
use crate::design::candidates::{as_it_is, candidates, identity};
use crate::mix::Mix;
use crate::predict::facts::Facts;
use crate::predict::{Given, Prediction, Warning, predict, warnings};
use crate::sample::Sample;

/// Designs that are proposed, at most: the best one of each kind.
pub const PROPOSALS_MAX: usize = 3;

/// Why there is no advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdviseError {
    /// Without entities nothing can be predicted.
    #[error("the sample has no entities")]
    EmptySample,
    /// A property of the mix that no entity has.
    #[error("{place}: no entity of the sample has a property {property}")]
    UnknownProperty {
        /// The query or write.
        place: String,
        /// The property.
        property: String,
    },
    /// No candidate.
    #[error(
        "no property that queries compare with eq can be a key: each entity must have it, and it must not be a Double or Binary"
    )]
    NoCandidate,
}

/// Designs and what they would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Entities of the sample, and which share of all they are.
    pub sampled: usize,
    /// Entities in all, about.
    pub entities: f64,
    /// Their mean size in bytes.
    pub mean_size_bytes: f64,
    /// Entities written a second at the busiest time.
    pub peak_rate: f64,
    /// What the entities' own keys do; none if they have none.
    pub now: Option<Prediction>,
    /// The best of each kind, the best of all first.
    pub proposals: Vec<Prediction>,
    /// What is wrong with entities under any design.
    pub warnings: Vec<Warning>,
    /// What is not known of the mix.
    pub unknown: Vec<String>,
}

/// Proposes designs for a sample and a mix.
pub fn advise(sample: &Sample, mix: &Mix, answers: &Answers) -> Result<Report, AdviseError> {
    if sample.entities.is_empty() {
        return Err(AdviseError::EmptySample);
    }
    let facts = Facts::of(sample);
    check(mix, &facts)?;
    let identity = identity(&facts);
    let given = Given { facts: &facts, mix, answers, identity: &identity };
    let mut predicted: Vec<Prediction> =
        candidates(&given).into_iter().map(|design| predict(design, &given)).collect();
    // A stable sort: of two that cost the same, the simpler one, which is tried earlier.
    predicted
        .sort_by(|a, b| cost(a, answers).partial_cmp(&cost(b, answers)).unwrap_or(std::cmp::Ordering::Equal));
    let mut proposals: Vec<Prediction> = Vec::new();
    for prediction in predicted {
        let is_new = proposals.iter().all(|one| one.design.kind != prediction.design.kind);
        if is_new && proposals.len() < PROPOSALS_MAX {
            proposals.push(prediction);
        }
    }
    if proposals.is_empty() {
        return Err(AdviseError::NoCandidate);
    }
    Ok(Report {
        sampled: sample.entities.len(),
        entities: sample.whole_count(),
        mean_size_bytes: sample.mean_size_bytes(),
        peak_rate: given.peak_rate(),
        now: as_it_is(&facts).map(|design| predict(design, &given)),
        proposals,
        warnings: warnings::of_entities(sample),
        unknown: mix.unknown.clone(),
    })
}

/// What decides between designs, the most important first: serious warnings, transactions that fall apart
/// although they must not, requests a day, bytes that are there twice, the largest partition.
fn cost(prediction: &Prediction, answers: &Answers) -> [f64; 5] {
    let serious = prediction.warnings.iter().filter(|warning| warning.is_serious).count();
    let lost = if answers.is_atomic { prediction.transactions_lost } else { 0.0 };
    [serious as f64, lost, prediction.requests_per_day, prediction.duplicated_bytes, prediction.largest.share]
}

/// A property that nobody has is a mistake in the mix.
fn check(mix: &Mix, facts: &Facts<'_>) -> Result<(), AdviseError> {
    let queries = mix.queries.iter().map(|query| {
        (format!("query {:?}", query.name), query.equal.iter().chain(&query.range).collect::<Vec<_>>())
    });
    let writes =
        mix.writes.iter().map(|write| (format!("write {:?}", write.name), write.together.iter().collect()));
    for (place, properties) in queries.chain(writes) {
        if let Some(property) = properties.into_iter().find(|name| !facts.columns.contains_key(*name)) {
            return Err(AdviseError::UnknownProperty { place, property: property.clone() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
