//! The driver symbols that `cust` links against, defined here and forwarded to the installed driver.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};
use std::sync::OnceLock;

use cust::sys::*;

use super::{codes, driver, report, resolve};

/// Defines each listed symbol as a call of the driver's function of the same name.
///
/// A signature that differs from the one `cust::sys` declares does not compile.
/// Only the driver's own function has another return type, a plain number:
/// a code that the Rust enum does not have must never be held in that enum.
macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The names of the forwarded symbols.
        #[cfg(test)]
        pub(crate) const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        /// For each forwarded symbol, where the linker took `cust`'s declaration of it, and our definition.
        #[cfg(test)]
        fn addresses() -> Vec<(*const (), *const ())> {
            vec![$((cust::sys::$name as *const (), $name as *const ())),*]
        }

        $(
            const _: unsafe extern "C" fn($($type),*) -> CUresult = cust::sys::$name;

            /// Forwarded to the installed driver's function of the same name.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> CUresult {
                type Real = unsafe extern "C" fn($($type),*) -> u32;
                static REAL: OnceLock<Result<Real, u32>> = OnceLock::new();
                // SAFETY: a driver exports this name with this signature; a C enum is returned as a 32-bit number.
                let real = REAL.get_or_init(|| unsafe { resolve(driver(), stringify!($name)) });
                report(match real {
                    // SAFETY: the caller keeps the promises of the driver's function of the same name.
                    Ok(real) => unsafe { real($($argument),*) },
                    Err(code) => *code,
                })
            }
        )*
    };
}

