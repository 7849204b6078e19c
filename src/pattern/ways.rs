//! The ways in which one case can be written, for a tuner to choose from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::Launch;

/// What a kernel is written with and launched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Form {
    /// Size of one access, bytes.
    pub vector_bytes: u32,
    /// Accesses to each array that a thread has in flight.
    pub unroll: u32,
    /// Whether the data are marked as used once, so that they are the first to leave the caches.
    pub once: bool,
    /// Threads in a block.
    pub block: u32,
    /// Blocks launched for each multiprocessor, which take tiles in turn; absent where each tile has a block of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_unit: Option<u32>,
}

/// One way: a form, and the launches that it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// The form.
    pub form: Form,
    /// What is timed.
    pub(crate) work: Launch,
    /// What compares its results.
    pub(crate) check: Launch,
    /// How many results that compares.
    pub(crate) compared: u64,
}

/// All ways of one case. They share the buffers of its plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Ways {
    /// The cases with this name are written by the same kernels: what is best for one is for the others.
    pub family: &'static str,
    /// Those to choose from.
    pub choice: Vec<Way>,
    /// Which of them a search begins with.
    pub start: Form,
    /// How somebody writes it who thinks of nothing but the work: one element of 8 bytes a thread.
    pub naive: Way,
    /// Those that differ in how many bytes they have in flight, from few to many: see [`Rung`].
    pub ladder: Vec<Rung>,
}

/// A way with a known number of bytes in flight.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Bytes that all resident threads of a multiprocessor have asked for before the first of them is used.
    pub in_flight_bytes_per_unit: u64,
    /// The way.
    pub way: Way,
}

impl Ways {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Way> {
        self.choice.iter().chain([&self.naive]).chain(self.ladder.iter().map(|rung| &rung.way))
    }

    /// The way of this form, if there is one to choose.
    pub fn of(&self, form: &Form) -> Option<&Way> {
        self.choice.iter().find(|way| way.form == *form)
    }
}
