//! Operations on containers: each is one decision over the container's row.

use crate::condition::{Conditions, Present};
use crate::container::container_row::{ContainerRow, PublicAccess};
use crate::encryption::ContainerEncryption;
use crate::error::BlobError;
use crate::lease::{Lease, LeaseAction, LeaseOutcome};
use crate::name::Pairs;
use base::Ticks;
use partition::{Decision, ObjectTable, Operation, Read, RowChange, RowKey, RowVersion, Rows};
use service::StoredPolicy;

/// What is done to a container.
#[derive(Clone, Debug)]
pub(crate) enum ContainerAction {
    Create { name: String, metadata: Pairs, public_access: PublicAccess, encryption: ContainerEncryption },
    Delete,
    SetMetadata(Pairs),
    SetPolicies { policies: Vec<StoredPolicy>, public_access: PublicAccess },
    Lease(LeaseAction),
}

/// An action at a row.
#[derive(Clone, Debug)]
pub(crate) struct ContainerOperation {
    pub(crate) key: RowKey,
    pub(crate) action: ContainerAction,
    pub(crate) conditions: Conditions,
}

/// The container after it, and what became of its lease.
pub(crate) type ContainerReply = Result<(ContainerRow, Option<LeaseOutcome>), BlobError>;

impl ContainerOperation {
    fn act(&self, row: Option<ContainerRow>, now: Ticks) -> Result<Acted, BlobError> {
        if let ContainerAction::Create { name, metadata, public_access, encryption } = &self.action {
            if row.is_some() {
                return Err(BlobError::ContainerAlreadyExists);
            }
            let row = ContainerRow {
                name: name.clone(),
                id: now.0,
                modified_at: now,
                etag: now.0,
                public_access: *public_access,
                metadata: metadata.clone(),
                lease: Lease::None,
                policies: Vec::new(),
                encryption: encryption.clone(),
            };
            return Ok(Acted { row, is_gone: false, lease: None });
        }
        let mut row = row.ok_or(BlobError::ContainerNotFound)?;
        let tags = Pairs::new();
        let present = Present { etag: row.etag, modified_at: row.modified_at, tags: &tags };
        self.conditions.check_write(Some(present))?;
        let mut acted = Acted { row: row.clone(), is_gone: false, lease: None };
        match &self.action {
            ContainerAction::Lease(action) => {
                let outcome = row.lease.act(action, now)?;
                acted.row.lease = outcome.lease.clone();
                acted.lease = Some(outcome);
                return Ok(acted);
            }
            ContainerAction::Delete => {
                row.lease.check_write(self.conditions.lease(), now)?;
                acted.is_gone = true;
                return Ok(acted);
            }
            ContainerAction::SetMetadata(metadata) => row.metadata = metadata.clone(),
            ContainerAction::SetPolicies { policies, public_access } => {
                row.policies = policies.clone();
                row.public_access = *public_access;
            }
            ContainerAction::Create { .. } => {}
        }
        row.lease.check_read(self.conditions.lease(), now)?;
        row.modified_at = now;
        row.etag = now.0;
        acted.row = row;
        Ok(acted)
    }
}

struct Acted {
    row: ContainerRow,
    is_gone: bool,
    lease: Option<LeaseOutcome>,
}

impl Operation for ContainerOperation {
    type Reply = ContainerReply;

    fn object_table(&self) -> ObjectTable {
        ObjectTable::Container
    }

    fn reads(&self) -> Vec<Read> {
        vec![Read::Point(self.key.clone())]
    }

    fn gives_back(&self) -> bool {
        matches!(&self.action, ContainerAction::Lease(action) if action.is_end())
    }

    fn decide(&self, rows: &Rows, version: RowVersion) -> Decision<ContainerReply> {
        let row = match rows.point(0).map(|row| ContainerRow::decode(&row.value)).transpose() {
            Ok(row) => row,
            Err(error) => return Decision::unchanged(Err(error.into())),
        };
        match self.act(row, Ticks(version.0)) {
            Err(error) => Decision::unchanged(Err(error)),
            Ok(acted) => {
                let key = self.key.clone();
                let change = match acted.is_gone {
                    true => RowChange::Delete { key },
                    false => RowChange::Put { key, value: acted.row.encode().into() },
                };
                Decision { changes: vec![change], reply: Ok((acted.row, acted.lease)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::LeaseError;
    use partition::Row;

    fn run(row: &mut Option<Row>, action: ContainerAction, now: u64) -> ContainerReply {
        let key = RowKey::new("acct", 0, "blob", "box");
        let operation = ContainerOperation { key: key.clone(), action, conditions: Conditions::default() };
        let decision = operation.decide(&Rows::new(vec![row.iter().cloned().collect()]), RowVersion(now));
        for change in decision.changes {
            *row = match change {
                RowChange::Put { value, .. } => {
                    Some(Row { key: key.clone(), version: RowVersion(now), value })
                }
                RowChange::Delete { .. } => None,
            };
        }
        decision.reply
    }

    fn create() -> ContainerAction {
        ContainerAction::Create {
            name: "box".into(),
            metadata: Pairs::new(),
            public_access: PublicAccess::None,
            encryption: ContainerEncryption::default(),
        }
    }

    /// On a full disk a lease could not be ended, so what it guards could not be deleted.
    #[test]
    fn a_full_disk_takes_what_ends_a_lease() {
        let id = || "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        for (action, expected) in [
            (create(), false),
            (ContainerAction::SetMetadata(Pairs::new()), false),
            (ContainerAction::Lease(LeaseAction::Acquire { seconds: None, id: id() }), false),
            (ContainerAction::Lease(LeaseAction::Renew { id: id() }), false),
            (ContainerAction::Lease(LeaseAction::Change { id: id(), proposed: id() }), false),
            (ContainerAction::Lease(LeaseAction::Release { id: id() }), true),
            (ContainerAction::Lease(LeaseAction::Break { seconds: None }), true),
        ] {
            let key = RowKey::new("acct", 0, "blob", "box");
            let operation = ContainerOperation { key, action, conditions: Conditions::default() };
            assert_eq!(operation.gives_back(), expected, "{:?}", operation.action);
        }
    }

    #[test]
    fn a_life() {
        let mut row = None;
        let missing = run(&mut row, ContainerAction::Delete, 1);
        assert_eq!(missing, Err(BlobError::ContainerNotFound));
        assert_eq!(run(&mut row, create(), 2).unwrap().0.id, 2);
        assert_eq!(run(&mut row, create(), 3), Err(BlobError::ContainerAlreadyExists));
        let metadata = ContainerAction::SetMetadata(vec![("a".into(), "1".into())]);
        assert_eq!(run(&mut row, metadata, 4).unwrap().0.etag, 4);
        let id = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa".to_owned();
        let lease = ContainerAction::Lease(LeaseAction::Acquire { seconds: None, id });
        let (leased, outcome) = run(&mut row, lease, 5).unwrap();
        assert_eq!((leased.etag, outcome.is_some()), (4, true));
        assert_eq!(run(&mut row, ContainerAction::Delete, 6), Err(LeaseError::IdMissing.into()));
        run(&mut row, ContainerAction::Lease(LeaseAction::Break { seconds: Some(0) }), 7).unwrap();
        run(&mut row, ContainerAction::Delete, 8).unwrap();
        assert_eq!(row, None);
        assert_eq!(run(&mut row, create(), 9).unwrap().0.id, 9, "a new one has a new id");
    }
}
