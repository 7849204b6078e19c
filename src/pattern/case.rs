//! One pattern with every parameter fixed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseId, Pipe, Plan, Ways};

/// What a case is meant to exercise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The memory itself: the buffers are several times the last cache.
    Dram,
    /// The caches or the compute units: the buffers fit the last cache.
    Cache,
    /// Something between, where both take a share, or something else: copies over the link to the machine's memory.
    Mixed,
}

impl Level {
    /// Buffers of this many times the last cache leave it at most a quarter of
    /// the traffic even if it kept every byte it can hold from pass to pass.
    const DRAM_MULTIPLE: u64 = 4;

    /// The largest share of its data that the last cache may hold where a case exercises the memory.
    pub const DRAM_CACHE_SHARE_MAX: f64 = 1.0 / Self::DRAM_MULTIPLE as f64;

    /// The level that buffers of `footprint_bytes` exercise.
    ///
    /// An unknown cache counts as exceeded; such rows carry a note.
    pub fn of(footprint_bytes: u64, cache_bytes: Option<u64>) -> Self {
        match cache_bytes {
            Some(cache) if footprint_bytes <= cache => Self::Cache,
            Some(cache) if footprint_bytes < cache.saturating_mul(Self::DRAM_MULTIPLE) => Self::Mixed,
            _ => Self::Dram,
        }
    }
}

/// Bytes that one execution of a case moves, counted in four ways; 0 where another program does not count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Bytes {
    /// Each input element and each weight once, in bytes.
    pub requested_read: u64,
    /// Each output element once, in bytes.
    pub requested_write: u64,
    /// The unique sectors that must cross the memory bus once, in bytes.
    pub compulsory: u64,
    /// What the kernel's load and store instructions ask for, in bytes; none where nobody counts them.
    pub issued: Option<u64>,
    /// What hardware counters saw, in bytes; none until imported.
    pub dram: Option<u64>,
}

impl Bytes {
    /// Requested bytes, read and written.
    pub fn requested(&self) -> u64 {
        self.requested_read.saturating_add(self.requested_write)
    }

    /// With `read` bytes more that are read once each, in contiguous pieces.
    #[must_use]
    pub fn and_read(self, read: u64) -> Self {
        Self {
            requested_read: self.requested_read.saturating_add(read),
            compulsory: self.compulsory.saturating_add(read),
            issued: self.issued.map(|issued| issued.saturating_add(read)),
            ..self
        }
    }

    /// A contiguous pass: what is requested is what is issued and what must move.
    pub fn contiguous(read: u64, write: u64) -> Self {
        let total = read.saturating_add(write);
        Self { requested_read: read, requested_write: write, compulsory: total, issued: Some(total), dram: None }
    }
}

/// Where a kernel tells what nobody knows before it has run, such as how much it read until it was stopped.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// The plan's buffer that it stands in, an output.
    pub buffer: usize,
    /// What the words of that buffer say after an execution.
    pub read: fn(&[u32]) -> Told,
}

/// What a kernel told of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// Bytes that it read once each, beyond those that its case counts.
    pub read_bytes: u64,
    /// What a reader of its row must know.
    pub notes: Vec<String>,
}

/// Named parameters, in the order in which people read them.
pub type Parameters = serde_json::Map<String, serde_json::Value>;

/// A measurable unit of work.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its stable id.
    pub id: CaseId,
    /// What it exercises on this device.
    pub level: Level,
    /// Every parameter that fixes it.
    pub parameters: Parameters,
    /// What one execution moves.
    pub bytes: Bytes,
    /// Floating-point operations of one execution; a fused multiply-add counts two.
    pub flops: u64,
    /// Where those operations run; none for cases without flops.
    pub compute_pipe: Option<Pipe>,
    /// Accesses of one execution, each of which waits for the one before it, in a case that measures how
    /// long one takes: its time over their number is the row's latency. None in all others.
    pub accesses: Option<u64>,
    /// What the kernel itself tells of an execution; none where everything is known beforehand.
    pub report: Option<Report>,
    /// What a reader must know beside the figures, such as a capped buffer.
    pub notes: Vec<String>,
    /// How a device carries it out.
    pub plan: Plan,
    /// In which other ways it may; none where it is written in one way.
    pub ways: Option<Ways>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buffers_several_times_the_cache_exercise_memory() {
        let cache = Some(60 << 20);
        assert_eq!(Level::of(60 << 20, cache), Level::Cache);
        assert_eq!(Level::of(61 << 20, cache), Level::Mixed);
        assert_eq!(Level::of(240 << 20, cache), Level::Dram);
    }

    #[test]
    fn an_unknown_cache_does_not_hide_a_row() {
        assert_eq!(Level::of(1, None), Level::Dram);
    }
}
