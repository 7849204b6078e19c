//! `transfer`: what copies between main memory and card achieve, by direction and kind of memory.

use plotters::prelude::DrawingBackend;

use super::bandwidth::quartiles;
use super::bars::{Bar, Bars, Cluster};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, is_drawable, words};
use crate::pattern::link_directions;
use crate::record::Run;

/// The cases with their labels.
const CASES: [(&str, &str); 6] = [
    ("transfer/h2d/pinned", "to the card, pinned"),
    ("transfer/d2h/pinned", "from the card, pinned"),
    ("transfer/both/pinned", "both at once, pinned"),
    ("transfer/h2d/pageable", "to the card, pageable"),
    ("transfer/d2h/pageable", "from the card, pageable"),
    ("transfer/both/pageable", "both at once, pageable"),
];

pub(super) struct Transfer {
    page: Page,
    bars: Bars,
}

impl Chart for Transfer {
    const NAME: &'static str = "transfer";

    fn new(group: &Group) -> Result<Self, String> {
        // No cache of the card has a part in it.
        let mut rows = Rows::of_any_level(group);
        let mut clusters = Vec::new();
        for (id, label) in CASES {
            let bars: Vec<Option<Bar>> = (0..group.len())
                .map(|run| {
                    let row = group.row(run, id).filter(|row| rows.sound(run, row))?;
                    let value = rows.figure(run, row, row.achieved_gbps, "GB/s")?;
                    let bound = link_gbps(group.run(run)).zip(link_directions(id)).map(|(link, directions)| link * directions as f64);
                    Some(Bar { value, quartiles: quartiles(row, value), bound, ..Bar::default() })
                })
                .collect();
            if bars.iter().any(Option::is_some) {
                clusters.push(Cluster { label: label.to_owned(), bars, bound: None });
            }
        }
        if clusters.is_empty() {
            return Err(rows.nothing("transfer"));
        }
        let mut key = vec![(Symbol::Whisker, "lower to upper quartile")];
        if (0..group.len()).any(|run| link_gbps(group.run(run)).is_some()) {
            key.push((Symbol::Tick, "what the link carries by its generation and lanes, before the headers of its packets"));
        }
        let reading = "Copies between the main memory of the machine and the card. Pinned memory the card reads and writes by itself; pageable \
                       memory, which is what programs have unless they ask for other, the driver copies piece by piece through pinned memory of \
                       its own. Bars: bytes that cross the link, each once, over the median time; of both directions at once, their sum. \
                       1 GB/s = 10⁹ bytes a second.";
        let (legend, shared) =
            rows.legend(|color, _| Symbol::Bar(color), |run, rows| array_sizes(rows).into_iter().chain(link(run)).collect());
        Ok(Self {
            page: Page {
                title: "Transfers between main memory and card",
                plot_height_min: PLOT_HEIGHT_MIN,
                key,
                legend,
                caption: rows.caption(reading, shared),
            },
            bars: Bars { heading: "Achieved GB/s", colors: group.colors(), clusters, threshold: None },
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        self.bars.draw(root, at)
    }
}

/// What the link carries in one direction, when that makes sense.
fn link_gbps(run: &Run) -> Option<f64> {
    run.peaks.link_theoretical_gbps().filter(|link| is_drawable(*link))
}

/// `link of 16 lanes, generation 5, 63.0 GB/s a direction`; where it is less than it could be, of what.
fn link(run: &Run) -> Vec<String> {
    let pcie = &run.device.pcie;
    let name = |generation: Option<u32>, lanes: Option<u32>| Some(format!("PCIe {}.0 x{}", generation?, lanes?));
    let (now, most) = (name(pcie.generation_under_load, pcie.width_under_load), name(pcie.generation_max, pcie.width_max));
    let mut facts: Vec<String> = Vec::new();
    facts.extend(now.as_ref().or(most.as_ref()).map(|link| format!("link {link}")));
    facts.extend(now.zip(most).filter(|(now, most)| now != most).map(|(_, most)| format!("slower than its most, {most}")));
    facts.extend(link_gbps(run).map(|gbps| format!("{} GB/s in each direction", words::figure(gbps))));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::testing::h200;
    use crate::record::{Pcie, Peak, Provenance};

    fn linked(generation: Option<u32>, lanes: u32) -> Run {
        let mut run = h200();
        run.device.pcie = Pcie {
            generation_under_load: generation,
            width_under_load: Some(lanes),
            generation_max: Some(5),
            width_max: Some(16),
            ..run.device.pcie
        };
        run.peaks.link_gbps = vec![Peak { value: 63.0, provenance: Provenance::DeviceAttributes }];
        run
    }

    #[test]
    fn a_link_below_its_most_is_said_to_be_slower() {
        assert_eq!(link(&linked(Some(5), 16)), ["link PCIe 5.0 x16", "63.0 GB/s in each direction"]);
        assert_eq!(link(&linked(Some(5), 8))[..2], ["link PCIe 5.0 x8", "slower than its most, PCIe 5.0 x16"]);
        assert_eq!(link(&linked(None, 16)), ["link PCIe 5.0 x16", "63.0 GB/s in each direction"]);
        assert!(link(&h200()).is_empty());
    }

    #[test]
    fn every_case_of_the_pattern_has_a_bar() {
        use crate::pattern::{DeviceKind, PATTERNS, Profile};
        let ids: Vec<String> =
            PATTERNS.iter().flat_map(|p| p.ids(Profile::Full, DeviceKind::Cuda)).filter(|id| link_directions(id).is_some()).collect();
        assert_eq!(ids.len(), CASES.len());
        assert!(ids.iter().all(|id| CASES.iter().any(|(case, _)| case == id)), "{ids:?}");
    }
}
