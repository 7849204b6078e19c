//! Measured cards beside cards that others published figures of.

use crate::catalog::{self, Card, MemoryFamily, OPERATIONS, Origin, Published};
use crate::measure::statistics::median;
use crate::pattern::{Data, StreamOperation};
use crate::record::Run;

use super::words;

/// What cards are shown beside measured ones: of each kind of memory the usual
/// data-centre, workstation and desktop cards.
const REFERENCES: [&str; 6] = ["a100-80gb-sxm4", "h100-sxm5-80gb", "rtx-a6000", "l40", "rtx-4090", "rtx-5090"];

/// One figure of a card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Figure {
    /// GB/s; the median of the runs' medians.
    Measured(f64),
    /// By others.
    Published(&'static Published),
}

impl Figure {
    pub(crate) fn gbps(self) -> f64 {
        match self {
            Self::Measured(gbps) => gbps,
            Self::Published(figure) => figure.gbps,
        }
    }
}

/// One card with its figures, which are all measured or all published.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Its name for people.
    pub name: String,
    /// What the catalog knows of it.
    pub card: Option<&'static Card>,
    /// The runs that measured it, of the newest suite version among them, by number; none when it was not measured here.
    pub runs: Vec<usize>,
    /// In the order of [`OPERATIONS`].
    pub figures: [Option<Figure>; 4],
}

impl Beside {
    /// The bandwidth of its data sheet.
    pub(crate) fn data_sheet_gbps(&self) -> Option<f64> {
        self.card.map(|card| card.memory.bandwidth_gbps)
    }

    /// HBM, GDDR, or anything else.
    pub(crate) fn family(&self) -> Family {
        match self.card.and_then(|card| card.memory.family()) {
            Some(MemoryFamily::Hbm) => Family::Hbm,
            Some(MemoryFamily::Gddr) => Family::Gddr,
            Some(MemoryFamily::Lpddr) | None => Family::Other,
        }
    }

    /// Its figures with their operations.
    pub(crate) fn each(&self) -> impl Iterator<Item = (StreamOperation, Option<Figure>)> {
        OPERATIONS.into_iter().zip(self.figures)
    }
}

/// How cards are grouped, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    Hbm,
    Gddr,
    Other,
}

/// The cards that the runs measured and the reference cards that they did not, by kind
/// of memory and bandwidth of the data sheet. `figure` tells what a run measured.
pub(crate) fn beside(runs: &[&Run], mut figure: impl FnMut(usize, StreamOperation) -> Option<f64>) -> Vec<Beside> {
    // Others' programs measure no zeros, so runs on other data stand beside no published figure.
    let ids: Vec<(usize, String)> =
        runs.iter().enumerate().filter(|(_, run)| run.data == Data::Random).map(|(n, run)| (n, identity(run))).collect();
    let mut cards: Vec<Beside> = Vec::new();
    for (position, (first, id)) in ids.iter().enumerate() {
        if ids[..position].iter().any(|(_, earlier)| earlier == id) {
            continue;
        }
        let of_card = newest(runs, ids.iter().filter(|(_, other)| other == id).map(|(n, _)| *n).collect());
        let figures = OPERATIONS.map(|operation| {
            let medians: Vec<f64> = of_card.iter().filter_map(|run| figure(*run, operation)).collect();
            (!medians.is_empty()).then(|| Figure::Measured(median(&medians)))
        });
        let card = catalog::of_device(&runs[*first].device);
        cards.push(Beside { name: name(runs[*first], card), card, runs: of_card, figures });
    }
    let references = REFERENCES.into_iter().filter(|id| !ids.iter().any(|(_, measured)| measured == id)).filter_map(catalog::card);
    cards.extend(references.map(|card| Beside {
        name: card.name.clone(),
        card: Some(card),
        runs: Vec::new(),
        figures: OPERATIONS.map(|operation| catalog::chosen(&card.id, operation).map(Figure::Published)),
    }));
    // Cards without a data sheet last.
    let bandwidth = |card: &Beside| card.data_sheet_gbps().unwrap_or(f64::INFINITY);
    cards.sort_by(|a, b| a.family().cmp(&b.family()).then(bandwidth(a).total_cmp(&bandwidth(b))).then_with(|| a.name.cmp(&b.name)));
    cards
}

