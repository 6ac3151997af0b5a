//! Credentials in the environment's variables.

use crate::credentials::{Credentials, Found};
use crate::secret::Secret;
use crate::surroundings::StoreSurroundings;

const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const TOKEN: &str = "AWS_SESSION_TOKEN";

/// Those of the variables; none if neither is set.
pub(crate) fn from_variables(surroundings: &StoreSurroundings) -> Result<Option<Found>, String> {
    match (surroundings.variable(KEY_ID), surroundings.variable(SECRET)) {
        (Some(key_id), Some(secret)) => {
            let session_token = surroundings.variable(TOKEN).map(Secret::new);
            let credentials =
                Credentials { key_id: Secret::new(key_id), secret: Secret::new(secret), session_token };
            Ok(Some(Found { credentials, ends_at: None }))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(format!("{KEY_ID} is set, and {SECRET} is not")),
        (None, Some(_)) => Err(format!("{SECRET} is set, and {KEY_ID} is not")),
    }
}
