//! The path of `docs/operate.md` from installation to a fired alert, run as it is written, in a network of
//! its own, where the ports that it names are free.

use super::watched::Stage;
use crate::{Outcome, workspace};
use std::path::Path;
use std::process::Command;

const SECTION: &str = "## From install to a fired alert";
/// Installing is done before, as the network of the run leads nowhere.
const NOT_RUN: [&str; 2] = ["apt-get ", "systemctl "];
const FIRED: &str = "alertname=\"LarimarDown\"";
const READY: &str = "larimar_ready{";

/// Runs the commands; the last one must show that the alert fires.
pub(super) fn run(stage: &Stage, folder: &Path) -> Outcome<()> {
    let root = workspace::root()?;
    let commands = commands(&std::fs::read_to_string(root.join("docs/operate.md"))?);
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs)?;
    std::os::unix::fs::symlink(std::fs::canonicalize(&stage.binary)?, programs.join("larimar"))?;
    std::os::unix::fs::symlink(root.join("deploy"), folder.join("deploy"))?;
    let script = format!("set -e\nip link set lo up\n{commands}\nkill %2\n");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("unshare")
        .args(["--net", "bash", "-c", &script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !said.contains(READY) || !said.contains(FIRED) {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("no alert fires: {}\n{said}{complaint}", output.status).into());
    }
    Ok(())
}

/// The commands of the section that are run.
fn commands(page: &str) -> String {
    let section = page.split_once(SECTION).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1).filter_map(|block| block.split_once("```"));
    let lines = blocks.flat_map(|(block, _)| block.lines());
    let run = lines.filter(|line| !NOT_RUN.iter().any(|start| line.starts_with(start)));
    run.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_section() {
        let page = "```sh\na\n```\n## From install to a fired alert\nb\n```sh\napt-get install c\nd\n```\n```sh\ne\n```\n## F\n```sh\ng\n```\n";
        assert_eq!(commands(page), "d\ne");
        let ours = commands(include_str!("../../../../docs/operate.md"));
        assert!(ours.contains("larimar --data") && ours.contains("promtool query"), "{ours}");
    }
}
