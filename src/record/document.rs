//! The run document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Device, Measurement, Missing};
use crate::pattern::{CacheState, Data, DeviceKind, Level, Profile};

/// All measurements of one device, with its environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Form of this document, `major.minor.patch`.
    pub schema_version: String,
    /// What is measured and how: figures of two suite versions are not the same measurement.
    pub suite_version: String,
    /// The program that wrote it.
    pub program: Program,
    /// When the run started, UTC (RFC 3339).
    pub started_at: String,
    /// When the last case ended, UTC (RFC 3339); null while the run is under way.
    pub finished_at: Option<String>,
    /// Whether every case was tried; false while under way, after an interruption, and when
    /// cases were left out because the device was lost.
    pub complete: bool,
    /// How much was to be measured.
    pub profile: Profile,
    /// What the inputs hold while they are timed; random before schema 1.2.0.
    #[serde(default)]
    pub data: Data,
    /// What the caches hold when an execution begins; hot before schema 1.4.0.
    #[serde(default)]
    pub cache: CacheState,
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
    /// Gives the nulls of a document that is older than their fields a reason.
    pub(super) fn explain_absent(&mut self) {
        self.device.explain_absent();
        self.measurements.iter_mut().for_each(Measurement::explain_absent);
    }

    /// Enters a row in its place: an earlier row of the same case gives way.
    pub fn enter(&mut self, row: Measurement) {
        self.peaks.note(&row);
        self.measurements.retain(|other| other.id != row.id);
        self.measurements.push(row);
        self.measurements.sort_by_key(|row| self.cases.iter().position(|id| *id == row.id));
    }
}

/// The program that wrote a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Main memory, in bytes.
    pub memory_bytes: u64,
    /// Why fields above are null.
    pub missing: Missing,
}

/// Where a figure comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Computed from what the device says of itself: 2 x memory clock x bus width / 8.
    DeviceAttributes,
    /// Of the card's data sheet, by the catalog.
    Datasheet,
    /// Measured in this run.
    Measured,
    /// Something that a newer program knows.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// One upper bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Peak {
    /// Its value, in the unit of the list that holds it: 10^9 B/s of memory, 10^9 flops/s of arithmetic.
    pub value: f64,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// What the fractions of a run refer to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Peaks {
    /// Memory bandwidth, 10^9 B/s: by the device's attributes, by the data sheet, and the best sound
    /// `stream` row of the run at level `dram`, of random data. Fractions refer to the first.
    pub memory_gbps: Vec<Peak>,
    /// The link to the processor in one direction, 10^9 B/s: its generation and lanes by the device's attributes.
    pub link_gbps: Vec<Peak>,
    /// Arithmetic by pipe, 10^9 flops/s.
    pub compute_gflops: BTreeMap<String, Vec<Peak>>,
    /// Why a peak is absent: the memory's by attributes under `memory_gbps`, by data sheet under
    /// `memory_gbps.datasheet`, the link's under `link_gbps`.
    pub missing: Missing,
}

/// What a PCIe lane carries by generation, 10^9 B/s in one direction: 2.5 and 5 GT/s with 8 of 10 bits
/// for data, 8, 16 and 32 GT/s with 128 of 130, 64 GT/s with 242 of 256 bytes (PCI Express Base
/// Specification 6.0, sections 4.2.1 to 4.2.3).
const LANE_GBPS: [f64; 6] = [0.25, 0.5, 0.985, 1.969, 3.938, 7.563];

/// What the link carries, 10^9 B/s, at the generation and width that it has under load.
fn link_by_attributes(device: &Device) -> Option<f64> {
    let pcie = &device.pcie;
    let generation = pcie.generation_under_load.or(pcie.generation_max)?;
    let lanes = pcie.width_under_load.or(pcie.width_max)?;
    Some(LANE_GBPS.get(generation.checked_sub(1)? as usize)? * f64::from(lanes))
}

/// How far two theoretical peaks of one memory may lie apart. Data sheets round: the 4.8 TB/s of an
/// H200 are 4814 GB/s by its attributes.
const PEAKS_APART: f64 = 0.03;

/// Two transfers a memory clock over the whole bus, 10^9 B/s, or why that cannot be told.
fn by_attributes(device: &Device) -> Result<f64, String> {
    if device.virtualization.mig_profile.as_deref().is_some_and(|profile| profile != "none") {
        return Err("the driver tells clock and width of the whole card's memory, and this is a slice of it".into());
    }
    match (device.memory.clock_mhz, device.memory.bus_width_bits) {
        (Some(mhz), Some(bits)) => Ok(2.0 * mhz * f64::from(bits) / 8.0 / 1e3),
        _ => {
            let who = match device.kind {
                DeviceKind::Host => "operating system",
                DeviceKind::Cuda => "driver",
            };
            Err(format!("the {who} does not tell the clock and width of the memory"))
        }
    }
}

