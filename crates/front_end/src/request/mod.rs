//! The parts of a request that all services read alike: address, query, ids, the case of metadata names, MD5.

pub(crate) mod addressing;
pub(crate) mod connection_info;
pub(crate) mod content_md5;
pub(crate) mod header_case;
pub(crate) mod protocol_version;
pub(crate) mod query_string;
pub(crate) mod request_id;
