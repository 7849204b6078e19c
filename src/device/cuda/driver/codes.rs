//! Every result code of the CUDA driver API up to CUDA 13.5: its number, its name and a short text.
//!
//! The texts are ours because the installed driver may be missing, or older
//! than the code it is asked about, exactly when a message is needed most.

use std::ffi::CStr;

use cust::sys::CUresult;

/// The name and the text of a code that is not in the table.
pub(super) const UNRECOGNISED: &CStr = c"unrecognised CUDA error";

/// One result code of the driver API.
pub(super) struct Code {
    /// The number that the driver returns.
    pub(super) number: u32,
    /// The name in NVIDIA's headers.
    pub(super) name: &'static CStr,
    /// What it means.
    pub(super) text: &'static CStr,
    /// The same code as `cust::sys` knows it, if it does.
    pub(super) sys: Option<CUresult>,
    /// Whether `cust::error::CudaError` keeps this code apart from every other one.
    pub(super) kept_by_cust: bool,
}

/// The table's entry for `number`.
pub(super) fn find(number: u32) -> Option<&'static Code> {
    CODES.binary_search_by_key(&number, |code| code.number).ok().map(|index| &CODES[index])
}

const fn c_string(bytes: &'static [u8]) -> &'static CStr {
    match CStr::from_bytes_with_nul(bytes) {
        Ok(string) => string,
        // Only reached while compiling: every call below is in a constant.
        Err(_) => panic!("a name with a NUL inside"),
    }
}

/// Builds the table from lines `number NAME who: text`, where `who` is the narrowest type that has the code.
///
/// - `cust`: `cust::error::CudaError` has a variant of its own for it;
/// - `sys`: `cust::sys::CUresult` has it and `CudaError` folds it into `UnknownError`;
/// - `newer`: neither has it, so it must never reach either type.
macro_rules! codes {
    ($($number:literal $name:ident $who:ident: $text:literal;)*) => {
        const CODES: &[Code] = &[$(Code {
            number: $number,
            name: c_string(concat!(stringify!($name), "\0").as_bytes()),
            text: $text,
            sys: codes!(@sys $who $name),
            kept_by_cust: codes!(@kept $who),
        }),*];
    };
    (@sys newer $name:ident) => { None };
    (@sys $who:ident $name:ident) => { Some(CUresult::$name) };
    (@kept cust) => { true };
    (@kept $who:ident) => { false };
}

// Ascending by number, for the binary search.
codes! {
    0 CUDA_SUCCESS cust: c"no error";
    1 CUDA_ERROR_INVALID_VALUE cust: c"an argument is outside its allowed range";
    2 CUDA_ERROR_OUT_OF_MEMORY cust: c"not enough memory left for this allocation";
    3 CUDA_ERROR_NOT_INITIALIZED cust: c"the driver API was used before cuInit";
    4 CUDA_ERROR_DEINITIALIZED cust: c"the driver is already shutting down";
    5 CUDA_ERROR_PROFILER_DISABLED cust: c"profiling is switched off for this process";
    6 CUDA_ERROR_PROFILER_NOT_INITIALIZED cust: c"the profiler is not set up (code of old drivers)";
    7 CUDA_ERROR_PROFILER_ALREADY_STARTED cust: c"the profiler runs already (code of old drivers)";
    8 CUDA_ERROR_PROFILER_ALREADY_STOPPED cust: c"the profiler is stopped already (code of old drivers)";
    34 CUDA_ERROR_STUB_LIBRARY sys: c"the loaded libcuda is the toolkit's stub for linking, not a driver";
    36 CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER newer: c"this call needs a newer NVIDIA driver";
    46 CUDA_ERROR_DEVICE_UNAVAILABLE newer: c"the device is busy or closed to this process (exclusive or prohibited compute mode)";
    47 CUDA_ERROR_MULTICAST_RESOURCE_FULL newer: c"the hardware can bind no more memory to a multicast object";
    100 CUDA_ERROR_NO_DEVICE cust: c"no CUDA device was found";
    101 CUDA_ERROR_INVALID_DEVICE cust: c"there is no device of this number, or the operation does not suit it";
    102 CUDA_ERROR_DEVICE_NOT_LICENSED sys: c"the virtual GPU has no licence";
    200 CUDA_ERROR_INVALID_IMAGE cust: c"the kernel image is damaged or not a kernel image";
    201 CUDA_ERROR_INVALID_CONTEXT cust: c"no usable context is current on this thread";
    202 CUDA_ERROR_CONTEXT_ALREADY_CURRENT cust: c"the context is current already (code of old drivers)";
    205 CUDA_ERROR_MAP_FAILED cust: c"mapping or registering the memory failed";
    206 CUDA_ERROR_UNMAP_FAILED cust: c"unmapping or unregistering the memory failed";
    207 CUDA_ERROR_ARRAY_IS_MAPPED cust: c"the array is mapped and so cannot be destroyed";
    208 CUDA_ERROR_ALREADY_MAPPED cust: c"the resource is mapped already";
    209 CUDA_ERROR_NO_BINARY_FOR_GPU cust: c"the image holds no code that this GPU can run";
    210 CUDA_ERROR_ALREADY_ACQUIRED cust: c"the resource was acquired already";
    211 CUDA_ERROR_NOT_MAPPED cust: c"the resource is not mapped";
    212 CUDA_ERROR_NOT_MAPPED_AS_ARRAY cust: c"the resource is not mapped as an array";
    213 CUDA_ERROR_NOT_MAPPED_AS_POINTER cust: c"the resource is not mapped as a pointer";
    214 CUDA_ERROR_ECC_UNCORRECTABLE cust: c"an ECC error that could not be corrected";
    215 CUDA_ERROR_UNSUPPORTED_LIMIT cust: c"the device has no such limit";
    216 CUDA_ERROR_CONTEXT_ALREADY_IN_USE cust: c"another thread uses the context";
    217 CUDA_ERROR_PEER_ACCESS_UNSUPPORTED cust: c"these devices cannot reach each other's memory";
    218 CUDA_ERROR_INVALID_PTX cust: c"the driver's compiler refused the PTX";
    219 CUDA_ERROR_INVALID_GRAPHICS_CONTEXT cust: c"the graphics context is not usable";
    220 CUDA_ERROR_NVLINK_UNCORRECTABLE cust: c"an NVLink error that could not be corrected";
    221 CUDA_ERROR_JIT_COMPILER_NOT_FOUND sys: c"the driver's PTX compiler library is not installed";
    222 CUDA_ERROR_UNSUPPORTED_PTX_VERSION sys: c"the PTX is of a newer version than this driver can compile";
    223 CUDA_ERROR_JIT_COMPILATION_DISABLED sys: c"compiling PTX is switched off in this environment";
    224 CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY sys: c"the device does not offer this execution affinity";
    225 CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC newer: c"the PTX synchronises inside a kernel in a way that is no longer supported";
    226 CUDA_ERROR_CONTAINED newer: c"a contained hardware or NVLink error; the process must be restarted to use CUDA again";
    227 CUDA_ERROR_INSUFFICIENT_LOADER_VERSION newer: c"the driver's loader is too old for this image";
    300 CUDA_ERROR_INVALID_SOURCE cust: c"the kernel source cannot be used";
    301 CUDA_ERROR_FILE_NOT_FOUND cust: c"the file was not found";
    302 CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND cust: c"a shared library lacks a symbol that the driver needs";
    303 CUDA_ERROR_SHARED_OBJECT_INIT_FAILED cust: c"a shared library that the driver needs did not start";
    304 CUDA_ERROR_OPERATING_SYSTEM cust: c"a call to the operating system failed";
    400 CUDA_ERROR_INVALID_HANDLE cust: c"the handle is not valid (in this context)";
    401 CUDA_ERROR_ILLEGAL_STATE sys: c"the object is not in the right state for this call";
    402 CUDA_ERROR_LOSSY_QUERY newer: c"the object has parts that this query could not show";
    500 CUDA_ERROR_NOT_FOUND cust: c"the name was not found";
    600 CUDA_ERROR_NOT_READY cust: c"the work is not finished yet";
    700 CUDA_ERROR_ILLEGAL_ADDRESS cust: c"a kernel touched memory that it must not; the process must be restarted to use CUDA again";
    701 CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES cust: c"the launch needs more registers, threads or shared memory than there are";
    702 CUDA_ERROR_LAUNCH_TIMEOUT cust: c"the kernel ran longer than the display watchdog allows";
    703 CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING cust: c"the launch uses an incompatible texturing mode";
    704 CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED cust: c"peer access is on already";
    705 CUDA_ERROR_PEER_ACCESS_NOT_ENABLED cust: c"peer access is not on";
    708 CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE cust: c"the device's primary context is in use already";
    709 CUDA_ERROR_CONTEXT_IS_DESTROYED cust: c"the context is destroyed or was never set up";
    710 CUDA_ERROR_ASSERT cust: c"an assertion failed inside a kernel";
    711 CUDA_ERROR_TOO_MANY_PEERS cust: c"no more devices can be peers of this one";
    712 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED cust: c"this host memory is registered already";
    713 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED cust: c"this host memory is not registered";
    714 CUDA_ERROR_HARDWARE_STACK_ERROR cust: c"a kernel overran or damaged its call stack";
    715 CUDA_ERROR_ILLEGAL_INSTRUCTION cust: c"a kernel met an instruction that the GPU does not have";
    716 CUDA_ERROR_MISALIGNED_ADDRESS cust: c"a kernel used an address that is not aligned for the access";
    717 CUDA_ERROR_INVALID_ADDRESS_SPACE cust: c"a kernel used an address of the wrong memory space";
    718 CUDA_ERROR_INVALID_PC cust: c"a kernel's program counter left its address space";
    719 CUDA_ERROR_LAUNCH_FAILED cust: c"a kernel failed for a cause the driver does not name";
    720 CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE sys: c"a cooperative launch has more blocks than fit on the device at once";
    721 CUDA_ERROR_TENSOR_MEMORY_LEAK newer: c"a kernel ended without freeing its tensor memory";
    800 CUDA_ERROR_NOT_PERMITTED cust: c"this operation is not permitted";
    801 CUDA_ERROR_NOT_SUPPORTED cust: c"this operation is not supported on this system or device";
    802 CUDA_ERROR_SYSTEM_NOT_READY sys: c"the system is not ready for CUDA (on NVSwitch machines: is the fabric manager running?)";
    803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH sys: c"libcuda and the NVIDIA kernel driver are of different versions";
    804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE sys: c"a compatibility libcuda is loaded, which this device does not support";
    805 CUDA_ERROR_MPS_CONNECTION_FAILED sys: c"the MPS daemon cannot be reached";
    806 CUDA_ERROR_MPS_RPC_FAILURE sys: c"a call to the MPS server failed";
    807 CUDA_ERROR_MPS_SERVER_NOT_READY sys: c"the MPS server is not ready for new clients";
    808 CUDA_ERROR_MPS_MAX_CLIENTS_REACHED sys: c"the MPS server has as many clients as it can have";
    809 CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED sys: c"the device has as many MPS connections as it can have";
    810 CUDA_ERROR_MPS_CLIENT_TERMINATED newer: c"the MPS server ended this client";
    811 CUDA_ERROR_CDP_NOT_SUPPORTED newer: c"kernels that launch kernels are not supported here";
    812 CUDA_ERROR_CDP_VERSION_MISMATCH newer: c"a module mixes two versions of launching kernels from kernels";
    900 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED sys: c"this operation cannot be captured from a stream";
    901 CUDA_ERROR_STREAM_CAPTURE_INVALIDATED sys: c"an earlier failure spoilt the stream's capture";
    902 CUDA_ERROR_STREAM_CAPTURE_MERGE sys: c"two independent stream captures would have merged";
    903 CUDA_ERROR_STREAM_CAPTURE_UNMATCHED sys: c"the stream takes no part in this capture";
    904 CUDA_ERROR_STREAM_CAPTURE_UNJOINED sys: c"a forked stream was not joined before the capture ended";
    905 CUDA_ERROR_STREAM_CAPTURE_ISOLATION sys: c"a captured operation depends on work outside the capture";
    906 CUDA_ERROR_STREAM_CAPTURE_IMPLICIT sys: c"a captured operation depends on the legacy default stream";
    907 CUDA_ERROR_CAPTURED_EVENT sys: c"the event was recorded in a capture and cannot be used outside it";
    908 CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD sys: c"the capture was begun on another thread";
    909 CUDA_ERROR_TIMEOUT sys: c"the wait ran out of time";
    910 CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE sys: c"the executable graph cannot take this update";
    911 CUDA_ERROR_EXTERNAL_DEVICE sys: c"a device outside CUDA reported an error";
    912 CUDA_ERROR_INVALID_CLUSTER_SIZE newer: c"the launch's cluster size does not suit the kernel or the device";
    913 CUDA_ERROR_FUNCTION_NOT_LOADED newer: c"the function has not been loaded yet";
    914 CUDA_ERROR_INVALID_RESOURCE_TYPE newer: c"a resource is of the wrong type for this call";
    915 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION newer: c"the resources are too few or do not fit together";
    916 CUDA_ERROR_KEY_ROTATION newer: c"renewing the encryption keys failed (confidential computing)";
    917 CUDA_ERROR_STREAM_DETACHED newer: c"the stream's green context is gone";
    918 CUDA_ERROR_GRAPH_RECAPTURE_FAILURE newer: c"capturing into the existing graph failed";
    919 CUDA_ERROR_FABRIC_NOT_READY newer: c"the GPU fabric (NVLink) is not ready";
    // `cust` has this variant, but uses it for everything that it does not know as well.
    999 CUDA_ERROR_UNKNOWN sys: c"the driver gives no cause";
}

#[cfg(test)]
mod tests {
    use super::*;
    use cust::error::CudaError;

    #[test]
    fn the_table_ascends_so_that_the_search_finds_every_code() {
        assert!(CODES.windows(2).all(|pair| pair[0].number < pair[1].number));
        for code in CODES {
            assert_eq!(find(code.number).map(|found| found.name), Some(code.name));
        }
        assert!(find(9999).is_none());
    }

    #[test]
    fn the_written_numbers_are_those_of_the_bindings() {
        for code in CODES {
            if let Some(sys) = code.sys {
                assert_eq!(sys as u32, code.number, "{:?}", code.name);
            }
        }
    }

    #[test]
    fn every_code_that_the_bindings_know_is_in_the_table() {
        // `grep -cE '^    CUDA_(SUCCESS|ERROR_[A-Z0-9_]+) = ' src/cuda.rs` in cust_raw 0.11.3.
        const IN_CUST_RAW: usize = 87;
        let known = CODES.iter().filter(|code| code.sys.is_some()).count();
        assert_eq!(known, IN_CUST_RAW);
    }

    #[test]
    fn a_code_counts_as_kept_exactly_when_cust_has_a_variant_for_it_alone() {
        // Each variant of `CudaError` in cust 0.3.2 that stands for one driver code.
        let variants = [
            CudaError::InvalidValue,
            CudaError::OutOfMemory,
            CudaError::NotInitialized,
            CudaError::Deinitialized,
            CudaError::ProfilerDisabled,
            CudaError::ProfilerNotInitialized,
            CudaError::ProfilerAlreadyStarted,
            CudaError::ProfilerAlreadyStopped,
            CudaError::NoDevice,
            CudaError::InvalidDevice,
            CudaError::InvalidImage,
            CudaError::InvalidContext,
            CudaError::ContextAlreadyCurrent,
            CudaError::MapFailed,
            CudaError::UnmapFailed,
            CudaError::ArrayIsMapped,
            CudaError::AlreadyMapped,
            CudaError::NoBinaryForGpu,
            CudaError::AlreadyAcquired,
            CudaError::NotMapped,
            CudaError::NotMappedAsArray,
            CudaError::NotMappedAsPointer,
            CudaError::EccUncorrectable,
            CudaError::UnsupportedLimit,
            CudaError::ContextAlreadyInUse,
            CudaError::PeerAccessUnsupported,
            CudaError::InvalidPtx,
            CudaError::InvalidGraphicsContext,
            CudaError::NvlinkUncorrectable,
            CudaError::InvalidSource,
            CudaError::FileNotFound,
            CudaError::SharedObjectSymbolNotFound,
            CudaError::SharedObjectInitFailed,
            CudaError::OperatingSystemError,
            CudaError::InvalidHandle,
            CudaError::NotFound,
            CudaError::NotReady,
            CudaError::IllegalAddress,
            CudaError::LaunchOutOfResources,
            CudaError::LaunchTimeout,
            CudaError::LaunchIncompatibleTexturing,
            CudaError::PeerAccessAlreadyEnabled,
            CudaError::PeerAccessNotEnabled,
            CudaError::PrimaryContextActive,
            CudaError::ContextIsDestroyed,
            CudaError::AssertError,
            CudaError::TooManyPeers,
            CudaError::HostMemoryAlreadyRegistered,
            CudaError::HostMemoryNotRegistered,
            CudaError::HardwareStackError,
            CudaError::IllegalInstruction,
            CudaError::MisalignedAddress,
            CudaError::InvalidAddressSpace,
            CudaError::InvalidProgramCounter,
            CudaError::LaunchFailed,
            CudaError::NotPermitted,
            CudaError::NotSupported,
        ];
        let mut expected = vec![0];
        expected.extend(variants.map(|variant| variant as u32));
        let kept: Vec<u32> = CODES.iter().filter(|code| code.kept_by_cust).map(|code| code.number).collect();
        assert_eq!(kept, expected);
    }
}