impl Peaks {
    /// What is known before anything is measured: two transfers a memory clock over the whole bus,
    /// and the bandwidth of the data sheet (10^9 B/s), if the card is known.
    pub fn known_beforehand(device: &Device, datasheet_gbps: Option<f64>) -> Self {
        let mut peaks = Self::default();
        match by_attributes(device) {
            Ok(value) => peaks.memory_gbps.push(Peak { value, provenance: Provenance::DeviceAttributes }),
            Err(reason) => {
                peaks.missing.insert("memory_gbps".into(), reason);
            }
        }
        match datasheet_gbps {
            Some(value) => peaks.memory_gbps.push(Peak { value, provenance: Provenance::Datasheet }),
            None => {
                peaks.missing.insert("memory_gbps.datasheet".into(), "the catalog does not know this device".into());
            }
        }
        match link_by_attributes(device) {
            Some(value) => peaks.link_gbps.push(Peak { value, provenance: Provenance::DeviceAttributes }),
            None => {
                peaks.missing.insert("link_gbps".into(), "generation and lanes of a link to the processor are not known".into());
            }
        }
        peaks
    }

    /// What the link to the processor carries in one direction, 10^9 B/s.
    pub fn link_theoretical_gbps(&self) -> Option<f64> {
        let attributes = self.link_gbps.iter().find(|peak| peak.provenance == Provenance::DeviceAttributes);
        attributes.map(|peak| peak.value).filter(|gbps| gbps.is_finite() && *gbps > 0.0)
    }

    /// The theoretical memory peak that `fraction_of_peak` refers to, 10^9 B/s.
    pub fn memory_theoretical_gbps(&self) -> Option<f64> {
        self.memory(Provenance::DeviceAttributes)
    }

    /// What the data sheet promises of the memory, 10^9 B/s.
    pub fn memory_datasheet_gbps(&self) -> Option<f64> {
        self.memory(Provenance::Datasheet)
    }

    /// The most that the memory can carry, 10^9 B/s: by the device's attributes, or else by the data
    /// sheet. A value that is no bandwidth bounds nothing.
    pub fn memory_bound_gbps(&self) -> Option<f64> {
        let theoretical = [self.memory_theoretical_gbps(), self.memory_datasheet_gbps()];
        theoretical.into_iter().flatten().find(|gbps| gbps.is_finite() && *gbps > 0.0)
    }

    fn memory(&self, provenance: Provenance) -> Option<f64> {
        self.memory_gbps.iter().find(|peak| peak.provenance == provenance).map(|peak| peak.value)
    }

    /// The theoretical peaks by attributes and by data sheet, when they differ by more than
    /// 3 %: one of them is wrong, or means another card.
    pub fn memory_disagreement_gbps(&self) -> Option<(f64, f64)> {
        let (attributes, datasheet) = (self.memory_theoretical_gbps()?, self.memory_datasheet_gbps()?);
        ((attributes / datasheet - 1.0).abs() > PEAKS_APART).then_some((attributes, datasheet))
    }

    /// Enters what a sound row measured of a peak: of arithmetic, to which later rows refer,
    /// or of the memory, if it is the best so far.
    pub fn note(&mut self, row: &Measurement) {
        if !row.is_sound() {
            return;
        }
        if row.pattern == "compute"
            && let (Some(pipe), Some(value)) = (&row.compute_pipe, row.achieved_gflops)
        {
            self.compute_gflops.entry(pipe.clone()).or_default().push(Peak { value, provenance: Provenance::Measured });
        }
        // Memory that compresses may give zeros faster than it can carry them.
        let random = row.parameters.get("data").is_some_and(|data| *data == Data::Random.to_string());
        if row.pattern == "stream"
            && row.level == Some(Level::Dram)
            && random
            && let Some(gbps) = row.achieved_gbps
        {
            match self.memory_gbps.iter_mut().find(|peak| peak.provenance == Provenance::Measured) {
                Some(peak) => peak.value = peak.value.max(gbps),
                None => self.memory_gbps.push(Peak { value: gbps, provenance: Provenance::Measured }),
            }
        }
    }

