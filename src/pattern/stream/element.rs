//! The types of elements.

use crate::pattern::Buffer;

/// The type of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Half precision; in pairs, as arrays are whole words.
    F16,
}

impl Element {
    /// All types.
    pub const ALL: [Self; 3] = [Self::F32, Self::F64, Self::F16];

    /// The part of the id.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
        }
    }

    /// Size of one element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F64 => 8,
            Self::F16 => 2,
        }
    }

    /// An input of such numbers.
    pub const fn buffer(self, bytes: u64, seed: u32) -> Buffer {
        match self {
            Self::F32 => Buffer::numbers(bytes, seed),
            Self::F64 => Buffer::doubles(bytes, seed),
            Self::F16 => Buffer::halves(bytes, seed),
        }
    }

    /// How far a scaled element or a sum of two may lie from the exact one, as a fraction of both terms'
    /// magnitudes. One rounding of the result, or two where a compiler splits a multiply-add, is half a
    /// unit in the last place of each term. In f16 the kernels round once.
    pub const fn tolerance(self) -> f32 {
        match self {
            Self::F32 => 1.0 / (1u64 << 23) as f32,
            Self::F64 => 1.0 / (1u64 << 52) as f32,
            Self::F16 => 1.0 / (1u64 << 11) as f32,
        }
    }

    /// Half a unit in the last place of 1 in the type in which a thread adds products up: f32 for f16 too.
    pub const fn sum_unit_roundoff(self) -> f64 {
        match self {
            Self::F32 | Self::F16 => 1.0 / (1u64 << 24) as f64,
            Self::F64 => 1.0 / (1u64 << 53) as f64,
        }
    }
}
