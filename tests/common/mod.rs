//! What the whole-program tests share.

#![allow(dead_code, reason = "each test program uses its own part")]

use assert_cmd::Command;
use std::path::{Path, PathBuf};

/// The program, with no colour and no inherited choice of driver.
pub fn hbmark() -> Command {
    let mut command = Command::cargo_bin("hbmark").expect("the program was built");
    command.env_remove("HBMARK_CUDA_DRIVER").env("NO_COLOR", "1");
    command
}

/// A recorded run of the host device.
pub fn recorded() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/host-quick.json")
}

/// A small run on the host device, into a fresh folder: cases of about a MiB.
pub fn small_run(folder: &Path, cases: &[&str]) -> Command {
    let mut command = hbmark();
    command.arg("run").args(cases).args(["--device", "host", "-o"]).arg(folder);
    command
}

/// The text of standard error, or of standard output.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