forward! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);

    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    cuDeviceGetUuid_v2(uuid: *mut CUuuid, device: CUdevice);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuDevicePrimaryCtxReset_v2(device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxSetFlags_v2(device: CUdevice, flags: c_uint);

    cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice);
    cuCtxDestroy_v2(context: CUcontext);
    cuCtxGetApiVersion(context: CUcontext, version: *mut c_uint);
    cuCtxGetCacheConfig(config: *mut CUfunc_cache);
    cuCtxGetCurrent(context: *mut CUcontext);
    cuCtxGetDevice(device: *mut CUdevice);
    cuCtxGetFlags(flags: *mut c_uint);
    cuCtxGetLimit(value: *mut usize, limit: CUlimit);
    cuCtxGetSharedMemConfig(config: *mut CUsharedconfig);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxSetCacheConfig(config: CUfunc_cache);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxSetLimit(limit: CUlimit, value: usize);
    cuCtxSetSharedMemConfig(config: CUsharedconfig);
    cuCtxSynchronize();

    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    cuModuleGetGlobal_v2(pointer: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    cuModuleLoad(module: *mut CUmodule, path: *const c_char);
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    cuModuleLoadDataEx(
        module: *mut CUmodule, image: *const c_void,
        count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    );
    cuModuleUnload(module: CUmodule);

    cuLinkAddData_v2(
        state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const c_char,
        count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void
    );
    cuLinkComplete(state: CUlinkState, image: *mut *mut c_void, size: *mut usize);
    cuLinkCreate_v2(count: c_uint, options: *mut CUjit_option, values: *mut *mut c_void, state: *mut CUlinkState);
    cuLinkDestroy(state: CUlinkState);

    cuFuncGetAttribute(value: *mut c_int, attribute: CUfunction_attribute, function: CUfunction);
    cuFuncSetCacheConfig(function: CUfunction, config: CUfunc_cache);
    cuFuncSetSharedMemConfig(function: CUfunction, config: CUsharedconfig);
    cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared_bytes: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void
    );
    cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void);
    cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: *mut usize, function: CUfunction, blocks: c_int, block_size: c_int
    );
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int, function: CUfunction, block_size: c_int, shared_bytes: usize
    );
    cuOccupancyMaxPotentialBlockSize(
        least_grid: *mut c_int, block_size: *mut c_int, function: CUfunction,
        shared_bytes_of: CUoccupancyB2DSize, shared_bytes: usize, block_size_limit: c_int
    );

    cuMemAdvise(pointer: CUdeviceptr, bytes: usize, advice: CUmem_advise, device: CUdevice);
    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemAllocHost_v2(pointer: *mut *mut c_void, bytes: usize);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: CUstream);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemFree_v2(pointer: CUdeviceptr);
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemPrefetchAsync(pointer: CUdeviceptr, bytes: usize, device: CUdevice, stream: CUstream);
    cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D);
    cuMemcpyAtoH_v2(to: *mut c_void, from: CUarray, offset: usize, bytes: usize);
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    cuMemcpyHtoA_v2(to: CUarray, offset: usize, from: *const c_void, bytes: usize);
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize);
    cuMemsetD16Async(to: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream);
    cuMemsetD16_v2(to: CUdeviceptr, value: c_ushort, count: usize);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: CUstream);
    cuMemsetD32_v2(to: CUdeviceptr, value: c_uint, count: usize);
    cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream);
    cuMemsetD8_v2(to: CUdeviceptr, value: c_uchar, count: usize);

    cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: CUstream);
    cuStreamGetFlags(stream: CUstream, flags: *mut c_uint);
    cuStreamGetPriority(stream: CUstream, priority: *mut c_int);
    cuStreamSynchronize(stream: CUstream);
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);

    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventDestroy_v2(event: CUevent);
    cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    cuEventQuery(event: CUevent);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventSynchronize(event: CUevent);

    cuGraphAddKernelNode(
        node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, count: usize,
        parameters: *const CUDA_KERNEL_NODE_PARAMS
    );
    cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint);
    cuGraphDestroy(graph: CUgraph);
    cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize);
    cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize);
    cuGraphKernelNodeGetParams(node: CUgraphNode, parameters: *mut CUDA_KERNEL_NODE_PARAMS);
    cuGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType);

    cuArray3DCreate_v2(array: *mut CUarray, description: *const CUDA_ARRAY3D_DESCRIPTOR);
    cuArray3DGetDescriptor_v2(description: *mut CUDA_ARRAY3D_DESCRIPTOR, array: CUarray);
    cuArrayDestroy(array: CUarray);
    cuTexObjectCreate(
        texture: *mut CUtexObject, resource: *const CUDA_RESOURCE_DESC,
        description: *const CUDA_TEXTURE_DESC, view: *const CUDA_RESOURCE_VIEW_DESC
    );
    cuTexObjectDestroy(texture: CUtexObject);
    cuTexObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, texture: CUtexObject);
    cuTexObjectGetResourceViewDesc(view: *mut CUDA_RESOURCE_VIEW_DESC, texture: CUtexObject);
    cuSurfObjectCreate(surface: *mut CUsurfObject, resource: *const CUDA_RESOURCE_DESC);
    cuSurfObjectDestroy(surface: CUsurfObject);
    cuSurfObjectGetResourceDesc(resource: *mut CUDA_RESOURCE_DESC, surface: CUsurfObject);

    cuImportExternalMemory(memory: *mut CUexternalMemory, handle: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    cuDestroyExternalMemory(memory: CUexternalMemory);
    cuExternalMemoryGetMappedBuffer(
        pointer: *mut CUdeviceptr, memory: CUexternalMemory, buffer: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    );
}

/// Writes the text of `error`, for unknown codes too: `cust`'s `Display` turns a failure here into a panic of `to_string`.
///
/// The code is taken as a plain number, since C callers may hand over any.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: u32, text: *mut *const c_char) -> CUresult {
    // SAFETY: the caller hands over a pointer that is null or may be written to.
    unsafe { answer(text, codes::find(error).map(|code| code.text)) }
}

/// Writes the name of `error`; like [`cuGetErrorString`] it also answers for unknown codes.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: u32, name: *mut *const c_char) -> CUresult {
    // SAFETY: the caller hands over a pointer that is null or may be written to.
    unsafe { answer(name, codes::find(error).map(|code| code.name)) }
}

