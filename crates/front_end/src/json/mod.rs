//! JSON bodies: entities read into property values, and answers written into a byte buffer.

pub(crate) mod entity_reader;
pub(crate) mod entity_writer;
pub(crate) mod text;
pub(crate) mod value_reader;
