//! Folders under `build/`, which git ignores.

use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, process, thread};

use anyhow::{Context, Result};

/// The repository's `build` folder: jars, compiled Java, and what running tests write.
pub(crate) fn build_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build")
}

/// A folder of one running process: its data and its log.
///
/// It goes when dropped, but stays for a look when the test failed; the next run of any test binary
/// sweeps what dead ones left.
#[derive(Debug)]
pub struct ScratchDir(PathBuf);

impl ScratchDir {
    /// Makes an empty folder whose name starts with `name`.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(name: &str) -> Result<Self> {
        static SWEEP: Once = Once::new();
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let runs = build_dir().join("run");
        SWEEP.call_once(|| sweep(&runs));

        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = runs
            .join(process::id().to_string())
            .join(format!("{name}-{number}"));
        fs::create_dir_all(&path).with_context(|| format!("make folder {}", path.display()))?;
        let path = path.canonicalize().context("resolve the scratch folder")?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        // Left-overs are swept by the next run.
        fs::remove_dir_all(&self.0).ok();
        self.0.parent().map(fs::remove_dir);
    }
}

/// Removes the folders of test processes that are no more.
fn sweep(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else {
        return;
    };
    for entry in entries.flatten() {
        let owner = entry.file_name();
        let gone = matches!(Path::new("/proc").join(&owner).try_exists(), Ok(false));
        if gone && let Err(error) = fs::remove_dir_all(entry.path()) {
            // Another test binary may sweep at the same time.
            if error.kind() != io::ErrorKind::NotFound {
                tracing::debug!(%error, folder = ?entry.path(), "left-over folder stays");
            }
        }
    }
}
