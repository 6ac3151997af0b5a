//! Where a bucket's credentials come from, in the order in which clients of AWS look, and when they are
//! renewed.
//!
//! | order | file | what has to be set |
//! |---|---|---|
//! | 1 | `environment.rs` | `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN` |
//! | 2 | `profile.rs` | `AWS_PROFILE`, `AWS_SHARED_CREDENTIALS_FILE`, or `~/.aws/credentials` |
//! | 3 | `web_identity.rs` | `AWS_WEB_IDENTITY_TOKEN_FILE` and `AWS_ROLE_ARN` |
//! | 4 | `container.rs` | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `…_FULL_URI` |
//! | 5 | `instance.rs` | nothing: the machine's own, unless `AWS_EC2_METADATA_DISABLED` |
//!
//! `chain.rs` looks in this order by the requests of `search.rs`, `held.rs` keeps what it finds.
//!
//! What always holds: a source that is set up and does not work is an error, and no other is tried in its
//! place.

pub(crate) mod chain;
pub(crate) mod container;
pub(crate) mod environment;
pub(crate) mod held;
pub(crate) mod instance;
pub(crate) mod json_document;
pub(crate) mod profile;
pub(crate) mod search;
pub(crate) mod web_identity;

use crate::secret::Secret;
use base::Ticks;

/// What requests are signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) key_id: Secret,
    pub(crate) secret: Secret,
    pub(crate) session_token: Option<Secret>,
}

/// Credentials, and until when they are good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) credentials: Credentials,
    /// None: for ever.
    pub(crate) ends_at: Option<Ticks>,
}
