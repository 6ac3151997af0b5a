//! The audit log: a line of the log when somebody begins a change on the admin side, one for what came of it,
//! and one for wrong tokens and for roles that are too low.
//!
//! What always holds: a line is logged whatever the level is, and holds no token.

use super::tokens::Role;
use crate::output::log::announce;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the lines: of equal ones the log leaves out all but one in some seconds.
#[derive(Debug, Default)]
pub(super) struct Audit {
    count: AtomicU64,
}

impl Audit {
    /// Somebody with this role did something; `outcome` is what came of it.
    pub(super) fn note_change(&self, role: Role, peer: SocketAddr, what: &str, outcome: &str) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        announce(&format!(
            "admin side ({number}.): {what} from {peer} with a token of role {}: {outcome}",
            role.name()
        ));
    }

    /// A token came whose role is too low, the `tries`th of late. Its line is logged for powers of two only.
    pub(super) fn note_low_role(
        &self,
        (role, needed): (Role, Role),
        peer: SocketAddr,
        what: &str,
        tries: u32,
    ) {
        if tries.is_power_of_two() {
            let (role, needed) = (role.name(), needed.name());
            announce(&format!(
                "admin side: {what} from {peer} with a token of role {role} is refused, it needs {needed} ({tries} of \
                 late)"
            ));
        }
    }

    /// A wrong token came, the `tries`th of late. Its line is logged for powers of two only.
    pub(super) fn note_wrong_token(&self, peer: SocketAddr, what: &str, tries: u32) {
        if tries.is_power_of_two() {
            announce(&format!("admin side: {what} from {peer} with a wrong token ({tries} of late)"));
        }
    }
}
