//! The forms in which `kernels/stream.cuh` has each operation.

use super::{Element, Operation};

/// One kernel as it is compiled.
pub(super) struct Compiled {
    /// The entry's name.
    pub kernel: &'static str,
    pub vector_bytes: u32,
    pub unroll: u32,
    pub once: bool,
    /// The most threads that a block may have.
    pub most_threads: u32,
}

/// The kernels of one operation on one type.
pub(super) struct Family {
    /// The module that holds them.
    pub module: &'static str,
    pub kernels: &'static [&'static [Compiled]],
}

const fn compiled(kernel: &'static str, vector_bytes: u32, unroll: u32, once: bool, most_threads: u32) -> Compiled {
    Compiled { kernel, vector_bytes, unroll, once, most_threads }
}

/// As the macros `FORMS` and `FORMS_NARROW` of `kernels/stream.cuh`; `deep` is how many threads a block may
/// have with eight vectors of 16 bytes a thread.
macro_rules! forms {
    ($name:literal, $deep:literal) => {
        &[
            compiled(concat!($name, "_v8_u1"), 8, 1, false, 1024),
            compiled(concat!($name, "_v8_u4"), 8, 4, false, 1024),
            compiled(concat!($name, "_v16_u1"), 16, 1, false, 1024),
            compiled(concat!($name, "_v16_u2"), 16, 2, false, 1024),
            compiled(concat!($name, "_v16_u4"), 16, 4, false, 1024),
            compiled(concat!($name, "_v16_u8"), 16, 8, false, $deep),
            compiled(concat!($name, "_v16_u1_cs"), 16, 1, true, 1024),
            compiled(concat!($name, "_v16_u4_cs"), 16, 4, true, 1024),
        ]
    };
}

macro_rules! narrow {
    ($name:literal) => {
        &[compiled(concat!($name, "_v4_u1"), 4, 1, false, 1024), compiled(concat!($name, "_v4_u4"), 4, 4, false, 1024)]
    };
}

macro_rules! family {
    ($name:literal, $deep:literal $(, $more:expr)*) => {
        Family { module: $name, kernels: &[forms!($name, $deep) $(, $more)*] }
    };
}

static READ: Family = family!("stream_read", 1024, narrow!("stream_read"), &[compiled("stream_read_v16_u16", 16, 16, false, 512)]);
static WRITE: Family = family!("stream_write", 1024, narrow!("stream_write"));
static COPY: Family = family!("stream_copy", 1024, narrow!("stream_copy"));
static SCALE: [Family; 3] = [
    family!("stream_scale_f32", 1024, narrow!("stream_scale_f32")),
    family!("stream_scale_f64", 1024),
    family!("stream_scale_f16", 1024, narrow!("stream_scale_f16")),
];
static ADD: [Family; 3] = [
    family!("stream_add_f32", 512, narrow!("stream_add_f32")),
    family!("stream_add_f64", 512),
    family!("stream_add_f16", 512, narrow!("stream_add_f16")),
];
static TRIAD: [Family; 3] = [
    family!("stream_triad_f32", 512, narrow!("stream_triad_f32")),
    family!("stream_triad_f64", 512),
    family!("stream_triad_f16", 512, narrow!("stream_triad_f16")),
];
static DOT: [Family; 3] = [
    family!("stream_dot_f32", 512, narrow!("stream_dot_f32")),
    family!("stream_dot_f64", 512),
    family!("stream_dot_f16", 512, narrow!("stream_dot_f16")),
];

/// The kernels of an operation on a type; read, write and copy are the same for all types.
pub(super) fn family(operation: Operation, element: Element) -> &'static Family {
    let of_type = |families: &'static [Family; 3]| match element {
        Element::F32 => &families[0],
        Element::F64 => &families[1],
        Element::F16 => &families[2],
    };
    match operation {
        Operation::Read => &READ,
        Operation::Write => &WRITE,
        Operation::Copy => &COPY,
        Operation::Scale => of_type(&SCALE),
        Operation::Add => of_type(&ADD),
        Operation::Triad => of_type(&TRIAD),
        Operation::Dot => of_type(&DOT),
    }
}

impl Family {
    /// The kernel with this vector, unroll and hint.
    pub fn kernel(&self, vector_bytes: u32, unroll: u32, once: bool) -> Option<&'static Compiled> {
        self.all().find(|kernel| (kernel.vector_bytes, kernel.unroll, kernel.once) == (vector_bytes, unroll, once))
    }

    /// All of its kernels.
    pub fn all(&self) -> impl Iterator<Item = &'static Compiled> + use<> {
        self.kernels.iter().flat_map(|kernels| kernels.iter())
    }
}
