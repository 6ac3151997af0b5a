//! `--simulate`: a profile, or a rule file, read at the start and again on SIGHUP.
//!
//! What always holds: a rule file that can't be used changes nothing while the server runs, and is refused at
//! the start.

use crate::apart::run_apart;
use crate::bounded_file::read_text_bounded;
use base::nearest::nearest;
use front_end::{PROFILES, Simulation, SimulationSettings, parse_rule_file};
use parking_lot::Mutex;
use settings_file::{FILE_SIZE_BYTES_MAX, SettingsFileError};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why nothing can be simulated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SimulateError {
    #[error(
        "--simulate {}: there is no such profile ({}) and no file of this name{}",
        given.display(),
        PROFILES.join(", "),
        meant(given)
    )]
    Unknown { given: OsString },
    #[error("--simulate {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("--simulate {}: {error}", path.display())]
    Rules { path: PathBuf, error: SettingsFileError },
}

fn meant(given: &OsStr) -> String {
    let near = given.to_str().and_then(|given| nearest(given, PROFILES));
    near.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// What requests meet on purpose, and where that is written.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) simulation: Arc<Simulation>,
    /// What was read at the start, for the simulation of a server that runs.
    settings: SimulationSettings,
    /// The name that was given.
    pub(crate) given: OsString,
    /// What is in force now.
    in_force: Arc<Mutex<String>>,
    file: Option<PathBuf>,
    /// How often the file was read again: of equal lines the log leaves out all but one in some seconds.
    read_again_count: AtomicU64,
}

impl Simulated {
    /// Of a profile, or of the rules of a file. A profile comes first: `./azure` is a file.
    pub(crate) fn read(given: &OsStr) -> Result<Self, SimulateError> {
        let profile = given.to_str().and_then(SimulationSettings::profile);
        let file = profile.is_none().then(|| PathBuf::from(given));
        let settings = match (profile, &file) {
            (Some(profile), _) => profile,
            (None, None) => SimulationSettings::default(),
            (None, Some(path)) => read_rules(path)?,
        };
        let (simulation, given) = (Arc::new(Simulation::new(settings.clone())), given.to_owned());
        let in_force = Arc::new(Mutex::new(given.display().to_string()));
        Ok(Simulated { simulation, settings, given, in_force, file, read_again_count: AtomicU64::new(0) })
    }

    /// Whether there is a file that SIGHUP has read again.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// From now on what `read` has read is in force.
    pub(crate) fn adopt(&self, read: Simulated) {
        self.simulation.replace_settings(read.settings);
        *self.in_force.lock() = read.given.display().to_string();
    }

    /// What the admin side has of it.
    pub(crate) fn control(&self) -> SimulationControl {
        SimulationControl { simulation: self.simulation.clone(), in_force: self.in_force.clone() }
    }

    /// Reads the file again: for a server without a file of settings.
    pub(crate) async fn read_again(&self) -> Result<String, String> {
        let Some(path) = self.file.clone() else { return Err("there is no file of rules".to_owned()) };
        let (path, read) = run_apart(move || {
            let read = read_rules(&path);
            (path, read)
        })
        .await;
        self.adopt_rules(&path, read)
    }

    /// Puts rules in force that were read again; says so, or why not.
    fn adopt_rules(
        &self,
        path: &Path,
        read: Result<SimulationSettings, SimulateError>,
    ) -> Result<String, String> {
        let count = self.read_again_count.fetch_add(1, Ordering::Relaxed) + 1;
        match read {
            Ok(settings) => {
                self.simulation.replace_settings(settings);
                *self.in_force.lock() = self.given.display().to_string();
                Ok(format!("{}: the rules were read again ({count}.) and are in force", path.display()))
            }
            Err(error) => {
                Err(format!("the rules were read again ({count}.), those from before stay in force: {error}"))
            }
        }
    }
}

/// The simulation of a server that runs, as the admin side changes it.
#[derive(Clone, Debug)]
pub(crate) struct SimulationControl {
    simulation: Arc<Simulation>,
    in_force: Arc<Mutex<String>>,
}

impl SimulationControl {
    /// The profile or file that is in force.
    pub(crate) fn given(&self) -> String {
        self.in_force.lock().clone()
    }

    /// Simulates this profile until the settings or rules are read again. False: there is no such profile.
    pub(crate) fn set_profile(&self, name: &str) -> bool {
        let Some(settings) = SimulationSettings::profile(name) else { return false };
        self.simulation.replace_settings(settings);
        *self.in_force.lock() = name.to_owned();
        true
    }
}

fn read_rules(path: &Path) -> Result<SimulationSettings, SimulateError> {
    let text = read_text_bounded(path, FILE_SIZE_BYTES_MAX).map_err(|error| match error.kind() {
        ErrorKind::NotFound => SimulateError::Unknown { given: path.into() },
        _ => SimulateError::File { path: path.to_owned(), error },
    })?;
    parse_rule_file(&text).map_err(|error| SimulateError::Rules { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_files_and_what_is_neither() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rules.toml");
        std::fs::write(&path, "profile = \"azure\"").expect("a file");
        let read = |given: &OsStr| Simulated::read(given).map_err(|error| error.to_string());
        assert!(!read("azure".as_ref()).expect("a profile").has_file());
        assert!(!read("azure-large".as_ref()).expect("a profile").has_file());
        let from_file = read(path.as_os_str()).expect("a file");
        assert!(from_file.has_file());
        let before = format!("{:?}", from_file.simulation.describe());
        for (given, expected) in [
            (
                "azure-big",
                "--simulate azure-big: there is no such profile (azure, azure-large) and no file of this name",
            ),
            (
                "Azure",
                "--simulate Azure: there is no such profile (azure, azure-large) and no file of this name; \
                 did you mean azure?",
            ),
        ] {
            assert!(read(given.as_ref()).expect_err(given).starts_with(expected));
        }
        let refused = read(folder.path().as_os_str()).expect_err("a folder");
        assert!(refused.starts_with("--simulate ") && refused.contains("directory"), "{refused}");
        // A mistake at the start is refused; later it changes nothing.
        std::fs::write(&path, "\nprofil = \"azure\"").expect("a file");
        let refused = read(path.as_os_str()).expect_err("a mistake");
        assert!(
            refused.ends_with("line 2: the file has no key \"profil\"; did you mean profile?"),
            "{refused}"
        );
        assert!(from_file.adopt_rules(&path, read_rules(&path)).is_err());
        assert_eq!(format!("{:?}", from_file.simulation.describe()), before);
        std::fs::write(&path, "").expect("a file");
        assert!(from_file.adopt_rules(&path, read_rules(&path)).is_ok());
        assert_ne!(format!("{:?}", from_file.simulation.describe()), before);
        std::fs::write(&path, [0xff, 0xfe]).expect("a file");
        assert!(read(path.as_os_str()).is_err());
    }
}
