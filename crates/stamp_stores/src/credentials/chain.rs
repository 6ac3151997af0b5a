//! Looks for credentials where they may be, in order.

use crate::credentials::Found;
use crate::credentials::container::from_container;
use crate::credentials::environment::from_variables;
use crate::credentials::instance::from_instance;
use crate::credentials::profile::from_profile;
use crate::credentials::search::Search;
use crate::credentials::web_identity::from_web_identity;

/// Looks in order; an error says what is wrong where they should be.
pub(crate) async fn search(search: &Search) -> Result<Found, String> {
    if let Some(found) = from_variables(&search.surroundings)? {
        return Ok(found);
    }
    if let Some(found) = from_profile(&search.surroundings).await? {
        return Ok(found);
    }
    if let Some(found) = from_web_identity(search).await? {
        return Ok(found);
    }
    if let Some(found) = from_container(search).await? {
        return Ok(found);
    }
    from_instance(search).await
}
