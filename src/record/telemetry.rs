//! What the sensors of a device said while a case was sampled.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Missing;

/// Lowest, middle and highest of several readings of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Lowest, MHz.
    pub min: f64,
    /// Median, MHz.
    pub median: f64,
    /// Highest, MHz.
    pub max: f64,
}

/// How a power reading was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowerSource {
    /// At the moment of the reading.
    Instant,
    /// As the driver averages it, over the last second on most cards since Ampere: short samples
    /// then show their warm-up, and the case before, too.
    Average,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// What an energy was computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// The card's energy counter, between the first and the last step that was seen of it.
    Counter,
    /// The mean of the power readings.
    Power,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// A summary of all readings from the first sample of a case to its last.
///
/// All of it is the whole board's: power and energy are those of the card with its
/// processors, fans and idle draw, not of the memory alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Telemetry {
    /// How many readings there were.
    pub readings: u32,
    /// Clock of the multiprocessors as the driver tells it, MHz. Beside it, the row's own
    /// `sm_clock_mhz` is the mean over the work itself.
    pub sm_clock_mhz: Option<Spread>,
    /// Clock of the memory as the driver tells it, MHz.
    pub memory_clock_mhz: Option<Spread>,
    /// The performance states that occurred, ascending: 0 is P0, the fastest.
    pub performance_states: Option<Vec<u32>>,
    /// Why the clocks were held below their highest: NVML's clock-event reasons by name, each
    /// with the number of readings in which it occurred.
    pub throttle_reasons: Option<BTreeMap<String, u32>>,
    /// Highest temperature of the chip, °C.
    pub temperature_gpu_max_c: Option<f64>,
    /// Highest temperature of the memory, °C.
    pub temperature_memory_max_c: Option<f64>,
    /// Mean of the power readings, W.
    pub power_mean_w: Option<f64>,
    /// Highest power reading, W.
    pub power_max_w: Option<f64>,
    /// How power was read.
    pub power_source: Option<PowerSource>,
    /// Energy over the time of all samples, J: mean power times that time.
    pub energy_j: Option<f64>,
    /// What gave the mean power for it.
    pub energy_source: Option<EnergySource>,
    /// By which fraction of itself an energy from the counter may be wrong, because the counter
    /// moves in steps and a step is seen only at the next reading.
    pub energy_uncertainty_fraction: Option<f64>,
    /// Energy over requested bytes, J for 10^9 bytes: `energy_j` / (requested bytes of all samples
    /// / 10^9). The whole board's energy, and requested bytes: a stride that makes the memory move
    /// more than was asked for costs more here.
    pub joules_per_gb: Option<f64>,
    /// The same for each bit, pJ: `joules_per_gb` x 10^12 / (8 x 10^9) = x 125.
    pub picojoules_per_bit: Option<f64>,
    /// Highest generation of the link to the processor that was read.
    pub pcie_generation: Option<u32>,
    /// Most lanes of that link that were read.
    pub pcie_width: Option<u32>,
    /// The most other processes that were on the card at once.
    pub other_processes: Option<u32>,
    /// Why fields above are null.
    pub missing: Missing,
}

#[cfg(test)]
mod tests {
    use super::super::{Mark, Run};
    use super::*;
    use crate::chart::testing::h200;

    #[test]
    fn a_document_from_before_telemetry_and_marks_still_loads() {
        let mut json = serde_json::to_value(h200()).unwrap();
        for field in ["power_limits", "other_processes"] {
            json["device"].as_object_mut().unwrap().remove(field);
        }
        json["device"]["virtualization"].as_object_mut().unwrap().remove("mig_enabled");
        for row in json["measurements"].as_array_mut().unwrap() {
            row.as_object_mut().unwrap().remove("marks");
        }
        let run: Run = serde_json::from_value(json).unwrap();
        assert!(run.measurements.iter().all(|row| row.marks.is_empty() && row.telemetry.is_none()));
        assert!(run.device.power_limits.missing["enforced_w"].contains("did not read"));
    }

    #[test]
    fn words_of_a_newer_program_are_unknown_and_no_reason_to_refuse_a_document() {
        assert_eq!(serde_json::from_str::<PowerSource>("\"psychic\"").unwrap(), PowerSource::Unknown);
        assert_eq!(serde_json::from_str::<EnergySource>("\"psychic\"").unwrap(), EnergySource::Unknown);
        assert_eq!(serde_json::from_str::<Vec<Mark>>("[\"haunted\", \"shared\"]").unwrap(), [Mark::Unknown, Mark::Shared]);
    }
}
