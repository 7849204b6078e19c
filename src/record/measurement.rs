//! One row: all that one case gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::device::explain_absent;
use super::{Claim, Contention, Missing, Soak, Telemetry, Tuning};
use crate::pattern::{Bytes, Level, Parameters};

/// Whether a case gave figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Measured.
    Ok,
    /// The device has nothing to run it with.
    Unsupported,
    /// It was left out on purpose.
    Skipped,
    /// It failed.
    Error,
    /// It did not end in time.
    Timeout,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What to think of a row's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Verified and physically possible.
    Ok,
    /// The device returned wrong data: the figure is worth nothing.
    Unverified,
    /// More bytes a second than the memory bus can carry, or the link in rows that copy over it.
    AbovePeak,
    /// The last cache served it, or a good part of it, though it claims the memory.
    CacheResident,
    /// More bytes a second than the memory bus can carry, of data that a memory system can compress.
    Compressed,
    /// The driver put the data into the main memory of the machine, though the card was asked for them.
    Spilled,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What a reader should know before trusting a row's figures to the last percent. A marked
/// row is as sound as another; a note in it has the number behind each mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// The times are noisy, or a clock moved during the samples.
    Unstable,
    /// The driver or the hardware held the clocks back.
    Throttled,
    /// Another process was on the card.
    Shared,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// The times of one execution over all samples, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Time {
    /// The headline, ns.
    pub median: f64,
    /// Lower quartile, ns.
    pub p25: f64,
    /// Upper quartile, ns.
    pub p75: f64,
    /// Fastest sample, ns.
    pub min: f64,
    /// Slowest sample, ns.
    pub max: f64,
    /// Half-width of the 95 % bootstrap interval of the median, over the median; a fraction.
    pub noise_fraction: f64,
    /// How many samples.
    pub n: u32,
    /// Executions that each sample averages over.
    pub executions_per_sample: u32,
    /// Which rule ended the sampling: `noise`, `noise_stable`, `time`, or `count`.
    pub stopped_by: String,
    /// The device's time over this machine's as a fraction, the median of the samples: at most 1 where both clocks
    /// are right. The rest is the cost of starting and ending a sample.
    #[serde(default)]
    pub host_fraction: Option<f64>,
}

/// One case's row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// The case: pattern, parts, and `@size` where the size is not the default.
    pub id: String,
    /// Its pattern.
    pub pattern: String,
    /// What it exercises; null when the case could not be planned.
    pub level: Option<Level>,
    /// What fixes the case.
    pub parameters: Parameters,
    /// How the case was written for this device.
    pub variant: Map<String, Value>,
    /// Whether there are figures.
    pub status: Status,
    /// Why there are none.
    pub reason: Option<String>,
    /// Size of the last cache over that of all buffers, a fraction: below 1, the most that it can have served; above, all fits.
    pub cache_fraction: Option<f64>,
    /// Size of all buffers, in bytes.
    #[serde(default)]
    pub footprint_bytes: Option<u64>,
    /// By how much the free memory of the device fell when the buffers were allocated, in bytes.
    #[serde(default)]
    pub memory_taken_bytes: Option<u64>,
    /// What a reader must know beside the figures.
    pub notes: Vec<String>,
    /// Bytes of one execution.
    pub bytes: Option<Bytes>,
    /// Floating-point operations of one execution; a fused multiply-add counts two.
    pub flops: Option<u64>,
    /// The pipe that they run on.
    pub compute_pipe: Option<String>,
    /// Times of one execution.
    pub time_ns: Option<Time>,
    /// Every sample: the time of one execution, ns.
    pub samples_ns: Vec<f64>,
    /// Requested bytes over the median, 10^9 B/s.
    pub achieved_gbps: Option<f64>,
    /// Compulsory bytes over the median, 10^9 B/s.
    pub compulsory_gbps: Option<f64>,
    /// Achieved over the theoretical memory peak, a fraction that is never clamped; null where the level is not dram, or
    /// a latency is measured.
    pub fraction_of_peak: Option<f64>,
    /// In `transfer` rows: achieved over what the link to the processor carries in as many directions as are busy, a
    /// fraction that is never clamped.
    #[serde(default)]
    pub fraction_of_link: Option<f64>,
    /// In rows that measure a latency: the time of one access that waits for the one before it, ns. Their bandwidth is
    /// what such accesses, or those beside them, happen to move, and no measure of the memory's.
    #[serde(default)]
    pub latency_ns: Option<f64>,
    /// The same in cycles of the multiprocessors, at `sm_clock_mhz`.
    #[serde(default)]
    pub latency_cycles: Option<f64>,
    /// Flops over the median, 10^9 flops/s.
    pub achieved_gflops: Option<f64>,
    /// Achieved over the measured peak of the pipe, a fraction that is never clamped; 0 without flops.
    pub compute_utilization: Option<f64>,
    /// In `compute` rows: what all multiprocessors can do at the clock of the samples, 10^9 flops/s.
    #[serde(default)]
    pub theoretical_gflops: Option<f64>,
    /// In `compute` rows: achieved over theoretical, a fraction.
    #[serde(default)]
    pub fraction_of_theoretical: Option<f64>,
    /// Median over the samples of the multiprocessors' mean clock, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// The other ways in which the case can be written; null for cases that are written in one way.
    #[serde(default)]
    pub tuning: Option<Tuning>,
    /// Clocks, power, temperatures and the like during the samples.
    pub telemetry: Option<Telemetry>,
    /// The same case on all devices of the run at once; null where they were not measured together.
    #[serde(default)]
    pub contention: Option<Contention>,
    /// The same case without a pause for a long time; null where nobody asked for that. The row's own figures are those
    /// of its samples.
    #[serde(default)]
    pub soak: Option<Soak>,
    /// Whether every result was right.
    pub verified: Option<bool>,
    /// Wrong results, when any.
    pub mismatches: Option<u64>,
    /// The lowest wrong index, when any.
    pub first_bad_index: Option<u64>,
    /// What to think of the figures; null when there are none.
    pub verdict: Option<Verdict>,
    /// What else marks the row; each with a note that says why.
    #[serde(default)]
    pub marks: Vec<Mark>,
    /// The time that the case took on the wall, s: preparation, warm-up, samples, soak and verification.
    pub wall_s: Option<f64>,
    /// Why fields above are null, in rows whose status is `ok`; in others `reason` is why.
    pub missing: Missing,
}

