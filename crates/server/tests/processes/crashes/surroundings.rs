//! What the machine does to a server: no room on a disk, a warehouse that takes no writes. Each has
//! a way for root and one for everybody else.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::server::Server;
use crate::world::World;

/// A file system of its own for one folder, in a mount namespace that lives as long as `holder`.
pub struct SmallDisk {
    holder: Child,
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts it at the folder for all programs of the world; `None` if this machine doesn't let
    /// this user do that.
    pub async fn at(world: &World, folder: &str, size: &str) -> Option<SmallDisk> {
        let folder = world.place.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let is_root = is_root(&folder);
        let mut holder = Command::new("unshare");
        holder.arg("--mount");
        if !is_root {
            holder.arg("--map-root-user");
        }
        let script = r#"mount -t tmpfs -o size="$2" none "$1" && echo mounted && exec sleep 1000"#;
        let mut holder = holder
            .args(["sh", "-c", script, "sh"])
            .arg(&folder)
            .arg(size)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let mut said = BufReader::new(holder.stdout.take().unwrap()).lines();
        said.next_line().await.unwrap()?;
        let id = holder.id().unwrap().to_string();
        let mut enter: Vec<&str> = vec!["nsenter", "--target", &id, "--mount"];
        if !is_root {
            enter.extend(["--user", "--preserve-credentials"]);
        }
        let home = format!("--wd={}", world.place.path().display());
        enter.push(&home);
        world.run_behind(&enter);
        Some(SmallDisk { holder, folder })
    }

    /// A path as the programs in the namespace see it.
    fn seen(&self, path: &Path) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id().unwrap());
        Path::new(&root).join(path.strip_prefix("/").unwrap())
    }

    /// Takes all the room that is left.
    pub fn fill(&self) {
        let filler = self.seen(&self.folder.join("filler"));
        let mut file = fs::File::options()
            .create(true)
            .append(true)
            .open(filler)
            .unwrap();
        for size in [1 << 16, 1 << 10, 1] {
            let some = vec![b'x'; size];
            let full = loop {
                if let Err(error) = file.write_all(&some) {
                    break error;
                }
            };
            assert_eq!(full.kind(), ErrorKind::StorageFull);
        }
    }

    pub fn free(&self) {
        fs::remove_file(self.seen(&self.folder.join("filler"))).unwrap();
    }

    /// Moves what is on it to the folder beneath, where everybody sees it.
    pub fn give_up(&self, world: &World) {
        let copied = std::process::Command::new("cp")
            .args(["-a", "-T"])
            .args([&self.seen(&self.folder), &self.folder])
            .status();
        assert!(copied.unwrap().success());
        world.run_behind(&[]);
    }
}

/// Without a file system of its own: files may not grow, as beyond a quota. The signal that comes
/// with it would end the server, which says so by ignoring it.
pub fn ignore_limits(world: &World) {
    let words = ["sh", "-c", r#"trap "" XFSZ; exec "$@""#, "sh"];
    world.run_behind(&words);
}

/// How large files of this server may become: a number of bytes, or `unlimited`.
pub fn limit(server: &Server, size: &str) {
    let id = server.id().to_string();
    let status = std::process::Command::new("prlimit")
        .args(["--pid", &id, &format!("--fsize={size}:")])
        .status();
    assert!(status.unwrap().success());
}

/// Root may write where nobody may, unless it gives that right up.
pub fn obey_permissions(world: &World) {
    if is_root(world.place.path()) {
        let words = [
            "setpriv",
            "--bounding-set=-dac_override",
            "--inh-caps=-dac_override",
        ];
        world.run_behind(&words);
    }
}

/// Lets nobody write in this folder and all below it, or the owner again.
pub fn let_write(folder: &Path, may_write: bool) {
    let mode = if may_write { 0o700 } else { 0o500 };
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            let_write(&entry.path(), may_write);
        }
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
}

/// Whoever makes a file owns it.
fn is_root(of_ours: &Path) -> bool {
    fs::metadata(of_ours).unwrap().uid() == 0
}
