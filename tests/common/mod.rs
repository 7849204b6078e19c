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
    [(DRIVER_VARIABLE, DRIVER.get_or_init(|| build_fake("driver", "fake-driver")))]
}

/// The program with a fake driver and a fake NVML; `tests/fake/nvml.rs` has the settings of the latter.
pub fn hbmark_on_fake_card(settings: &[(&str, &str)]) -> Command {
    static NVML: OnceLock<PathBuf> = OnceLock::new();
    let nvml = NVML.get_or_init(|| build_fake("nvml", "fake-nvml/libnvidia-ml.so.1"));
    let mut command = hbmark_on_fake(settings);
    // Where the loader looks first.
    command.env("LD_LIBRARY_PATH", nvml.parent().expect("a folder of its own"));
    command
}

/// Builds `tests/fake/<name>.rs` as a library with this name, relative to the folder of the build.
fn build_fake(name: &str, library: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fake/{name}.rs"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(library);
    std::fs::create_dir_all(library.parent().expect("a folder")).expect("a folder in that of the build");
    // Test programs may run side by side: each builds its own and puts it in place whole.
    let built = folder.join(format!("fake-{name}-{}", std::process::id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or("rustc".into());
    let status = std::process::Command::new(rustc)
        .args(["--edition", "2024", "--crate-name", "fake", "--crate-type", "cdylib", "-C", "panic=abort", "-o"])
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

/// Fails unless each null field of the document in a folder has a reason.
pub fn check_nulls(folder: &Path) {
    let document = std::fs::read(folder.join("run.json")).expect("a document");
    nulls_of("run", &serde_json::from_slice(&document).expect("a JSON document"));
}

fn nulls_of(path: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            let reasons = fields.get("missing");
            for (name, field) in fields {
                // `reason` explains a row's status, and an `ok` row needs none.
                if field.is_null() && name != "reason" {
                    let reason = reasons.and_then(|r| r.get(name));
                    // Nested plain figures are explained in the row that holds them.
                    let nested = path.ends_with("bytes") && name == "dram";
                    assert!(reason.is_some() || nested, "{path}.{name} is null without a reason");
                }
                nulls_of(&format!("{path}.{name}"), field);
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| nulls_of(path, item)),
        _ => {}
    }
}

/// The text of standard error, or of standard output.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every run document of the repository: published ones, and those that tests were recorded with.
pub fn documents() -> Vec<PathBuf> {
    let mut folders = vec![root().join("results"), root().join("tests/data")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "json") {
                found.push(entry);
            }
        }
    }
    assert!(found.len() >= 2, "{found:?}");
    found.sort();
    found
}
