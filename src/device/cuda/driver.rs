//! The NVIDIA driver, looked up while the program runs instead of being linked.
//!
//! `cust` calls the driver API through `extern` declarations. A build that
//! linked `libcuda` for them would need a CUDA toolkit, and its programs would
//! not start on a machine without a driver. So this module defines those
//! symbols itself (in `forward`), and each one finds the driver's function of
//! the same name on its first call.
//!
//! What comes back without a usable driver:
//!
//! - no driver, or one that the loader refuses: `CUDA_ERROR_NO_DEVICE` (100) from every function;
//! - a driver that lacks a function: `CUDA_ERROR_NOT_FOUND` (500) from that function.
//!
//! [`state`] tells these apart from a driver that itself returns such a code.
//!
//! Result codes are translated on their way to `cust`, because `cust` holds them
//! in a Rust enum that has only the codes of CUDA 11.4: any other number in it is
//! undefined behaviour. [`last_raw_code`] gives back what the driver really said.

mod codes;
mod forward;

use std::cell::Cell;
use std::error::Error;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cust::sys::CUresult;
use libloading::Library;

/// The environment variable that names the one driver library to try, in place of the
/// usual ones; [`NO_DRIVER`] stands for a machine without one.
pub const DRIVER_VARIABLE: &str = "HBMARK_CUDA_DRIVER";

/// The value of [`DRIVER_VARIABLE`] with which the program acts as if there were no driver.
pub const NO_DRIVER: &str = "none";

/// Where WSL mounts the driver of the Windows host, which the loader does not always search.
const WSL_DRIVER: &str = "/usr/lib/wsl/lib/libcuda.so.1";

/// What became of the search for the driver library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverState {
    /// No driver library was found.
    Missing {
        /// What was tried, in order; a bare name stands for a search by the loader's own rules.
        searched: Vec<String>,
    },
    /// A driver library is there, but the loader refused it, and nothing else could be loaded.
    Unloadable {
        /// The library that was refused.
        path: String,
        /// The loader's own words.
        reason: String,
    },
    /// The driver library is loaded; this says nothing about whether it works.
    Loaded {
        /// The loaded file where the system tells it, otherwise the name by which it was found.
        path: String,
    },
}

/// Says whether there is a driver library; the first call, here or through `cust`, loads it.
pub fn state() -> DriverState {
    driver().state.clone()
}

/// The driver library that is loaded: its file where the system tells it.
///
/// # Errors
/// When none is; the text says what was looked for, or why it was refused.
pub fn library() -> Result<String, String> {
    match state() {
        DriverState::Loaded { path } => Ok(path),
        DriverState::Missing { searched } => Err(format!("not found; looked for {}", searched.join(", "))),
        DriverState::Unloadable { path, reason } => Err(format!("{path} cannot be loaded: {reason}")),
    }
}

/// Takes the number of this thread's last driver result that `cust` could not tell.
///
/// After a `CudaError::UnknownError` from `cust`, or a `CUDA_ERROR_UNKNOWN`
/// from `cust::sys`, this is the number that the driver really returned (999
/// if it was that). Codes which `cust` does know by a name of their own are
/// not recorded. Taking clears: a second call gives `None`.
///
/// Ask right after the failure and on the thread that saw it, since each
/// further untellable result replaces the number; a success leaves it.
pub fn last_raw_code() -> Option<u32> {
    LAST_RAW_CODE.take()
}

/// The name of a driver result code in NVIDIA's headers, such as `CUDA_ERROR_SYSTEM_NOT_READY` for 802.
pub fn code_name(code: u32) -> &'static str {
    utf8(codes::find(code).map_or(codes::UNRECOGNISED, |known| known.name))
}

/// A short text that says what a driver result code means.
pub fn code_text(code: u32) -> &'static str {
    utf8(codes::find(code).map_or(codes::UNRECOGNISED, |known| known.text))
}

/// The sign of an NVIDIA kernel driver on this machine, if there is one: the path that shows it.
///
/// With [`DriverState::Missing`] it tells a container or an installation that
/// hides `libcuda` from a machine without an NVIDIA driver. Only Linux has
/// such paths.
pub fn kernel_driver_present() -> Option<String> {
    kernel_driver_under(Path::new("/"))
}

