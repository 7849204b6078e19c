//! The run document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Device, Measurement, Missing};
use crate::pattern::{DeviceKind, Profile};

/// All measurements of one device, with its environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Form of this document; see [`super::SCHEMA_VERSION`].
    pub schema_version: String,
    /// What is measured and how; see [`super::SUITE_VERSION`].
    pub suite_version: String,
    /// The program that wrote it.
    pub program: Program,
    /// When the run started, UTC.
    pub started_at: String,
    /// When the last case ended, UTC; null while the run is under way.
    pub finished_at: Option<String>,
    /// Whether every case was tried; false while under way, after an interruption, and when
    /// cases were left out because the device was lost.
    pub complete: bool,
    /// How much was to be measured.
    pub profile: Profile,
    /// The machine.
    pub host: Host,
    /// What the user wanted noted.
    pub labels: BTreeMap<String, String>,
    /// Who was measured.
    pub device: Device,
    /// What the fractions refer to.
    pub peaks: Peaks,
    /// The ids of the cases to measure, in order; empty in documents before version 1.2.
    #[serde(default)]
    pub cases: Vec<String>,
    /// One row a case, in the order of `cases`; that of measurement, unless the run was completed later.
    pub measurements: Vec<Measurement>,
}

impl Run {
    /// Enters a row in its place: an earlier row of the same case gives way.
    pub fn enter(&mut self, row: Measurement) {
        self.peaks.note(&row);
        self.measurements.retain(|other| other.id != row.id);
        self.measurements.push(row);
        self.measurements.sort_by_key(|row| self.cases.iter().position(|id| *id == row.id));
    }
}

/// The program that wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it was built for, such as `x86_64-linux`.
    pub target: String,
    /// `release`, or `debug`: figures of a debug build say little about the host device.
    pub build: String,
}

impl Program {
    /// This program.
    pub fn this() -> Self {
        Self {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.into(),
        }
    }
}

/// The machine that the device is in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Its name in the network.
    pub hostname: Option<String>,
    /// Operating system and release.
    pub os: Option<String>,
    /// Version of the kernel.
    pub kernel: Option<String>,
    /// Processor.
    pub cpu: String,
    /// Logical processors that this program may use.
    pub cpus: u32,
    /// Main memory.
    pub memory_bytes: u64,
    /// Why fields above are null.
    pub missing: Missing,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Computed from what the device says of itself: 2 x memory clock x bus width / 8.
    DeviceAttributes,
    /// Measured in this run.
    Measured,
    /// Something that a newer program knows.
    #[serde(other)]
    Unknown,
}

/// One upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Its value, in the unit of the list that holds it.
    pub value: f64,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// What the fractions of a run refer to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Peaks {
    /// Memory bandwidth, 10^9 B/s.
    pub memory_gbps: Vec<Peak>,
    /// Arithmetic by pipe, 10^9 flops/s.
    pub compute_gflops: BTreeMap<String, Vec<Peak>>,
    /// Why a peak is absent.
    pub missing: Missing,
}

impl Peaks {
    /// What is known before anything is measured: two transfers a memory clock over the whole bus.
    pub fn theoretical(device: &Device) -> Self {
        let mut peaks = Self::default();
        match (device.memory.clock_mhz, device.memory.bus_width_bits) {
            (Some(mhz), Some(bits)) => {
                let gbps = 2.0 * mhz * f64::from(bits) / 8.0 / 1e3;
                peaks.memory_gbps.push(Peak { value: gbps, provenance: Provenance::DeviceAttributes });
            }
            _ => {
                let who = match device.kind {
                    DeviceKind::Host => "operating system",
                    DeviceKind::Cuda => "driver",
                };
                peaks.missing.insert("memory_gbps".into(), format!("the {who} does not tell the clock and width of the memory"));
            }
        }
        peaks
    }

    /// The theoretical memory peak that `fraction_of_peak` refers to, 10^9 B/s.
    pub fn memory_theoretical_gbps(&self) -> Option<f64> {
        self.memory_gbps.iter().find(|p| p.provenance == Provenance::DeviceAttributes).map(|p| p.value)
    }

    /// Enters a measured compute peak among those that later rows refer to.
    pub fn note(&mut self, row: &Measurement) {
        if row.pattern == "compute"
            && row.is_sound()
            && let (Some(pipe), Some(value)) = (&row.compute_pipe, row.achieved_gflops)
        {
            self.compute_gflops.entry(pipe.clone()).or_default().push(Peak { value, provenance: Provenance::Measured });
        }
    }

    /// The best measured peak of a pipe, 10^9 flops/s.
    pub fn compute_measured_gflops(&self, pipe: &str) -> Option<f64> {
        self.compute_gflops.get(pipe)?.iter().filter(|p| p.provenance == Provenance::Measured).map(|p| p.value).max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{Steady, row};
    use crate::record::Status;

    #[test]
    fn a_wrong_compute_peak_is_no_reference() {
        for (mismatches, known) in [(0, true), (1, false)] {
            let mut peaks = Peaks::default();
            let mut device = Steady { ns: 3e6, mismatches, failing: false };
            peaks.note(&row("compute/fma/f32", &mut device, &Peaks::default()));
            assert_eq!(peaks.compute_measured_gflops("fma/f32").is_some(), known);
        }
    }

    #[test]
    fn a_row_stands_in_the_order_of_the_cases_and_in_place_of_an_earlier_one() {
        let ids = ["stream/read/f32", "stream/write/f32", "stride/read/4"];
        let row = |id: &str, status| Measurement::without_figures(id, "stream", status, "as the test says".into());
        let mut run = Run {
            cases: ids.map(String::from).to_vec(),
            measurements: vec![row(ids[0], Status::Error), row(ids[2], Status::Ok)],
            ..crate::chart::testing::h200()
        };
        run.enter(row(ids[1], Status::Ok));
        run.enter(row(ids[0], Status::Ok));
        let rows: Vec<_> = run.measurements.iter().map(|row| (row.id.as_str(), row.status)).collect();
        assert_eq!(rows, ids.map(|id| (id, Status::Ok)));
    }
}
