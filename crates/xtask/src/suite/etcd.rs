//! etcd of Debian's packages, which the tests of a stamp's stores start and end themselves: installed where
//! it is missing, by root.

use crate::Outcome;
use crate::programs::install_packages;

const PROGRAM: &str = "etcd";
const PACKAGES: [&str; 1] = ["etcd-server"];

pub(crate) fn set_up() -> Outcome<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file()) {
        return Ok(());
    }
    install_packages("the tests of a stamp's stores", &PACKAGES)
}