impl Measurement {
    /// A row without figures.
    pub fn without_figures(id: &str, pattern: &str, status: Status, reason: String) -> Self {
        Self {
            id: id.to_owned(),
            pattern: pattern.to_owned(),
            level: None,
            parameters: Parameters::new(),
            variant: Map::new(),
            status,
            reason: Some(reason),
            cache_fraction: None,
            footprint_bytes: None,
            memory_taken_bytes: None,
            notes: Vec::new(),
            bytes: None,
            flops: None,
            compute_pipe: None,
            time_ns: None,
            samples_ns: Vec::new(),
            achieved_gbps: None,
            compulsory_gbps: None,
            fraction_of_peak: None,
            fraction_of_link: None,
            latency_ns: None,
            latency_cycles: None,
            achieved_gflops: None,
            compute_utilization: None,
            theoretical_gflops: None,
            fraction_of_theoretical: None,
            sm_clock_mhz: None,
            tuning: None,
            telemetry: None,
            contention: None,
            soak: None,
            verified: None,
            mismatches: None,
            first_bad_index: None,
            verdict: None,
            marks: Vec::new(),
            wall_s: None,
            missing: Missing::new(),
        }
    }

    /// Gives the nulls of a document that is older than their fields a reason.
    pub(super) fn explain_absent(&mut self) {
        if self.status != Status::Ok {
            return;
        }
        explain_absent(&mut self.missing, "fraction_of_link", self.fraction_of_link.as_ref());
        explain_absent(&mut self.missing, "theoretical_gflops", self.theoretical_gflops.as_ref());
        explain_absent(&mut self.missing, "fraction_of_theoretical", self.fraction_of_theoretical.as_ref());
        explain_absent(&mut self.missing, "footprint_bytes", self.footprint_bytes.as_ref());
        explain_absent(&mut self.missing, "memory_taken_bytes", self.memory_taken_bytes.as_ref());
        explain_absent(&mut self.missing, "tuning", self.tuning.as_ref());
        explain_absent(&mut self.missing, "latency_ns", self.latency_ns.as_ref());
        explain_absent(&mut self.missing, "latency_cycles", self.latency_cycles.as_ref());
        explain_absent(&mut self.missing, "contention", self.contention.as_ref());
        explain_absent(&mut self.missing, "soak", self.soak.as_ref());
        if let Some(time) = &self.time_ns {
            explain_absent(&mut self.missing, "time_ns.host_fraction", time.host_fraction.as_ref());
        }
    }

    /// Bandwidth of the simplest way in which the case can be written, over the row's own.
    pub fn naive_fraction(&self) -> Option<f64> {
        Some(self.tuning.as_ref()?.naive_gbps? / self.achieved_gbps?)
    }

    /// Whether its figures may be drawn or ranked: judged `ok`, and nothing in the row says otherwise.
    pub fn is_sound(&self) -> bool {
        self.status == Status::Ok
            && self.verdict == Some(Verdict::Ok)
            && self.verified == Some(true)
            && self.mismatches.unwrap_or(0) == 0
            && self.achieved_gbps.is_some()
            && self.time_ns.is_some()
            && Claim::from(self).adds_up()
    }
}
