//! Which build of the server a bench measures, and beside which build of the bare server.
//!
//! Figures are those of the `dist` profile, which packages are built with; `release` is for trying. What
//! always holds: the bare server is built like the server that it is the yardstick of, and a bench says with
//! which profile.

use crate::{Outcome, workspace};
use std::path::PathBuf;

/// A profile of `Cargo.toml`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// For trying: built fast.
    Release,
    /// For packages and figures: fat LTO.
    Dist,
}

impl Profile {
    /// Its name in `Cargo.toml`, which its folder under the target folder has, too.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Profile::Release => "release",
            Profile::Dist => "dist",
        }
    }

    /// Builds a package's program.
    pub(crate) fn build(self, package: &str) -> Outcome<PathBuf> {
        let status = workspace::cargo()?
            .args(["build", "--quiet", "--profile", self.name(), "--package", package])
            .status()?;
        if !status.success() {
            return Err(format!("{package} does not build").into());
        }
        Ok(workspace::target()?.join(self.name()).join(package))
    }
}

/// Which server a bench measures.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct MeasuredServer {
    /// The server to measure; else this checkout's, built now.
    #[arg(long)]
    bin: Option<PathBuf>,
    /// How it is built, and the bare server beside it.
    #[arg(long, value_enum, default_value_t = Profile::Dist)]
    profile: Profile,
}

/// The programs of a bench.
pub(crate) struct Programs {
    /// The server.
    pub(crate) larimar: PathBuf,
    /// The chores, one of which is the bare server.
    pub(crate) bare: PathBuf,
}

impl MeasuredServer {
    /// This program, with the bare server of the chores that run.
    pub(crate) fn smoke(bin: PathBuf) -> Self {
        MeasuredServer { bin: Some(bin), profile: Profile::Release }
    }

    /// Builds what is missing and says what is measured.
    pub(crate) fn programs(&self) -> Outcome<Programs> {
        let profile = self.profile.name();
        let larimar = match &self.bin {
            Some(bin) => {
                println!(
                    "server: {} (its profile is not known); bare server: profile {profile}",
                    bin.display()
                );
                bin.clone()
            }
            None => {
                println!("server and bare server: profile {profile}");
                self.profile.build("larimar")?
            }
        };
        let bare = match self.profile {
            // `cargo xtask` is built with it.
            Profile::Release => std::env::current_exe()?,
            Profile::Dist => self.profile.build("xtask")?,
        };
        Ok(Programs { larimar, bare })
    }
}
