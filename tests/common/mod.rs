//! What the whole-program tests share.

#![allow(dead_code, reason = "each test program uses its own part")]

use assert_cmd::Command;
use hbmark::device::cuda::driver::DRIVER_VARIABLE;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program, with no colour and no inherited choice of driver.
pub fn hbmark() -> Command {
    let mut command = Command::cargo_bin("hbmark").expect("the program was built");
    command.env_remove("HBMARK_CUDA_DRIVER").env("NO_COLOR", "1");
    command
}

/// The program with a fake driver that shows what `settings` say; `tests/fake/driver.rs` has them all.
pub fn hbmark_on_fake(settings: &[(&str, &str)]) -> Command {
    let mut command = hbmark();
    command.envs(fake_settings()).envs(settings.iter().copied());
    command
}

/// What makes a program use the fake driver.
pub fn fake_settings() -> [(&'static str, &'static Path); 1] {
    static DRIVER: OnceLock<PathBuf> = OnceLock::new();
    [(DRIVER_VARIABLE, DRIVER.get_or_init(build_fake_driver))]
}

fn build_fake_driver() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/driver.rs");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join("fake-driver");
    // Test programs may run side by side: each builds its own and puts it in place whole.
    let built = folder.join(format!("fake-driver-{}", std::process::id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let status = std::process::Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-C", "panic=abort", "-o"])
        .args([&built, &source])
        .status()
        .expect("the compiler that built this test");
    assert!(status.success());
    std::fs::rename(built, &library).expect("a library in the folder of the build");
    library
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
