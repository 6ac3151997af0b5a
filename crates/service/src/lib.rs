//! What the three services share: names, ETags and conditions, date-times, Guids, stored access policies,
//! service properties, where containers lie in the Container object table, and the operations on these that
//! are alike.
//!
//! Everything here is plain data and pure functions, without I/O or clock, but for `container_list`,
//! `retired_containers` and `row_memo`, which ask the partition layer. What is stored has a versioned
//! encoding that is drawn at the top of its file.

pub mod condition;
pub mod container;
mod container_list;
mod delete_container;
pub mod name;
mod passed_over;
pub mod policy;
pub mod properties;
mod retired_containers;
mod row_memo;
mod set_service_properties;

pub use base::date_time::{
    DateTimeError, DateTimeText, TICKS_MAX, date_time_text, format_date_time, parse_date_time,
    seven_digits_text,
};
pub use base::{date_time, guid};
pub use condition::{Condition, InvalidETag, format_etag, parse_etag, parse_if_match};
pub use container::{SERVICE_BLOB, SERVICE_QUEUE, SERVICE_TABLE};
pub use container_list::{ContainerListQuery, PASSED_OVER_ROWS_MAX, read_container_page};
pub use delete_container::DeleteContainer;
pub use name::{NameError, check_account_name, check_container_name};
pub use passed_over::PassedOver;
pub use policy::{POLICIES_MAX, POLICY_ID_UNITS_MAX, PolicyError, StoredPolicy};
pub use properties::{
    CorsRule, Logging, Metrics, RetentionPolicy, ServiceProperties, ServicePropertiesError,
    ServicePropertiesUpdate,
};
pub use retired_containers::{ContainerKind, RETIRE_LOST_EVERY, ReadContainerId};
pub use row_memo::RowMemo;
pub use set_service_properties::{SetServiceProperties, read_service_properties};
