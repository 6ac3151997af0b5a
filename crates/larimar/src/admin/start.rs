//! The admin side of a server that starts: its port, its tokens, and what it works on.
//!
//! What always holds: a port that is taken, or tokens that can't be had, are a warning and no reason not to
//! serve.

use super::answers::Admin;
use super::api::{Api, Handles};
use super::listener::AdminListener;
use super::readiness::Readiness;
use super::route::OwnNames;
use super::token_store::{TOKEN_FILE_NAME, TokenStore};
use crate::configuration::{ADMIN_PORT_FLAG, AdminAddress, Configuration, Storage, is_loopback};
use crate::output::report::AdminPlace;
use base::Environment;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The admin side of this process.
pub(crate) struct AdminSide {
    admin: Arc<Admin>,
    address: SocketAddr,
    is_encrypted: bool,
    token_file: PathBuf,
    /// Whether the file goes with the process.
    is_token_file_passing: bool,
}

/// Why the admin side can't be started, although its port is free.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("{address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("{0}")]
    Runtime(std::io::Error),
}

impl AdminSide {
    /// Starts it, if it is on, on the socket that was passed for it, or else on its port; it answers from
    /// here on.
    pub(crate) fn start(
        configuration: &Configuration,
        passed: Option<std::net::TcpListener>,
        readiness: &Arc<Readiness>,
        env: &Environment,
        version: &'static str,
    ) -> Result<Option<Self>, AdminError> {
        let Some(AdminAddress { address, beyond, names, token_file }) = configuration.addresses.admin.clone()
        else {
            return Ok(None);
        };
        let listener = match AdminListener::bind(passed, address) {
            Ok(listener) => listener,
            Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) => {
                tracing::warn!(
                    port = address.port(),
                    %error,
                    "the admin side is off, because its port can't be listened on; choose another with {ADMIN_PORT_FLAG}, or none"
                );
                return Ok(None);
            }
            Err(error) => return Err(AdminError::Listen { address, error }),
        };
        let address = listener.address();
        if beyond.is_none() && !is_loopback(address.ip()) {
            let why = "the socket that was passed is reached by other machines; pass one of this machine, or give \
                       --admin-host and --tls-cert, too";
            return Err(AdminError::Listen { address, error: std::io::Error::other(why) });
        }
        let identity = configuration.tls.as_ref().filter(|_| beyond.is_some());
        let identity = identity.map(|certificate| certificate.identity.clone());
        let is_encrypted = identity.is_some();
        let (metrics, clock) = (env.metrics.clone(), env.clock.clone());
        let names = OwnNames { given: beyond, allowed: names };
        let admin = Arc::new(Admin::new(readiness.clone(), metrics, clock, version, names));
        listener.start(admin.clone(), identity).map_err(AdminError::Runtime)?;
        let (token_file, is_token_file_passing) = match (token_file, &configuration.storage) {
            (Some(given), _) => (given, false),
            (None, Storage::Folder(folder)) => (folder.join(TOKEN_FILE_NAME), false),
            (None, Storage::Memory | Storage::Stamp(_)) => (passing_token_file(), true),
        };
        let side = AdminSide { admin, address, is_encrypted, token_file, is_token_file_passing };
        // In a folder that is yet to be laid out nothing may lie before that.
        if side.is_token_file_passing || side.token_file.exists() {
            side.take_tokens();
        }
        Ok(Some(side))
    }

    /// Reads the tokens, or makes them.
    fn take_tokens(&self) {
        let tokens = match self.is_token_file_passing {
            true => TokenStore::create(&self.token_file),
            false => TokenStore::open(&self.token_file),
        };
        match tokens {
            Ok(tokens) => self.admin.note_tokens(tokens),
            Err(error) => tracing::warn!(
                "there are no tokens for the admin side, so nothing can be changed there: {}: {error}",
                self.token_file.display()
            ),
        }
    }

    /// The layers are open: from now on the API is answered.
    pub(crate) fn note_serving(&self, handles: Handles, env: &Environment) {
        if self.admin.tokens().is_none() {
            self.take_tokens();
        }
        self.admin.note_serving(Api::new(handles, env));
    }

    /// Where it is.
    pub(crate) fn place(&self) -> AdminPlace {
        AdminPlace {
            address: self.address,
            scheme: if self.is_encrypted { "https" } else { "http" },
            token_file: self.admin.tokens().map(|tokens| tokens.path().to_owned()),
        }
    }
}

impl Drop for AdminSide {
    fn drop(&mut self) {
        if self.is_token_file_passing {
            // It opens nothing any more.
            let _ = std::fs::remove_file(&self.token_file);
        }
    }
}

/// A file for the tokens of a server whose data is in memory.
fn passing_token_file() -> PathBuf {
    std::env::temp_dir().join(format!("larimar-{}-{TOKEN_FILE_NAME}", std::process::id()))
}
