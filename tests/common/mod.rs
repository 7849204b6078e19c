//! What the whole-program tests share.

#![allow(dead_code, reason = "each test program uses its own part")]

use assert_cmd::Command;
use hbmark::device::cuda::driver::DRIVER_VARIABLE;
use hbmark::session::CACHE_VARIABLE;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program, with no colour and no inherited choice of driver.
pub fn hbmark() -> Command {
    let mut command = Command::cargo_bin("hbmark").expect("the program was built");
    // What searches find on a fake card is not for real ones.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    command.env_remove("HBMARK_CUDA_DRIVER").env(CACHE_VARIABLE, cache).env("NO_COLOR", "1");
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

/// The document in a run's folder, as it stands in its file.
pub fn document(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("run.json")).expect("a document")).expect("a JSON document")
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

/// The paths in a document of all that should be null with a reason: nulls without one, and words that stand for a null.
pub fn unexplained(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    look_for_unexplained("", document, &|_| false, &mut found);
    found
}

/// What other tools write in place of a value.
const NO_VALUES: [&str; 8] = ["", "-", "n/a", "[n/a]", "nan", "none", "null", "unknown"];

/// `explained` says of a field by its path below the object around `value` whether there is a reason for its null.
fn look_for_unexplained(path: &str, value: &Value, explained: &dyn Fn(&str) -> bool, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            // An object without reasons of its own has them in the one around it.
            let own = |field: &str| match fields.get("missing") {
                // `reason` says why a row has no figures, and a row with figures needs none.
                Some(reasons) => reasons[field].is_string() || field == "reason" || fields.get("reason").is_some_and(Value::is_string),
                // All items of a list share their reasons.
                None => {
                    path.rsplit('/').find(|name| name.parse::<u32>().is_err()).is_some_and(|name| explained(&format!("{name}.{field}")))
                }
            };
            for (name, field) in fields {
                let path = format!("{path}/{name}");
                if field.is_null() && !own(name) {
                    found.push(path.clone());
                }
                look_for_unexplained(&path, field, &own, found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| look_for_unexplained(&format!("{path}/{i}"), item, explained, found))
        }
        // The one word that says something: there is no container, no sharing, no slice.
        Value::String(text) if text == "none" && path.contains("/virtualization/") => {}
        Value::String(text) if NO_VALUES.contains(&text.to_lowercase().as_str()) => found.push(path.to_owned()),
        _ => {}
    }
}
