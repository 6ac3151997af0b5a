//! Empty: what there is to see is in `tests/`.
