//! What a run found, as data, text, JSON and a page. Pure.

pub(crate) mod data;
pub(crate) mod findings;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod numbers;
pub(crate) mod plot;
pub(crate) mod text;