    /// The best measured peak of a pipe, 10^9 flops/s.
    pub fn compute_measured_gflops(&self, pipe: &str) -> Option<f64> {
        let measured = self.compute_gflops.get(pipe)?.iter().filter(|peak| peak.provenance == Provenance::Measured).map(|peak| peak.value);
        measured.filter(|value| value.is_finite() && *value > 0.0).max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::{h200, host};
    use crate::measure::testing::{Steady, row};
    use crate::record::Status;

    fn h200_device() -> Device {
        let mut device = h200().device;
        (device.memory.clock_mhz, device.memory.bus_width_bits) = (Some(3201.0), Some(6016));
        device
    }

    #[test]
    fn the_link_is_told_by_its_generation_and_lanes_under_load_or_else_at_most() {
        let link = |under_load: Option<u32>, most: Option<u32>| {
            let mut device = h200_device();
            (device.pcie.generation_under_load, device.pcie.generation_max) = (under_load, most);
            (device.pcie.width_under_load, device.pcie.width_max) = (Some(16), Some(16));
            Peaks::known_beforehand(&device, None).link_theoretical_gbps()
        };
        assert_eq!([link(Some(3), Some(5)), link(None, Some(5)), link(Some(1), None)], [Some(15.76), Some(63.008), Some(4.0)]);
        assert_eq!([link(None, None), link(Some(0), None), link(Some(7), None)], [None; 3]);
    }

    #[test]
    fn what_the_memory_can_carry_is_told_by_attributes_or_else_by_the_data_sheet() {
        let bound = |peaks: &[(f64, Provenance)]| {
            let memory_gbps = peaks.iter().map(|&(value, provenance)| Peak { value, provenance }).collect();
            Peaks { memory_gbps, ..Peaks::default() }.memory_bound_gbps()
        };
        let datasheet = (4800.0, Provenance::Datasheet);
        assert_eq!(bound(&[datasheet, (4814.3, Provenance::DeviceAttributes)]), Some(4814.3));
        assert_eq!(bound(&[datasheet, (0.0, Provenance::DeviceAttributes)]), Some(4800.0));
        assert_eq!(bound(&[(4300.0, Provenance::Measured)]), None);
    }

    #[test]
    fn each_peak_says_where_it_comes_from_and_fractions_refer_to_the_attributes() {
        let mut peaks = Peaks::known_beforehand(&h200_device(), Some(4800.0));
        let steady = |ns, mismatches| Steady { ns, mismatches, failing: false, ..Steady::default() };
        // The best sound row of a stream beyond the cache, on random data.
        for (id, ns, mismatches) in [
            ("stream/copy/f32@4026531840", 2e6, 0),
            ("stream/copy/f32@4026531840", 3e6, 0),
            ("stream/copy/f32@4026531840", 1e6, 1),
            ("stream/copy/f32@4096", 1.0, 0),
            ("stride/read/4", 1e6, 0),
        ] {
            peaks.note(&row(id, &mut steady(ns, mismatches), &Peaks::default()));
        }
        let mut zeros = row("stream/copy/f32@4026531840", &mut steady(1e6, 0), &Peaks::default());
        zeros.parameters.insert("data".into(), "zero".into());
        peaks.note(&zeros);
        let json = serde_json::to_value(&peaks.memory_gbps).unwrap();
        let provenances: Vec<_> = json.as_array().unwrap().iter().map(|peak| peak["provenance"].as_str().unwrap()).collect();
        assert_eq!(provenances, ["device-attributes", "datasheet", "measured"]);
        assert_eq!(peaks.memory_theoretical_gbps(), Some(4814.304));
        assert_eq!(peaks.memory_gbps[2].value, 2.0 * 4_026_531_840.0 / 2e6);
    }

    #[test]
    fn the_drivers_own_copy_is_never_the_measured_peak_of_the_memory() {
        let mut peaks = Peaks::default();
        peaks.note(&row("copy_engine/d2d", &mut Steady { ns: 3e6, ..Steady::default() }, &peaks.clone()));
        assert_eq!(peaks.memory_gbps, []);
    }

    #[test]
    fn peaks_that_differ_by_more_than_3_percent_disagree() {
        for (datasheet, disagree) in [(4800.0, false), (4680.0, false), (4670.0, true), (4963.0, false), (4964.0, true)] {
            let peaks = Peaks::known_beforehand(&h200_device(), Some(datasheet));
            assert_eq!(peaks.memory_disagreement_gbps().is_some(), disagree, "{datasheet}");
        }
        assert_eq!(Peaks::known_beforehand(&h200_device(), None).memory_disagreement_gbps(), None);
    }

    #[test]
    fn the_peak_of_a_slice_is_not_that_of_the_card() {
        let mut device = h200_device();
        device.virtualization.mig_profile = Some("1g.18gb".into());
        let peaks = Peaks::known_beforehand(&device, None);
        assert_eq!(peaks.memory_theoretical_gbps(), None);
        assert!(peaks.missing["memory_gbps"].contains("slice"), "{:?}", peaks.missing);
        assert!(peaks.missing.contains_key("memory_gbps.datasheet"));
    }

    #[test]
    fn a_provenance_of_a_newer_program_is_unknown_and_no_reference() {
        let peak: Peak = serde_json::from_str(r#"{"value": 5000.0, "provenance": "oracle"}"#).unwrap();
        assert_eq!(peak.provenance, Provenance::Unknown);
        assert_eq!(Peaks { memory_gbps: vec![peak], ..Peaks::default() }.memory_theoretical_gbps(), None);
        assert!(Peaks::known_beforehand(&host().device, None).missing["memory_gbps"].contains("operating system"));
    }

    #[test]
    fn a_wrong_compute_peak_is_no_reference() {
        for (mismatches, known) in [(0, true), (1, false)] {
            let mut peaks = Peaks::default();
            let mut device = Steady { ns: 3e6, mismatches, failing: false, ..Steady::default() };
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