/// # Safety
/// `place` is null or may be written to.
unsafe fn answer(place: *mut *const c_char, string: Option<&'static std::ffi::CStr>) -> CUresult {
    if place.is_null() {
        return CUresult::CUDA_ERROR_INVALID_VALUE;
    }
    // SAFETY: not null, so the caller vouches for it.
    unsafe { place.write(string.unwrap_or(codes::UNRECOGNISED).as_ptr()) };
    CUresult::CUDA_SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::ffi::CStr;
    use std::ptr;

    /// Every driver function that the source of `cust` 0.3.2 names, comments included.
    ///
    /// Made in the unpacked sources of `cust` 0.3.2 and `cust_raw` 0.11.3, side by side:
    ///
    /// ```sh
    /// export LC_ALL=C
    /// grep -rhoE '\bcu[A-Z][A-Za-z0-9_]*' cust-0.3.2/src | sort -u > named
    /// grep -oE 'pub fn cu[A-Z][A-Za-z0-9_]*' cust_raw-0.11.3/src/cuda.rs | cut -c8- | sort -u | comm -12 named -
    /// ```
    ///
    /// `cust_raw` renames nothing with `#[link_name]`, so these are the linked names too.
    const NAMED_BY_CUST: [&str; 105] = [
        "cuArray3DCreate_v2",
        "cuArray3DGetDescriptor_v2",
        "cuArrayDestroy",
        "cuCtxCreate_v2",
        "cuCtxDestroy_v2",
        "cuCtxGetApiVersion",
        "cuCtxGetCacheConfig",
        "cuCtxGetCurrent",
        "cuCtxGetDevice",
        "cuCtxGetFlags",
        "cuCtxGetLimit",
        "cuCtxGetSharedMemConfig",
        "cuCtxGetStreamPriorityRange",
        "cuCtxPopCurrent_v2",
        "cuCtxPushCurrent_v2",
        "cuCtxSetCacheConfig",
        "cuCtxSetCurrent",
        "cuCtxSetLimit",
        "cuCtxSetSharedMemConfig",
        "cuCtxSynchronize",
        "cuDestroyExternalMemory",
        "cuDeviceGet",
        "cuDeviceGetAttribute",
        "cuDeviceGetCount",
        "cuDeviceGetName",
        "cuDevicePrimaryCtxRelease_v2",
        "cuDevicePrimaryCtxReset_v2",
        "cuDevicePrimaryCtxRetain",
        "cuDevicePrimaryCtxSetFlags_v2",
        "cuDeviceTotalMem_v2",
        "cuDriverGetVersion",
        "cuEventCreate",
        "cuEventDestroy_v2",
        "cuEventElapsedTime",
        "cuEventQuery",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuExternalMemoryGetMappedBuffer",
        "cuFuncGetAttribute",
        "cuFuncSetCacheConfig",
        "cuFuncSetSharedMemConfig",
        "cuGetErrorString",
        "cuGraphAddKernelNode",
        "cuGraphCreate",
        "cuGraphDebugDotPrint",
        "cuGraphDestroy",
        "cuGraphGetEdges",
        "cuGraphGetNodes",
        "cuGraphKernelNodeGetParams",
        "cuGraphNodeGetType",
        "cuImportExternalMemory",
        "cuInit",
        "cuLaunchHostFunc",
        "cuLaunchKernel",
        "cuLinkAddData_v2",
        "cuLinkComplete",
        "cuLinkCreate_v2",
        "cuLinkDestroy",
        "cuMemAdvise",
        "cuMemAllocAsync",
        "cuMemAllocHost_v2",
        "cuMemAllocManaged",
        "cuMemAlloc_v2",
        "cuMemFreeAsync",
        "cuMemFreeHost",
        "cuMemFree_v2",
        "cuMemGetInfo_v2",
        "cuMemPrefetchAsync",
        "cuMemcpy2D_v2",
        "cuMemcpyAtoH_v2",
        "cuMemcpyDtoDAsync_v2",
        "cuMemcpyDtoD_v2",
        "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoH_v2",
        "cuMemcpyHtoA_v2",
        "cuMemcpyHtoDAsync_v2",
        "cuMemcpyHtoD_v2",
        "cuMemsetD16Async",
        "cuMemsetD16_v2",
        "cuMemsetD32Async",
        "cuMemsetD32_v2",
        "cuMemsetD8Async",
        "cuMemsetD8_v2",
        "cuModuleGetFunction",
        "cuModuleGetGlobal_v2",
        "cuModuleLoad",
        "cuModuleLoadData",
        "cuModuleLoadDataEx",
        "cuModuleUnload",
        "cuOccupancyAvailableDynamicSMemPerBlock",
        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
        "cuOccupancyMaxPotentialBlockSize",
        "cuStreamCreateWithPriority",
        "cuStreamDestroy_v2",
        "cuStreamGetFlags",
        "cuStreamGetPriority",
        "cuStreamSynchronize",
        "cuStreamWaitEvent",
        "cuSurfObjectCreate",
        "cuSurfObjectDestroy",
        "cuSurfObjectGetResourceDesc",
        "cuTexObjectCreate",
        "cuTexObjectDestroy",
        "cuTexObjectGetResourceDesc",
        "cuTexObjectGetResourceViewDesc",
    ];

    /// What the table has beyond the names in `cust`'s source.
    const BEYOND_CUST: [&str; 2] = ["cuDeviceGetUuid_v2", "cuGetErrorName"];

    /// What is answered here instead of forwarded.
    const ANSWERED_HERE: [&str; 2] = ["cuGetErrorName", "cuGetErrorString"];

    #[test]
    fn exactly_the_symbols_that_cust_names_are_defined() {
        let defined: Vec<&str> = SYMBOLS.iter().copied().chain(ANSWERED_HERE).collect();
        let wanted: BTreeSet<&str> = NAMED_BY_CUST.into_iter().chain(BEYOND_CUST).collect();
        assert_eq!(defined.len(), wanted.len(), "a symbol is there twice or not at all");
        assert_eq!(BTreeSet::from_iter(defined), wanted);
    }

    #[test]
    fn the_linker_takes_each_symbol_of_cust_from_here() {
        let addresses = addresses();
        assert_eq!(addresses.len(), SYMBOLS.len());
        for (name, (declared, defined)) in SYMBOLS.iter().zip(addresses) {
            assert_eq!(declared, defined, "{name}");
        }
        let answered = [
            (cust::sys::cuGetErrorString as *const (), cuGetErrorString as *const ()),
            (cust::sys::cuGetErrorName as *const (), cuGetErrorName as *const ()),
        ];
        for (declared, defined) in answered {
            assert_eq!(declared, defined);
        }
    }

    fn string_for(ask: unsafe extern "C" fn(u32, *mut *const c_char) -> CUresult, code: u32) -> &'static CStr {
        let mut string = ptr::null();
        // SAFETY: the place is a variable of this function.
        let result = unsafe { ask(code, &mut string) };
        assert_eq!(result, CUresult::CUDA_SUCCESS);
        // SAFETY: after a success it points to a constant of the table.
        unsafe { CStr::from_ptr(string) }
    }

    #[test]
    fn names_and_texts_are_given_for_known_codes() {
        assert_eq!(string_for(cuGetErrorName, 2), c"CUDA_ERROR_OUT_OF_MEMORY");
        assert_eq!(string_for(cuGetErrorString, 0), c"no error");
    }

    #[test]
    fn an_unknown_code_has_a_text_instead_of_an_error() {
        assert_eq!(string_for(cuGetErrorName, 9999), c"unrecognised CUDA error");
        assert_eq!(string_for(cuGetErrorString, 9999), c"unrecognised CUDA error");
    }

    #[test]
    fn without_a_place_for_the_text_the_call_is_refused() {
        // SAFETY: null is allowed.
        let result = unsafe { cuGetErrorString(2, ptr::null_mut()) };
        assert_eq!(result, CUresult::CUDA_ERROR_INVALID_VALUE);
    }

    #[test]
    fn an_error_of_cust_displays_as_our_text() {
        let text = cust::error::CudaError::NoDevice.to_string();
        assert!(text.contains("no CUDA device was found"), "{text}");
    }
}