/// Those that measure in the newest way: figures of two suite versions have no common median.
fn newest(runs: &[&Run], of_card: Vec<usize>) -> Vec<usize> {
    let version = |run: &usize| runs[*run].suite_version.parse::<u64>().unwrap_or(0);
    let newest = of_card.iter().map(version).max();
    of_card.into_iter().filter(|run| Some(version(run)) == newest).collect()
}

/// What is equal for two runs of one card: its id or, where the catalog does not know
/// it, all by which the catalog would tell cards apart.
pub(crate) fn identity(run: &Run) -> String {
    let device = &run.device;
    match catalog::of_device(device) {
        Some(card) => card.id.clone(),
        None => {
            let gib = device.memory.total_bytes >> 30;
            format!("{} {:?} {gib} {:?}", device.name, device.pci_device_id, device.memory.bus_width_bits)
        }
    }
}

fn name(run: &Run, card: Option<&Card>) -> String {
    match card {
        Some(card) => card.name.clone(),
        None => format!("{} ({})", words::names(&[run]).concat(), words::bytes(run.device.memory.total_bytes)),
    }
}

/// A way of measuring that stands behind published figures.
#[derive(Debug, PartialEq)]
pub(crate) struct Note {
    /// The method, and who measured when it was the card's maker.
    pub method: String,
    /// Where it was published, in short.
    pub source_name: &'static str,
    /// The pages or files.
    pub sources: Vec<&'static str>,
}

/// The methods behind all published figures of these cards. Their numbers begin at 1.
pub(crate) fn notes(cards: &[Beside]) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for figure in cards.iter().flat_map(|card| card.figures).flatten() {
        let Figure::Published(figure) = figure else { continue };
        match number(&notes, figure) {
            None => notes.push(Note { method: method(figure), source_name: figure.source_name(), sources: vec![&figure.source] }),
            Some(number) => {
                let sources = &mut notes[number - 1].sources;
                if !sources.contains(&figure.source.as_str()) {
                    sources.push(&figure.source);
                }
            }
        }
    }
    notes
}

fn method(figure: &Published) -> String {
    match figure.origin {
        Origin::ThirdParty => figure.method.clone(),
        Origin::VendorMeasured => format!("{}; measured by the card's maker", figure.method),
    }
}

