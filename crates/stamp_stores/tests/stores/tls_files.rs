//! Certificates for tests, made with the program `openssl`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder with `ca.pem`, `server.pem`, `server.key`, `client.pem` and `client.key`.
pub(crate) struct TlsFiles {
    folder: TempDir,
}

impl TlsFiles {
    /// Makes them; none where there is no `openssl`.
    pub(crate) fn make() -> Option<Self> {
        if !crate::etcd_server::has_program("openssl") {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        let at = folder.path();
        run(at, &format!("req -x509 {new} -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem"));
        for (name, usage) in [("server", "serverAuth,clientAuth"), ("client", "clientAuth")] {
            let text = format!("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage={usage}\n");
            std::fs::write(at.join("extensions"), text).expect("a file");
            run(at, &format!("req {new} -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            run(
                at,
                &format!(
                    "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out {name}.pem"
                ),
            );
        }
        Some(TlsFiles { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

fn run(folder: &Path, arguments: &str) {
    let mut command = Command::new("openssl");
    command.args(arguments.split(' ')).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("openssl runs").success(), "openssl {arguments}");
}
