//! From the driver's result codes to errors that say what to do.

use cust::error::CudaError;
use cust::sys::CUresult;

use super::driver;
use crate::device::DeviceError;

/// The driver's number for an error that `cust` returned on this thread just now.
///
/// `cust` folds what it does not know into `UnknownError`; the true number was
/// kept by the forwarding layer.
fn number(error: CudaError) -> u32 {
    match error {
        CudaError::UnknownError => driver::last_raw_code().unwrap_or(error as u32),
        known => known as u32,
    }
}

/// The result of a call through `cust::sys`, which `cust` has no safe form of.
pub(super) fn raw(what: &str, result: CUresult) -> Result<(), DeviceError> {
    match result {
        CUresult::CUDA_SUCCESS => Ok(()),
        CUresult::CUDA_ERROR_UNKNOWN => Err(failed(what, driver::last_raw_code().unwrap_or(result as u32))),
        known => Err(failed(what, known as u32)),
    }
}

/// An error of a device at work.
pub(super) fn at_work(what: &str) -> impl FnOnce(CudaError) -> DeviceError {
    move |error| failed(what, number(error))
}

const OUT_OF_MEMORY: u32 = CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32;
const HOLDS_MEMORY: &str = "see with nvidia-smi whether another program holds it";

/// What a device that returned this code at work has come to.
fn failed(what: &str, code: u32) -> DeviceError {
    match code {
        OUT_OF_MEMORY => DeviceError::OutOfMemory(format!("{what}; {HOLDS_MEMORY}")),
        code if is_fatal(code) => DeviceError::Lost(describe(what, code)),
        code => DeviceError::Failed(describe(what, code)),
    }
}

/// Whether a device that returned this code at work can do nothing more for this process.
///
/// What NVIDIA's description of `CUresult` says decides. A call to the operating system
/// that failed (304) is not among them: the next one may succeed.
fn is_fatal(code: u32) -> bool {
    match code {
        // "To continue using CUDA, the process must be terminated and relaunched": what a
        // kernel did (710, an assertion, leaves a context that "cannot be used anymore"),
        // and a client that its MPS server has ended.
        226 | 700 | 702 | 710 | 714..=719 | 721 | 810 => true,
        // The context is gone, and this program makes it once only.
        709 => true,
        // Uncorrectable errors of memory and of NVLink: the driver ends the work, and what
        // is measured beside them deserves no trust.
        214 | 220 => true,
        // Past the making of the context, what a card says that fell off its bus, is being
        // reset or was taken away: "unavailable at the current time" and "unknown".
        46 | 999 => true,
        _ => false,
    }
}

/// What to do about a code that users meet, for those that have a cure.
fn cure(code: u32) -> Option<&'static str> {
    Some(match code {
        OUT_OF_MEMORY => HOLDS_MEMORY,
        34 => "a stub of libcuda stands before the real driver: take .../lib64/stubs out of LD_LIBRARY_PATH",
        46 => "another process may hold the device alone: look at nvidia-smi and at the compute mode, 'nvidia-smi -q -d COMPUTE'",
        100 => {
            "the driver finds no GPU: look at 'nvidia-smi -L', at CUDA_VISIBLE_DEVICES, and whether the container was started with its GPUs"
        }
        101 => "look at CUDA_VISIBLE_DEVICES: it may name a device that is not here",
        214 => "the card's memory is at fault: look at 'nvidia-smi -q -d ECC,ROW_REMAPPER', and reset the card",
        220 => "look at 'nvidia-smi nvlink -e', and reset the card",
        500 => "the library found as libcuda is not a whole driver: look at HBMARK_CUDA_DRIVER and LD_LIBRARY_PATH",
        222 => "the driver is older than this program's kernels: update it to 525 or newer",
        702 => "a card that drives a display ends kernels after some seconds: use another one, or name a smaller size after '@'",
        802 => "the NVSwitch fabric is not up: start the nvidia-fabricmanager service, of the driver's own version",
        803 => "the loaded kernel module and the driver library are of different versions: reboot, or reload the nvidia modules",
        804 => "this driver's compatibility package does not support the card: take it out of LD_LIBRARY_PATH",
        999 => "the driver cannot say more; after a suspend, reload the module nvidia_uvm; otherwise look at 'dmesg | grep NVRM'",
        code if is_fatal(code) => "look for the cause with 'dmesg | grep NVRM', then run again: a new process starts afresh",
        _ => return None,
    })
}

/// That a variable decides which devices CUDA shows, where it is set.
fn hidden_devices() -> Option<String> {
    let names = std::env::var_os("CUDA_VISIBLE_DEVICES")?;
    Some(format!("; CUDA_VISIBLE_DEVICES is set to '{}' and hides every device that it does not name: unset it", names.display()))
}

/// `what` failed with this code, in one paragraph.
fn describe(what: &str, code: u32) -> String {
    let hidden = matches!(code, 100 | 101).then(hidden_devices).flatten().unwrap_or_default();
    let cure = cure(code).map(|cure| format!("; {cure}")).unwrap_or_default();
    format!("{what} failed: {} ({code}, {}){hidden}{cure}", driver::code_text(code), driver::code_name(code))
}

/// An error that means that CUDA cannot be used here at all.
pub(super) fn unusable(what: &str) -> impl FnOnce(CudaError) -> DeviceError {
    move |error| DeviceError::Unusable(describe(what, number(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_with_a_cure_names_it() {
        for (code, word) in [(34, "stub"), (802, "fabricmanager"), (803, "reboot"), (999, "suspend"), (222, "525")] {
            let text = describe("starting CUDA", code);
            assert!(text.contains(word) && text.contains(&format!("({code}, CUDA_ERROR_")), "{text}");
        }
    }

    #[test]
    fn memory_that_ran_out_is_told_apart_by_either_way_of_calling() {
        let safe = at_work("allocating")(CudaError::OutOfMemory);
        assert!(matches!(&safe, DeviceError::OutOfMemory(text) if text.contains("nvidia-smi")), "{safe}");
        assert_eq!(raw("allocating", CUresult::CUDA_ERROR_OUT_OF_MEMORY), Err(safe));
    }

    #[test]
    fn a_code_without_a_cure_still_names_the_code() {
        let text = describe("the kernel 'x'", 701);
        assert!(text.starts_with("the kernel 'x' failed: ") && text.contains("701"), "{text}");
    }

    #[test]
    fn a_code_after_which_the_context_is_dead_loses_the_device_and_says_what_to_do() {
        for code in [46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 999] {
            let error = failed("running the case", code);
            assert!(matches!(&error, DeviceError::Lost(text) if text.contains("; ")), "{code}: {error}");
        }
    }

    #[test]
    fn a_code_that_leaves_the_context_alive_does_not_lose_the_device() {
        for code in [1, 2, 200, 209, 218, 222, 304, 400, 500, 701, 720, 801, 9999] {
            assert!(!matches!(failed("running the case", code), DeviceError::Lost(_)), "{code}");
        }
    }
}
