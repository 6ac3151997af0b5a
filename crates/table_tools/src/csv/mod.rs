//! Entities as records of CSV: a line of names, a line of types, a record an entity.
//!
//! ```text
//! PartitionKey,RowKey,Score,Score,Name
//! Edm.String,Edm.String,Edm.Double,Edm.Int32,Edm.String
//! p,r,,7,"O""Neil"
//! p,s,NaN,,""
//! ```
//!
//! A property with several types has a column for each. A cell without quotes and text is an absent property;
//! `""` is an empty text, or no bytes. What always holds: what is written is read back as the same entity,
//! but for the order of its properties, which is that of the columns.

pub(crate) mod read;
pub(crate) mod write;
