//! What a pass does with each element.

use super::Element;

/// What a pass does with each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Sums every word into a checksum.
    Read,
    /// Stores a function of the position.
    Write,
    /// Copies one array to another.
    Copy,
    /// Stores a multiple of an array.
    Scale,
    /// Adds two arrays.
    Add,
    /// Adds a multiple of one array to another.
    Triad,
    /// Sums the products of two arrays.
    Dot,
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 7] = [Self::Read, Self::Write, Self::Copy, Self::Scale, Self::Add, Self::Triad, Self::Dot];

    /// The part of the id.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Scale => "scale",
            Self::Add => "add",
            Self::Triad => "triad",
            Self::Dot => "dot",
        }
    }

    /// Arrays that it reads.
    pub const fn arrays_read(self) -> u64 {
        match self {
            Self::Write => 0,
            Self::Read | Self::Copy | Self::Scale => 1,
            Self::Add | Self::Triad | Self::Dot => 2,
        }
    }

    /// Arrays that it writes.
    pub const fn arrays_written(self) -> u64 {
        if self.sums() { 0 } else { 1 }
    }

    /// Whether all that is left of the arrays is a sum for each block.
    pub const fn sums(self) -> bool {
        matches!(self, Self::Read | Self::Dot)
    }

    /// Whether it computes with elements; the others move words, of whatever type.
    pub const fn computes(self) -> bool {
        matches!(self, Self::Scale | Self::Add | Self::Triad | Self::Dot)
    }

    /// Floating-point operations for each element.
    pub const fn flops_per_element(self) -> u64 {
        match self {
            Self::Read | Self::Write | Self::Copy => 0,
            Self::Scale | Self::Add => 1,
            Self::Triad | Self::Dot => 2,
        }
    }
}

/// How far the sums of a dot product may lie from it, as a fraction of the products' magnitudes together:
/// each thread adds up `terms` products, with a rounding error that grows with the square root of their
/// number (N. Higham, Accuracy and Stability of Numerical Algorithms, section 2.8), here times four; the rest
/// is added in f64.
pub(super) fn dot_tolerance(element: Element, terms: u64) -> f32 {
    (4.0 * (terms as f64).sqrt() * element.sum_unit_roundoff()) as f32
}
