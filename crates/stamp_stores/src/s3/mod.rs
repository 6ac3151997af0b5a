//! Objects in a bucket, over S3's protocol.
//!
//! | file | content |
//! |---|---|
//! | `signature.rs` | signature version 4 in headers |
//! | `address.rs` | endpoint, region and style of a bucket |
//! | `bucket.rs` | a bucket: signed requests, one try each |
//! | `answers.rs` | what statuses, error codes and listings say |
//! | `objects.rs` | the bucket as a store of objects |
//! | `first_start.rs` | whether a bucket keeps or removes objects by itself |

pub(crate) mod address;
pub(crate) mod answers;
pub(crate) mod bucket;
pub(crate) mod first_start;
pub(crate) mod objects;
pub(crate) mod signature;
