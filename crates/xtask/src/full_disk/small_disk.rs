//! A small ext4 file system of its own, in a file on a loop device, which is gone again when this is dropped.

use crate::Outcome;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system.
pub(crate) struct SmallDisk {
    mounted_at: PathBuf,
    image: PathBuf,
    /// Of the block device, such as `loop3`.
    device_name: String,
    /// What others before had written to it.
    written_bytes_before: u64,
}

/// Sectors are counted in so many bytes, whatever the device's own are (`Documentation/block/stat.rst` of
/// Linux).
const SECTOR_SIZE_BYTES: u64 = 512;
/// The field of a block device's statistics with the sectors that were written.
const SECTORS_WRITTEN_FIELD: usize = 6;

/// Runs a program; what it prints, or what it complains of.
fn run(program: &str, arguments: &[&str]) -> Outcome<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("{program} {}: {complaint}", arguments.join(" ")).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Bytes that were written to a block device since the machine was started.
fn written_bytes(device_name: &str) -> Outcome<u64> {
    let stat = std::fs::read_to_string(format!("/sys/block/{device_name}/stat"))?;
    let sectors = stat.split_whitespace().nth(SECTORS_WRITTEN_FIELD).ok_or("a short statistic")?;
    Ok(sectors.parse::<u64>()? * SECTOR_SIZE_BYTES)
}

impl SmallDisk {
    /// Makes and mounts a file system of so many MiB, in `folder`.
    pub(crate) fn create(folder: &Path, size_mib: u64) -> Outcome<Self> {
        let (image, mounted_at) = (folder.join("image"), folder.join("mounted"));
        std::fs::create_dir_all(&mounted_at)?;
        File::create(&image)?.set_len(size_mib << 20)?;
        let text = image.display().to_string();
        // Without blocks for root only, which it would count as free.
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &text])?;
        let device = run("losetup", &["--find", "--show", &text])?;
        let mounted = run("mount", &[&device, &mounted_at.display().to_string()]);
        // While it is mounted that waits for the end of the mount, whatever that is.
        run("losetup", &["--detach", &device])?;
        mounted?;
        let device_name = device.rsplit('/').next().unwrap_or_default().to_owned();
        let written_bytes_before = written_bytes(&device_name)?;
        Ok(SmallDisk { mounted_at, image, device_name, written_bytes_before })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.mounted_at
    }

    /// Bytes that can still be written.
    pub(crate) fn free_bytes(&self) -> Outcome<u64> {
        let stat = rustix::fs::statvfs(&self.mounted_at)?;
        Ok(stat.f_bavail * stat.f_frsize)
    }

    /// Bytes that were written to the file system.
    pub(crate) fn written_bytes(&self) -> Outcome<u64> {
        Ok(written_bytes(&self.device_name)? - self.written_bytes_before)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = run("umount", &[&self.mounted_at.display().to_string()]) {
            eprintln!("xtask: {error}");
        }
        let _ = std::fs::remove_file(&self.image);
    }
}
