//! Operations that several services have in the same form: stored access policies, the service's settings,
//! user delegation keys.
//!
//! A service routes to them and authorises them like its own. What always holds: they know a service by
//! [`ServiceApi`](crate::pipeline::ServiceApi) alone.

pub(crate) mod policies;
pub(crate) mod service_settings;
pub(crate) mod user_delegation_key;