fn kernel_driver_under(root: &Path) -> Option<String> {
    // Every WSL machine has /dev/dxg, whatever its graphics card: it counts only beside NVIDIA's library.
    let wsl = exists_under(root, WSL_DRIVER).then_some("/dev/dxg");
    ["/proc/driver/nvidia/version", "/dev/nvidiactl"].into_iter().chain(wsl).find(|path| exists_under(root, path)).map(String::from)
}

fn exists_under(root: &Path, absolute: &str) -> bool {
    root.join(absolute.trim_start_matches('/')).exists()
}

fn utf8(string: &'static CStr) -> &'static str {
    // The table is written in UTF-8; the fallback spares a panic in code that words errors.
    string.to_str().unwrap_or_default()
}

thread_local! {
    static LAST_RAW_CODE: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Turns a number from the driver into a value that the Rust enum may hold, and records what that loses.
fn report(code: u32) -> CUresult {
    if code == 0 {
        return CUresult::CUDA_SUCCESS;
    }
    let known = codes::find(code);
    if !known.is_some_and(|known| known.kept_by_cust) {
        LAST_RAW_CODE.set(Some(code));
    }
    known.and_then(|known| known.sys).unwrap_or(CUresult::CUDA_ERROR_UNKNOWN)
}

struct Driver {
    /// Absent unless the state is [`DriverState::Loaded`].
    library: Option<Library>,
    state: DriverState,
}

/// The process's driver: in a `static`, so that the library stays loaded as long as anyone could call into it.
fn driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| load(&candidates()))
}

fn candidates() -> Vec<PathBuf> {
    match std::env::var_os(DRIVER_VARIABLE) {
        Some(path) if !path.is_empty() => vec![path.into()],
        _ => usual_places(),
    }
}

#[cfg(windows)]
fn usual_places() -> Vec<PathBuf> {
    // By its full path: a bare name would first be looked for beside the program.
    let windows = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
    vec![Path::new(&windows).join("System32").join("nvcuda.dll")]
}

#[cfg(target_os = "linux")]
fn usual_places() -> Vec<PathBuf> {
    [
        "libcuda.so.1",
        WSL_DRIVER,
        // NixOS, where the loader searches no common folder.
        "/run/opengl-driver/lib/libcuda.so.1",
    ]
    .map(PathBuf::from)
    .into()
}

// NVIDIA has CUDA drivers for no other system.
#[cfg(not(any(windows, target_os = "linux")))]
fn usual_places() -> Vec<PathBuf> {
    Vec::new()
}

/// Loads the first candidate that the loader accepts, however many before it are missing or refused.
fn load(candidates: &[PathBuf]) -> Driver {
    let mut refused = None;
    for candidate in candidates {
        // SAFETY: loading runs the library's initialisers. The usual names are NVIDIA's driver, which
        // is made to be loaded this way; for any other file the user who names it answers.
        match unsafe { Library::new(candidate) } {
            Ok(library) => {
                let path = loaded_file(&library).unwrap_or_else(|| text_of(candidate));
                return Driver { library: Some(library), state: DriverState::Loaded { path } };
            }
            Err(error) => {
                // The loader's own words are in the source, the outer error only names the call.
                let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                if refused.is_none() && !is_absent(candidate, &reason) {
                    refused = Some(DriverState::Unloadable { path: text_of(candidate), reason });
                }
            }
        }
    }
    Driver {
        library: None,
        state: refused.unwrap_or_else(|| DriverState::Missing { searched: candidates.iter().map(|path| text_of(path)).collect() }),
    }
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}

/// Whether the loader failed on `candidate` because there is no such file, rather than because of what the file is.
fn is_absent(candidate: &Path, reason: &str) -> bool {
    if candidate.components().count() > 1 {
        // Not readable is not absent: then the loader's reason is what helps.
        return !candidate.try_exists().unwrap_or(true);
    }
    // A bare name was searched for where only the loader knows. Its words are the same for a missing
    // dependency, but then name that one first. glibc writes the first form, musl the second.
    let name = candidate.display();
    reason.starts_with(&format!("{name}: cannot open shared object file: No such file or directory"))
        || reason == format!("Error loading shared library {name}: No such file or directory")
}

/// The file behind a loaded driver: a bare name does not tell a compatibility or stub library from the real one.
fn loaded_file(library: &Library) -> Option<String> {
    // SAFETY: the address is only compared, never called or read.
    let entry = unsafe { library.get::<*const ()>("cuInit") }.ok()?;
    mapped_file(entry.addr())
}

