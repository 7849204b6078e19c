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

/// What a device that returned this code at work has come to.
fn failed(what: &str, code: u32) -> DeviceError {
    const OUT_OF_MEMORY: u32 = CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32;
    match code {
        OUT_OF_MEMORY => DeviceError::OutOfMemory(format!("{what}; see with nvidia-smi whether another program holds it")),
        code => DeviceError::Failed(describe(what, code)),
    }
}

/// What to do about a code that users meet, for those that have a cure.
fn cure(code: u32) -> Option<&'static str> {
    Some(match code {
        34 => "a stub of libcuda stands before the real driver: take .../lib64/stubs out of LD_LIBRARY_PATH",
        100 => {
            "the driver finds no GPU: look at 'nvidia-smi -L', at CUDA_VISIBLE_DEVICES, and whether the container was started with its GPUs"
        }
        101 => "look at CUDA_VISIBLE_DEVICES: it may name a device that is not here",
        500 => "the library found as libcuda is not a whole driver: look at HBMARK_CUDA_DRIVER and LD_LIBRARY_PATH",
        222 => "the driver is older than this program's kernels: update it to 525 or newer",
        802 => "the NVSwitch fabric is not up: start the nvidia-fabricmanager service, of the driver's own version",
        803 => "the loaded kernel module and the driver library are of different versions: reboot, or reload the nvidia modules",
        804 => "this driver's compatibility package does not support the card: take it out of LD_LIBRARY_PATH",
        999 => "the driver cannot say more; after a suspend, reload the module nvidia_uvm; otherwise look at 'dmesg | grep NVRM'",
        _ => return None,
    })
}

/// `what` failed with this code, in one paragraph.
fn describe(what: &str, code: u32) -> String {
    let cure = cure(code).map(|cure| format!("; {cure}")).unwrap_or_default();
    format!("{what} failed: {} ({code}, {}){cure}", driver::code_text(code), driver::code_name(code))
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
        let text = describe("the kernel 'x'", 700);
        assert!(text.starts_with("the kernel 'x' failed: ") && text.contains("700"), "{text}");
    }
}
