//! The file with the tokens: made at the first start, replaced when one is rotated.
//!
//! What always holds: the file is its owner's alone (0600) from its first byte on, and is replaced in one
//! step; the tokens that are in force are those of the file.

use super::tokens::{ROLES, Role, TOKEN_SIZE_BYTES, Tokens};
use crate::bounded_file::read_text_bounded;
use crate::data_folder::folder_of;
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file's name in a data folder.
pub(crate) const TOKEN_FILE_NAME: &str = "admin-tokens";
/// Bytes of the file at most.
pub(crate) const TOKEN_FILE_SIZE_BYTES_MAX: usize = 16 << 10;
/// Only the user who runs the server may read it.
const OWN_FILE_MODE: u32 = 0o600;
/// Bits of a mode that let others look.
const OTHERS_MODE: u32 = 0o077;

/// The tokens in force, and their file.
#[derive(Debug)]
pub(crate) struct TokenStore {
    path: PathBuf,
    tokens: Mutex<Tokens>,
    /// Held while the file is written: tokens are compared meanwhile, however long that takes.
    rotating: Mutex<()>,
}

impl TokenStore {
    /// Reads the file, or makes it if nothing is there.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let tokens = match read_text_bounded(path, TOKEN_FILE_SIZE_BYTES_MAX) {
            Ok(text) => {
                let mode = std::fs::metadata(path)?.mode();
                if mode & OTHERS_MODE != 0 {
                    tracing::warn!(
                        "{}: others may read these tokens; chmod 600 keeps them out",
                        path.display()
                    );
                }
                Tokens::parse(&text).map_err(|mistake| io::Error::new(ErrorKind::InvalidData, mistake))?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return TokenStore::create(path),
            Err(error) => return Err(error),
        };
        Ok(TokenStore::of(path, tokens))
    }

    fn of(path: &Path, tokens: Tokens) -> Self {
        TokenStore { path: path.to_owned(), tokens: Mutex::new(tokens), rotating: Mutex::default() }
    }

    /// Makes tokens, whatever is there: in a folder of everybody's that may be another user's file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut random = [[0; TOKEN_SIZE_BYTES]; ROLES.len()];
        random.iter_mut().try_for_each(fill_random)?;
        let tokens = Tokens::of_random(&random);
        write(path, &tokens)?;
        Ok(TokenStore::of(path, tokens))
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What a token opens.
    pub(crate) fn role_of(&self, given: &str) -> Option<Role> {
        self.tokens.lock().role_of(given)
    }

    /// Makes another token of this role and returns it; the one before opens nothing any more. It writes a
    /// file.
    pub(crate) fn rotate(&self, role: Role) -> io::Result<String> {
        let mut random = [0; TOKEN_SIZE_BYTES];
        fill_random(&mut random)?;
        let _rotating = self.rotating.lock();
        let next = self.tokens.lock().with(role, &random);
        write(&self.path, &next)?;
        let token = next.token(Some(role)).unwrap_or_default().to_owned();
        *self.tokens.lock() = next;
        Ok(token)
    }

    /// Has rotations wait, as a disk does that does not answer.
    #[cfg(test)]
    pub(super) fn stall(&self) -> parking_lot::MutexGuard<'_, ()> {
        self.rotating.lock()
    }
}

/// Takes bytes that nobody can guess from the kernel: the chance that layers are handed is not for keys.
fn fill_random(bytes: &mut [u8; TOKEN_SIZE_BYTES]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(())
}

/// Replaces the file in one step.
fn write(path: &Path, tokens: &Tokens) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(OWN_FILE_MODE).open(&new)?;
    file.write_all(tokens.text().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    // From here on the file has them, so they are in force; only a power loss can bring the former ones back.
    if let Err(error) = File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        tracing::warn!("{}: its folder can't be synced: {error}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_somebody_else_has_laid_there_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(TOKEN_FILE_NAME);
        let theirs = TokenStore::create(&path).expect("made");
        let token = theirs.rotate(Role::Admin).expect("rotated");
        let ours = TokenStore::create(&path).expect("made");
        assert_eq!((theirs.role_of(&token), ours.role_of(&token)), (Some(Role::Admin), None));
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, OWN_FILE_MODE);
    }

    #[test]
    fn the_file_is_made_once_kept_and_rotated() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(TOKEN_FILE_NAME);
        let store = TokenStore::open(&path).expect("made");
        let mode = || std::fs::metadata(&path).expect("a file").mode() & 0o777;
        assert_eq!(mode(), OWN_FILE_MODE);
        let read = || Tokens::parse(&std::fs::read_to_string(&path).expect("a file")).expect("tokens");
        let before = read();
        let token = |role| before.token(Some(role)).expect("each has one").to_owned();
        assert!(token(Role::Read) != token(Role::Admin) && token(Role::Read).len() == 64);
        let again = TokenStore::open(&path).expect("kept");
        assert_eq!(again.role_of(&token(Role::Operate)), Some(Role::Operate));
        let rotated = store.rotate(Role::Operate).expect("rotated");
        assert_eq!(store.role_of(&token(Role::Operate)), None);
        assert_eq!(store.role_of(&rotated), Some(Role::Operate));
        assert_eq!(read().token(Some(Role::Operate)), Some(rotated.as_str()));
        assert_eq!((mode(), store.role_of(&token(Role::Admin))), (OWN_FILE_MODE, Some(Role::Admin)));
    }

    #[test]
    fn what_is_no_file_of_tokens_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("other");
        std::fs::write(&path, "something else\n").expect("a file");
        let refused = TokenStore::open(&path).expect_err("refused").to_string();
        assert!(refused.contains("line 1"), "{refused}");
        assert_eq!(std::fs::read(&path).expect("a file"), b"something else\n");
        assert!(TokenStore::open(folder.path()).is_err());
        assert!(TokenStore::open(&folder.path().join("absent/tokens")).is_err());
    }
}
