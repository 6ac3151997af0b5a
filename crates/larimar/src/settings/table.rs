//! Every setting of the server: the one list that the file, the environment, `larimar config` and the table
//! in `docs/settings.md` are made from.
//!
//! What always holds: each flag of `larimar serve` but `--config` is here, with the default that the command
//! line has; a key is the flag's name on the command line's side (clap's id), a variable `LARIMAR_` and the
//! key.

use crate::settings::kind::Kind;
use crate::settings::setting::{Change, PLAIN, Setting};
use crate::settings::stamp_table;

/// All settings, in the order of the documentation.
pub(crate) static SETTINGS: [Setting; 46] = [
    Setting {
        group: "Data",
        key: "data",
        flag: "--data",
        operand: "DIR",
        kind: Kind::Path,
        default: "larimar-data",
        meaning: "folder that holds the data; made if missing, for the user of the server alone (0700)",
        ..PLAIN
    },
    Setting {
        group: "Data",
        key: "in_memory",
        flag: "--in-memory",
        kind: Kind::Switch,
        default: "false",
        meaning: "keep everything in memory, forget it at the end; not together with data",
        ..PLAIN
    },
    Setting {
        group: "Data",
        key: "ready_file",
        flag: "--ready-file",
        operand: "FILE",
        kind: Kind::Path,
        unset: "none is written",
        example: "ready.json",
        meaning: "written, in one step, once the server listens; its folder has to be there, unless it is the data folder",
        ..PLAIN
    },
    stamp_table::STAMP,
    stamp_table::STORE,
    stamp_table::STORE_ENDPOINT,
    stamp_table::STORE_REGION,
    stamp_table::STORE_PATH_STYLE,
    stamp_table::STORE_CA_FILE,
    stamp_table::ETCD,
    stamp_table::LEASE,
    stamp_table::STORE_TIMEOUT,
    stamp_table::ETCD_TIMEOUT,
    stamp_table::STAMP_REPLAY_MAX,
    stamp_table::CACHE,
    stamp_table::CACHE_SIZE,
    Setting {
        group: "Addresses",
        key: "host",
        flag: "--host",
        operand: "HOST",
        default: "127.0.0.1",
        meaning: "IP address to listen on, or a name that is resolved at the start (its first address counts)",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "blob_port",
        flag: "--blob-port",
        operand: "PORT",
        kind: Kind::Port,
        default: "10000",
        meaning: "port of the Blob service; 0 picks a free one",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "queue_port",
        flag: "--queue-port",
        operand: "PORT",
        kind: Kind::Port,
        default: "10001",
        meaning: "port of the Queue service; 0 picks a free one",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "table_port",
        flag: "--table-port",
        operand: "PORT",
        kind: Kind::Port,
        default: "10002",
        meaning: "port of the Table service; 0 picks a free one",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "admin_host",
        flag: "--admin-host",
        operand: "HOST",
        default: "127.0.0.1",
        meaning: "address that the admin side listens on, as host. Beyond this machine it needs tls_cert, and every \
                  request a token",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "admin_names",
        flag: "--admin-name",
        operand: "NAME",
        kind: Kind::Texts,
        unset: "only its addresses, localhost and admin_host",
        example: "db1.example",
        meaning: "further host names by which the admin side is reached, such as with admin_host 0.0.0.0: requests for \
                  other ones are refused, because a page in a browser may have been led here; the flag is repeated \
                  for more",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "admin_port",
        flag: "--admin-port",
        operand: "PORT",
        kind: Kind::PortOrNone,
        default: "10010",
        meaning: "port of the admin side; taken: the server starts all the same, and warns; 0 picks a free one, none \
                  turns it off",
        ..PLAIN
    },
    Setting {
        group: "Addresses",
        key: "admin_token_file",
        flag: "--admin-token-file",
        operand: "FILE",
        kind: Kind::Path,
        unset: "admin-tokens in the data folder; in memory a file of its own that the start prints and the end removes",
        example: "/etc/larimar/admin-tokens",
        meaning: "file with the tokens of the admin side, a line ROLE TOKEN for each of read, operate and admin; made, \
                  for the user of the server alone (0600), if it is missing",
        ..PLAIN
    },
    Setting {
        group: "Accounts",
        key: "accounts",
        flag: "--account",
        operand: "NAME:KEY[:KEY2]",
        kind: Kind::Texts,
        unset: "the development account",
        example: "NAME:KEY",
        meaning: "accounts with one or two Base64 keys; the flag is repeated for more",
        ..PLAIN
    },
    Setting {
        group: "Accounts",
        key: "accounts_file",
        flag: "--accounts-file",
        operand: "FILE",
        kind: Kind::Path,
        unset: "no file",
        example: "accounts",
        meaning: "file with one NAME:KEY[:KEY2] a line, of 4 MiB at most; # starts a comment. SIGHUP has it read \
                  again, but what changed in it is in force with the next start only",
        ..PLAIN
    },
    Setting {
        group: "Accounts",
        key: "versioned_accounts",
        flag: "--versioned-account",
        operand: "NAME",
        kind: Kind::Texts,
        unset: "none, as a new account in Azure",
        example: "myaccount",
        meaning: "accounts that keep former versions of their blobs; the flag is repeated for more",
        ..PLAIN
    },
    Setting {
        group: "Encryption and tokens",
        key: "tls_cert",
        flag: "--tls-cert",
        operand: "FILE",
        kind: Kind::Path,
        unset: "connections are not encrypted",
        example: "cert.pem",
        change: Change::AtRunTime,
        meaning: "certificate (chain), PEM: connections are encrypted, and others are not served; looked at every \
                  minute: a renewed pair is shown to those that connect from then on, one that can't be used is \
                  logged. At run time its file can change, not whether there is one",
        ..PLAIN
    },
    Setting {
        group: "Encryption and tokens",
        key: "tls_key",
        flag: "--tls-key",
        operand: "FILE",
        kind: Kind::Path,
        unset: "connections are not encrypted",
        example: "key.pem",
        change: Change::AtRunTime,
        meaning: "the certificate's private key, PEM",
        ..PLAIN
    },
    Setting {
        group: "Encryption and tokens",
        key: "oauth",
        flag: "--oauth",
        operand: "MODE",
        kind: Kind::Word(&["basic"]),
        unset: "no bearer token is taken",
        example: "basic",
        meaning: "take bearer tokens whose signature is not verified, for development only; needs TLS",
        ..PLAIN
    },
    Setting {
        group: "Encryption and tokens",
        key: "unencrypted_customer_keys",
        flag: "--unencrypted-customer-keys",
        kind: Kind::Switch,
        default: "false",
        meaning: "take customers' keys and encryption scopes of blobs, too, for tests of applications that use them: \
                  nothing is encrypted with them. Without it such requests are refused",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "memory_budget",
        flag: "--memory-budget",
        operand: "SIZE",
        kind: Kind::Size { least: 64 << 20 },
        unit: "bytes",
        unset: "a quarter of the memory that the process may use, 64 MiB to 4 GiB; 1 GiB where that can't be learned",
        example: "512MiB",
        meaning: "memory for rows on their way to checkpoints and for cached blocks together. The process takes 150 \
                  MiB more at most: other bounds are parts of the budget, and the cache shrinks by what is beyond",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "cache_share",
        flag: "--cache-share",
        operand: "PERCENT",
        kind: Kind::Whole { least: 10, most: Some(90) },
        unit: "percent",
        unset: "half, or all but 512 MiB if that is more",
        example: "50",
        meaning: "the cache's part of the memory budget. What is in memory tables, the other part, is read from the \
                  log again after a crash",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "range_size",
        flag: "--range-size",
        operand: "SIZE",
        kind: Kind::Size { least: 0 },
        unit: "bytes",
        default: "4GiB",
        meaning: "a range with more bytes of checkpoints is split; at least what a memory table holds: 32 MiB \
                  (33,554,432), or less with a memory budget so small that its memory tables are smaller",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "max_ranges",
        flag: "--max-ranges",
        operand: "COUNT",
        kind: Kind::Whole { least: 5, most: None },
        unit: "ranges",
        default: "32",
        meaning: "ranges of the process; then none is split any more",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "heat_sample",
        flag: "--heat-sample",
        operand: "COUNT",
        kind: Kind::Whole { least: 0, most: Some(65_536) },
        unit: "requests",
        default: "64",
        meaning: "one request in so many is noted, by the key that it is for, in what larimar admin heat prints; 0: none",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "scrub_rate",
        flag: "--scrub-rate",
        operand: "SIZE",
        kind: Kind::Size { least: 0 },
        unit: "bytes a second",
        default: "4MiB",
        meaning: "how fast sealed extents are read again in the background, to notice damage; 0: never",
        ..PLAIN
    },
    Setting {
        group: "Memory, ranges and threads",
        key: "pin_workers",
        flag: "--pin-workers",
        operand: "BOOL",
        kind: Kind::Bool,
        default: "true",
        meaning: "keep each worker thread on one core, if there are as many workers as cores that the process may use; \
                  false: the kernel moves them, for machines with other busy programs",
        ..PLAIN
    },
    Setting {
        group: "Simulation",
        key: "simulate",
        flag: "--simulate",
        operand: "PROFILE|FILE",
        kind: Kind::Path,
        unset: "nothing is simulated",
        example: "azure",
        change: Change::AtRunTime,
        meaning: "behave like the live service on purpose: its limits, page boundaries and balancing as in the profile \
                  azure or azure-large, or as a rule file says, with faults. For tests of applications. At run time \
                  its rules can change, not whether there are any",
        ..PLAIN
    },
    Setting {
        group: "Log",
        key: "log",
        flag: "--log",
        operand: "LEVELS",
        kind: Kind::Levels,
        default: "warn",
        change: Change::AtRunTime,
        meaning: "what is logged to standard error, such as info or warn,partition=debug",
        ..PLAIN
    },
    Setting {
        group: "Log",
        key: "access_log",
        flag: "--access-log",
        operand: "FILE|-",
        kind: Kind::Path,
        unset: "no request is logged",
        example: "/var/log/larimar/access.log",
        meaning: "a line of JSON for each request goes to this file, or with - to standard output. SIGUSR1 has the \
                  file opened again",
        ..PLAIN
    },
    Setting {
        group: "Log",
        key: "access_log_size",
        flag: "--access-log-size",
        operand: "SIZE",
        kind: Kind::Size { least: 0 },
        unit: "bytes",
        default: "64MiB",
        meaning: "the file of the access log is put aside as FILE.1 once it has so many bytes; four such files are \
                  kept; 0: never",
        ..PLAIN
    },
    Setting {
        group: "Log",
        key: "slow_requests",
        flag: "--slow-requests",
        operand: "MILLISECONDS",
        kind: Kind::Whole { least: 0, most: None },
        unit: "milliseconds",
        default: "0",
        meaning: "requests that take so long are slow: larimar admin slow prints the last 128, and log info logs them; \
                  0: none are",
        ..PLAIN
    },
    Setting {
        group: "Traces and metrics",
        key: "otlp",
        flag: "--otlp",
        operand: "URL",
        kind: Kind::Text,
        unset: "nothing is sent",
        example: "http://127.0.0.1:4318",
        meaning: "traces of requests and metrics go to the OpenTelemetry collector at this URL, by OTLP over HTTP. \
                  Needs a build with the feature otlp, as packages are",
        ..PLAIN
    },
    Setting {
        group: "Traces and metrics",
        key: "otlp_one_in",
        flag: "--otlp-one-in",
        operand: "NUMBER",
        kind: Kind::Whole { least: 0, most: None },
        unit: "requests",
        default: "100",
        meaning: "of requests whose client does not say whether they are traced (traceparent), one in so many is; \
                  0: none",
        ..PLAIN
    },
    Setting {
        group: "Traces and metrics",
        key: "otlp_metrics_every",
        flag: "--otlp-metrics-every",
        operand: "SECONDS",
        kind: Kind::Whole { least: 0, most: None },
        unit: "seconds",
        default: "60",
        meaning: "metrics are sent so often; 0: never",
        ..PLAIN
    },
];

#[cfg(test)]
mod tests;