/// The number of the note that a figure belongs to.
pub(crate) fn number(notes: &[Note], figure: &Published) -> Option<usize> {
    notes.iter().position(|note| note.method == method(figure) && note.source_name == figure.source_name()).map(|at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200;

    fn copy_only(_: usize, operation: StreamOperation) -> Option<f64> {
        (operation == StreamOperation::Copy).then_some(900.0)
    }

    /// A run of a card of the catalog.
    fn run_of(id: &str) -> Run {
        let card = catalog::card(id).unwrap();
        let mut run = h200();
        run.device.name.clone_from(&card.device_names[0]);
        run.device.memory.total_bytes = u64::from(card.memory.capacity_gib) << 30;
        run
    }

    fn find<'a>(cards: &'a [Beside], name: &str) -> &'a Beside {
        cards.iter().find(|card| card.name == name).unwrap()
    }

    #[test]
    fn a_card_that_was_run_on_zeros_alone_counts_as_not_measured() {
        let zeros = Run { data: Data::Zero, ..run_of("rtx-4090") };
        let name = &catalog::card("rtx-4090").unwrap().name;
        let on_zeros = beside(&[&zeros], copy_only);
        let card = find(&on_zeros, name);
        assert!(card.runs.is_empty() && card.figures.iter().flatten().all(|figure| matches!(figure, Figure::Published(_))));
        assert_eq!(find(&beside(&[&zeros, &run_of("rtx-4090")], copy_only), name).runs, [1]);
    }

    #[test]
    fn a_measured_card_shows_measured_figures_alone() {
        let run = run_of("rtx-4090");
        // Others published its reads; nothing was measured here but the copy.
        assert!(catalog::chosen("rtx-4090", StreamOperation::Read).is_some());
        let cards = beside(&[&run], copy_only);
        assert_eq!(find(&cards, "NVIDIA GeForce RTX 4090").figures, [None, None, Some(Figure::Measured(900.0)), None]);
        assert_eq!(cards.iter().filter(|card| card.name.contains("4090")).count(), 1);
    }

    #[test]
    fn a_reference_card_without_published_figures_has_its_data_sheet_alone() {
        let cards = beside(&[&h200()], copy_only);
        let card = find(&cards, "NVIDIA RTX A6000");
        assert_eq!((card.figures, card.data_sheet_gbps()), ([None; 4], Some(768.0)));
    }

    #[test]
    fn every_reference_card_is_in_the_catalog() {
        assert_eq!(beside(&[], copy_only).len(), REFERENCES.len());
    }

    #[test]
    fn several_runs_of_one_card_give_the_median_of_their_medians() {
        let runs = [h200(), run_of("rtx-4090"), h200(), h200()];
        let values = [4000.0, 900.0, 4600.0, 4400.0];
        let cards = beside(&runs.each_ref(), |run, _| Some(values[run]));
        let card = find(&cards, "NVIDIA H200 SXM 141 GB");
        assert_eq!((card.runs.as_slice(), card.figures[0]), ([0, 2, 3].as_slice(), Some(Figure::Measured(4400.0))));
    }

    #[test]
    fn cards_stand_by_kind_of_memory_then_by_bandwidth_and_unknown_ones_last() {
        let mut unknown = h200();
        unknown.device.name = "NVIDIA Graphics Device".into();
        let cards = beside(&[&unknown, &h200()], copy_only);
        let order: Vec<_> = cards.iter().map(|card| (card.family(), card.data_sheet_gbps())).collect();
        assert!(order.windows(2).all(|two| two[0].0 < two[1].0 || two[0].1 <= two[1].1), "{order:?}");
        let last = cards.last().unwrap();
        assert_eq!((last.name.as_str(), last.card), ("NVIDIA Graphics Device (140 GiB)", None));
    }

    #[test]
    fn unknown_cards_of_one_name_are_told_apart_by_their_memory() {
        let [mut a, mut b] = [run_of("rtx-4090"), run_of("rtx-4090")];
        a.device.memory.total_bytes = 48 << 30;
        b.device.memory.total_bytes = 96 << 30;
        let cards = beside(&[&a, &b, &a], copy_only);
        let unknown: Vec<_> = cards.iter().filter(|card| card.card.is_none()).map(|card| card.runs.len()).collect();
        assert_eq!(unknown, [2, 1]);
    }

    #[test]
    fn a_note_holds_every_source_of_one_method_and_every_published_figure_has_a_note() {
        let cards = beside(&[&h200()], copy_only);
        let notes = notes(&cards);
        for figure in cards.iter().flat_map(|card| card.figures).flatten() {
            if let Figure::Published(figure) = figure {
                let note = &notes[number(&notes, figure).unwrap() - 1];
                assert!(note.method == method(figure) && note.sources.contains(&figure.source.as_str()));
            }
        }
        assert!(notes.iter().enumerate().all(|(n, note)| !notes[..n].contains(note)));
        // The RTX 5090's triad.
        assert!(notes.iter().any(|note| note.source_name.starts_with("NVIDIA/cccl") && note.method.ends_with("by the card's maker")));
    }
}