/// The file that this process has mapped at `address`, by Linux's own list; elsewhere there is none.
fn mapped_file(address: usize) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    file_at(&maps, address).map(String::from)
}

/// Finds `address` in lines such as `7f30a0000-7f30b0000 r-xp 00000000 08:01 1234   /usr/lib/libcuda.so.1`.
fn file_at(maps: &str, address: usize) -> Option<&str> {
    let line = maps.lines().find(|line| {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let Some((start, end)) = range else {
            return false;
        };
        let number = |hex| usize::from_str_radix(hex, 16).ok();
        number(start).is_some_and(|start| start <= address) && number(end).is_some_and(|end| address < end)
    })?;
    // The path is the rest of the line and may have blanks in it; only it can have a slash.
    line.find('/').map(|start| &line[start..])
}

/// Finds the driver's function `name`, or the code to return in its place.
///
/// # Safety
///
/// `T` is the type of a pointer to the function of this name.
unsafe fn resolve<T: Copy>(driver: &Driver, name: &str) -> Result<T, u32> {
    let Some(library) = &driver.library else {
        return Err(CUresult::CUDA_ERROR_NO_DEVICE as u32);
    };
    // SAFETY: the caller vouches for `T`; with `Option` around it an address of zero is `None`.
    unsafe { library.get::<Option<T>>(name) }.ok().and_then(|found| *found).ok_or(CUresult::CUDA_ERROR_NOT_FOUND as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A folder of this test's own, gone when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("hbmark-driver-{}-{test}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        fn file(&self, path: &str, content: &str) -> PathBuf {
            let path = self.0.join(path);
            let parent = path.parent().expect("a file in a folder");
            fs::create_dir_all(parent).expect("a folder in the temporary folder");
            fs::write(&path, content).expect("a file in the temporary folder");
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            // Nothing a test could do about it, and a panic here would hide the test's own.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    type Function = unsafe extern "C" fn();

    fn look_up(driver: &Driver, name: &str) -> Result<Function, u32> {
        // SAFETY: the function is never called.
        unsafe { resolve(driver, name) }
    }

    #[test]
    fn a_driver_that_no_place_has_is_missing_and_every_place_is_named() {
        let folder = Folder::new("missing");
        let absolute = folder.0.join("libcuda.so.1");
        let bare = PathBuf::from("libhbmark-no-such-driver.so.1");
        let driver = load(&[bare.clone(), absolute.clone()]);
        let searched = vec![text_of(&bare), text_of(&absolute)];
        if cfg!(target_os = "linux") {
            assert_eq!(driver.state, DriverState::Missing { searched });
        }
        assert_eq!(look_up(&driver, "cuInit"), Err(100));
    }

    #[test]
    fn a_file_that_the_loader_refuses_is_unloadable_and_acts_like_no_driver() {
        let folder = Folder::new("refused");
        let text = folder.file("libcuda.so.1", "this is not a library");
        let driver = load(&[folder.0.join("absent.so"), text.clone()]);
        let DriverState::Unloadable { path, reason } = &driver.state else {
            panic!("{:?}", driver.state);
        };
        assert_eq!(path, &text_of(&text));
        assert!(!reason.is_empty());
        assert_eq!(look_up(&driver, "cuInit"), Err(100));
    }

    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[test]
    fn a_driver_after_a_refused_file_is_loaded_and_what_it_lacks_is_not_found() {
        let folder = Folder::new("later");
        let text = folder.file("libcuda.so.1", "this is not a library");
        // Stands in for a driver: a library that every glibc system has.
        let driver = load(&[text, PathBuf::from("libm.so.6")]);
        let path = "libm.so.6".to_string();
        assert_eq!(driver.state, DriverState::Loaded { path });
        assert!(look_up(&driver, "cos").is_ok());
        assert_eq!(look_up(&driver, "cuInit"), Err(500));
    }

    #[test]
    fn only_the_absence_of_the_very_library_counts_as_missing() {
        let name = Path::new("libcuda.so.1");
        let no_file = "cannot open shared object file: No such file or directory";
        for absent in [format!("libcuda.so.1: {no_file}"), "Error loading shared library libcuda.so.1: No such file or directory".into()] {
            assert!(is_absent(name, &absent), "{absent}");
        }
        for present in [
            format!("libdependency.so.2: {no_file}"),
            "Error loading shared library libdependency.so.2: No such file or directory \
             (needed by libcuda.so.1)"
                .into(),
            "libcuda.so.1: wrong ELF class: ELFCLASS32".into(),
            "libcuda.so.1: invalid ELF header".into(),
            "libcuda.so.1: cannot open shared object file: Permission denied".into(),
        ] {
            assert!(!is_absent(name, &present), "{present}");
        }
    }

    #[test]
    fn a_code_that_cust_keeps_apart_passes_unchanged_and_is_not_recorded() {
        assert_eq!(report(0), CUresult::CUDA_SUCCESS);
        assert_eq!(report(100), CUresult::CUDA_ERROR_NO_DEVICE);
        assert_eq!(report(600), CUresult::CUDA_ERROR_NOT_READY);
        assert_eq!(last_raw_code(), None);
    }

    #[test]
    fn a_code_that_only_the_bindings_know_passes_unchanged_and_is_recorded() {
        assert_eq!(report(802), CUresult::CUDA_ERROR_SYSTEM_NOT_READY);
        assert_eq!(last_raw_code(), Some(802));
    }

    #[test]
    fn a_code_that_nothing_knows_becomes_unknown_and_is_recorded() {
        for code in [912, 9999, u32::MAX] {
            assert_eq!(report(code), CUresult::CUDA_ERROR_UNKNOWN);
            assert_eq!(last_raw_code(), Some(code));
        }
    }

    #[test]
    fn the_drivers_own_unknown_error_replaces_an_older_code() {
        report(802);
        report(999);
        assert_eq!(last_raw_code(), Some(999));
    }

    #[test]
    fn the_recorded_code_outlives_a_success_and_is_given_once() {
        report(803);
        report(0);
        assert_eq!(last_raw_code(), Some(803));
        assert_eq!(last_raw_code(), None);
    }

    #[test]
    fn the_recorded_code_stays_on_its_thread() {
        report(804);
        let elsewhere = std::thread::spawn(last_raw_code).join();
        assert_eq!(elsewhere.expect("the thread ends"), None);
        assert_eq!(last_raw_code(), Some(804));
    }

    #[test]
    fn every_code_has_a_name_and_a_text() {
        assert_eq!(code_name(802), "CUDA_ERROR_SYSTEM_NOT_READY");
        assert!(code_text(802).contains("fabric manager"));
        assert_eq!(code_name(9999), "unrecognised CUDA error");
        assert_eq!(code_text(9999), "unrecognised CUDA error");
    }

    #[test]
    fn a_kernel_driver_shows_by_its_version_file_or_its_control_device() {
        let folder = Folder::new("kernel");
        assert_eq!(kernel_driver_under(&folder.0), None);
        folder.file("dev/nvidiactl", "");
        let shown = kernel_driver_under(&folder.0);
        assert_eq!(shown.as_deref(), Some("/dev/nvidiactl"));
        folder.file("proc/driver/nvidia/version", "");
        let shown = kernel_driver_under(&folder.0);
        assert_eq!(shown.as_deref(), Some("/proc/driver/nvidia/version"));
    }

    #[test]
    fn the_device_of_wsl_shows_an_nvidia_driver_only_beside_nvidias_library() {
        let folder = Folder::new("wsl");
        folder.file("dev/dxg", "");
        assert_eq!(kernel_driver_under(&folder.0), None);
        folder.file("usr/lib/wsl/lib/libcuda.so.1", "");
        let shown = kernel_driver_under(&folder.0);
        assert_eq!(shown.as_deref(), Some("/dev/dxg"));
    }

    #[test]
    fn an_address_is_traced_to_the_file_mapped_there() {
        let maps = "1000-2000 r--p 00000000 08:01 7 /lib/first.so\n\
                    2000-3000 r-xp 00001000 08:01 7 /with a blank/second.so\n\
                    4000-5000 rw-p 00000000 00:00 0 \n\
                    not a mapping\n";
        assert_eq!(file_at(maps, 0x1fff), Some("/lib/first.so"));
        assert_eq!(file_at(maps, 0x2000), Some("/with a blank/second.so"));
        assert_eq!(file_at(maps, 0x3000), None);
        assert_eq!(file_at(maps, 0x4000), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_very_program_is_found_by_an_address_in_it() {
        let here = an_address_is_traced_to_the_file_mapped_there as *const ();
        let program = std::env::current_exe().expect("the test program's path");
        assert_eq!(mapped_file(here.addr()), Some(text_of(&program)));
    }
}
