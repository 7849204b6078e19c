//! How a case went while a device worked at it for long.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EnergySource, Missing};

/// One case without a pause for a long time, after its samples: does the card hold its bandwidth when it is hot?
/// Times are the device's own; power and energy are those of the whole board.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Soak {
    /// What was asked for, s.
    pub asked_s: u64,
    /// For how long the device worked, s: until the piece of work under way at that time had ended.
    pub run_s: f64,
    /// Requested bytes over their time in the first ten seconds, 10^9 B/s.
    pub first_10_s_gbps: f64,
    /// The same in the last ten seconds, 10^9 B/s.
    pub last_10_s_gbps: f64,
    /// The last ten seconds over the first, a fraction that is never clamped: 1 where the bandwidth holds.
    pub last_over_first_fraction: Option<f64>,
    /// Energy over requested bytes of all of it, J for 10^9 bytes.
    pub joules_per_gb: Option<f64>,
    /// The same for each bit, pJ: x 125.
    pub picojoules_per_bit: Option<f64>,
    /// What gave the energy.
    pub energy_source: Option<EnergySource>,
    /// Mean of the power readings, W.
    pub power_mean_w: Option<f64>,
    /// Highest power reading, W.
    pub power_max_w: Option<f64>,
    /// Highest temperature of the chip, °C.
    pub temperature_gpu_max_c: Option<f64>,
    /// Highest temperature of the memory, °C.
    pub temperature_memory_max_c: Option<f64>,
    /// The share of the readings in which a limit held the clocks back, a fraction.
    pub throttled_fraction: Option<f64>,
    /// NVML's clock-event reasons by name, each with the share of the readings in which it occurred, a fraction.
    /// Some of them, such as `GpuIdle`, are no limit.
    pub throttle_reasons: Option<BTreeMap<String, f64>>,
    /// How it went, in stretches of equal length, 120 at most.
    pub intervals: Vec<SoakInterval>,
    /// Why fields above are null; of the intervals once for all, such as `intervals.power_w`.
    pub missing: Missing,
}

/// A stretch of a soak.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakInterval {
    /// When it began, s since the soak began.
    pub start_s: f64,
    /// Requested bytes over their time, 10^9 B/s.
    pub achieved_gbps: f64,
    /// Median of the multiprocessors' clock as the work itself saw it, MHz.
    pub sm_clock_mhz: Option<f64>,
    /// Median of the memory's clock as the driver tells it, MHz.
    pub memory_clock_mhz: Option<f64>,
    /// Highest temperature of the chip, °C.
    pub temperature_gpu_c: Option<f64>,
    /// Highest temperature of the memory, °C.
    pub temperature_memory_c: Option<f64>,
    /// Mean power, W.
    pub power_w: Option<f64>,
    /// The share of its readings in which a limit held the clocks back, a fraction.
    pub throttled_fraction: Option<f64>,
}
