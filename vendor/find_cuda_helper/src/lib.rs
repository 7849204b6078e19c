//! `cust`'s build script asks this crate to find a CUDA toolkit and to link `libcuda`.
//!
//! `hbmark` defines the driver's symbols itself and looks each one up in the
//! installed driver on first use (`src/device/cuda/driver.rs`), so there is
//! nothing to find and nothing to link: a build works on a machine without CUDA.

/// Called by `cust`'s build script; deliberately emits no search path and no link flag.
pub fn include_cuda() {}
