//! Entity group transactions as `multipart/mixed`: the request read liberally, the reply written as the
//! service does.

mod reader;
mod writer;

pub(crate) use reader::{BatchPart, BatchRequest, OPERATIONS_READ_MAX, boundary_of, read_batch};
pub(crate) use writer::{PartReply, write_change_set_reply, write_direct_reply};
