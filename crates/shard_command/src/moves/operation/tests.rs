//! Plans, moves and checks over shards in memory.
