//! Bandwidths that others measured and published.
//!
//! Taken over are reads, writes, copies and triads whose method is told and whose
//! buffers are known to be four times the last cache or of unknown size. Left out are
//! figures above the data-sheet peak, of a part of a card, and those whose device or
//! method is in doubt.

use std::cmp::Reverse;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::pattern::StreamOperation;

static PUBLISHED: LazyLock<Vec<Published>> =
    LazyLock::new(|| serde_json::from_str(include_str!("published.json")).expect("a test reads the same compiled-in text"));

/// One figure of others.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Id of the card in the catalog.
    pub card: String,
    /// What was done with the memory.
    #[serde(deserialize_with = "operation")]
    pub operation: StreamOperation,
    /// Bytes read and written, 10^9 a second.
    pub gbps: f64,
    /// Size of one array, when it is told.
    pub array_bytes: Option<u64>,
    /// What moved the bytes.
    pub by: Worker,
    /// How it was measured: program, element type, sizes, and what had to be assumed.
    pub method: String,
    /// A page, or `owner/repository:file@commit`.
    pub source: String,
    /// Who measured.
    pub origin: Origin,
    /// How far the source can be trusted to say what it seems to say.
    pub confidence: Confidence,
}

/// What moved the bytes. The order is that of [`chosen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Worker {
    /// A kernel, as in this program.
    Kernel,
    /// The copy that the driver offers.
    Driver,
}

/// Who measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Neither the maker of the card nor this program.
    ThirdParty,
    /// The maker of the card.
    VendorMeasured,
}

/// How far a source can be trusted. The order is that of [`chosen`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Unit and method are told, and the card but perhaps for its form factor or memory
    /// variant, which the method then says to be assumed.
    Good,
    /// More than that had to be inferred.
    Fair,
}

impl Published {
    /// The source without file and commit, such as `RRZE-HPC/gpu-benches`.
    pub fn source_name(&self) -> &str {
        let page = self.source.strip_prefix("https://github.com/").unwrap_or(&self.source);
        page.split([':', '@']).next().unwrap_or(page)
    }
}

/// The operations that others publish.
pub const OPERATIONS: [StreamOperation; 4] = [StreamOperation::Read, StreamOperation::Write, StreamOperation::Copy, StreamOperation::Triad];

/// Every figure, by card and operation.
pub fn published() -> &'static [Published] {
    &PUBLISHED
}

/// The one figure that stands for a card where only one can be shown: made by a kernel
/// before the driver's copy, of good confidence before fair, then with the larger array
/// (one of unknown size counts as smallest), then the lower figure.
pub fn chosen(card: &str, operation: StreamOperation) -> Option<&'static Published> {
    choose(PUBLISHED.iter().filter(|figure| figure.card == card && figure.operation == operation))
}

fn choose<'a>(figures: impl Iterator<Item = &'a Published>) -> Option<&'a Published> {
    let before = |figure: &Published| (figure.by, figure.confidence, Reverse(figure.array_bytes));
    figures.min_by(|a, b| before(a).cmp(&before(b)).then(a.gbps.total_cmp(&b.gbps)))
}

fn operation<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<StreamOperation, D::Error> {
    let name = String::deserialize(deserializer)?;
    let known = OPERATIONS.into_iter().find(|operation| operation.name() == name);
    known.ok_or_else(|| serde::de::Error::custom(format!("'{name}' is no operation that is compared")))
}

#[cfg(test)]
mod tests {
    use super::super::card;
    use super::*;

    #[test]
    fn figures_are_of_known_cards_below_the_data_sheet_peak_and_have_method_and_source() {
        assert!(published().len() > 100);
        for figure in published() {
            let card = card(&figure.card).unwrap_or_else(|| panic!("{} is not in the catalog", figure.card));
            assert!(figure.gbps > 0.0 && figure.gbps <= card.memory.bandwidth_gbps, "{figure:?}");
            assert!(figure.method.len() > 10 && figure.source.contains('/'), "{figure:?}");
        }
    }

    #[test]
    fn arrays_of_known_size_exceed_the_last_cache_four_times() {
        for figure in published() {
            let card = card(&figure.card).unwrap();
            let cache_mib = card.l2_mib.unwrap_or(0.0).max(card.last_level_cache_mib.unwrap_or(0.0));
            let arrays = match figure.operation {
                StreamOperation::Read | StreamOperation::Write => 1.0,
                StreamOperation::Copy => 2.0,
                StreamOperation::Triad => 3.0,
                other => panic!("{other:?} is not published"),
            };
            if let Some(bytes) = figure.array_bytes {
                assert!(bytes as f64 * arrays >= 4.0 * cache_mib * 1024.0 * 1024.0, "{figure:?}");
            }
        }
    }

    #[test]
    fn no_figure_stands_twice() {
        for (n, figure) in published().iter().enumerate() {
            assert!(!published()[n + 1..].contains(figure), "{figure:?}");
        }
    }

    #[test]
    fn a_source_is_named_without_file_and_commit() {
        let named = |source: &str| Published { source: source.into(), ..published()[0].clone() }.source_name().to_owned();
        assert_eq!(named("RRZE-HPC/gpu-benches:gpu-stream/a40.txt@1038c5d"), "RRZE-HPC/gpu-benches");
        assert_eq!(named("owner/name@1f27767"), "owner/name");
        assert_eq!(named("https://github.com/NVIDIA/nccl/issues/1264"), "NVIDIA/nccl/issues/1264");
    }

    #[test]
    fn a_kernel_comes_before_the_drivers_copy_then_confidence_then_size_then_the_lower_figure() {
        let base = Published { by: Worker::Kernel, confidence: Confidence::Good, array_bytes: Some(1 << 30), ..published()[0].clone() };
        let best = Published { gbps: 700.0, ..base.clone() };
        let worse = [
            Published { gbps: 701.0, ..best.clone() },
            Published { array_bytes: Some(1 << 28), ..best.clone() },
            Published { array_bytes: None, ..best.clone() },
            Published { confidence: Confidence::Fair, array_bytes: Some(1 << 33), ..best.clone() },
            Published { by: Worker::Driver, array_bytes: Some(1 << 33), ..best.clone() },
        ];
        for other in &worse {
            assert_eq!(choose([other, &best].into_iter()), Some(&best), "{other:?}");
            assert_eq!(choose([&best, other].into_iter()), Some(&best), "{other:?}");
        }
        let fair_kernel = Published { confidence: Confidence::Fair, ..best.clone() };
        let good_driver = Published { by: Worker::Driver, ..best };
        assert_eq!(choose([&good_driver, &fair_kernel].into_iter()), Some(&fair_kernel));
        assert_eq!(choose(std::iter::empty()), None);
    }

    #[test]
    fn the_rule_picks_what_it_says_from_the_catalog() {
        let figure = chosen("a100-80gb-sxm4", StreamOperation::Read).unwrap();
        assert_eq!((figure.gbps, figure.array_bytes), (1776.0, Some(2 << 30)));
        assert_eq!(chosen("rtx-4090", StreamOperation::Copy).unwrap().by, Worker::Driver);
        assert_eq!(chosen("rtx-a6000", StreamOperation::Copy), None);
    }
}
