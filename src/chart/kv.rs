//! `kv`: a key-value cache that is read by pages, beside a contiguous read.

use plotters::prelude::DrawingBackend;

use super::bandwidth::quartiles;
use super::bars::{Bar, Bars, Cluster};
use super::latency::number_of;
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, words};

const NAME: &str = "gather/kv";
const CONTIGUOUS: &str = "stream/read/f32";

pub(super) struct Kv {
    page: Page,
    bars: Bars,
}

impl Chart for Kv {
    const NAME: &'static str = "kv";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let mut pages: Vec<u64> =
            (0..group.len()).flat_map(|run| &group.run(run).measurements).filter_map(|row| number_of(&row.id, "gather", "kv")).collect();
        pages.sort_unstable();
        pages.dedup();
        let paged = pages.iter().map(|&page| (format!("{} pages", words::bytes(page)), format!("{NAME}/{page}")));
        let mut clusters = Vec::new();
        for (label, id) in paged.chain([("contiguous read".to_owned(), CONTIGUOUS.to_owned())]) {
            // Without pages there is nothing to set a contiguous read beside.
            if id == CONTIGUOUS && clusters.is_empty() {
                break;
            }
            let bars: Vec<Option<Bar>> = (0..group.len())
                .map(|run| {
                    let row = group.row(run, &id).filter(|row| rows.sound(run, row))?;
                    let value = rows.figure(run, row, row.achieved_gbps, "GB/s")?;
                    Some(Bar { value, quartiles: quartiles(row, value), bound: words::memory_peak_gbps(group.run(run)), ..Bar::default() })
                })
                .collect();
            if bars.iter().any(Option::is_some) {
                clusters.push(Cluster { label, bars, bound: None });
            }
        }
        if clusters.is_empty() {
            return Err(rows.nothing(NAME));
        }
        let mut key = vec![(Symbol::Whisker, "lower to upper quartile")];
        if (0..group.len()).any(|run| words::memory_peak_gbps(group.run(run)).is_some()) {
            key.push((Symbol::Tick, "theoretical peak (2 x memory clock x bus width / 8)"));
        }
        let reading = "All pages of keys and of values, 16 tokens of one layer each, read in the order of a block table that scatters them: \
                       the traffic of one step of decoding, without its arithmetic. Bars: requested bytes over the median time, without the \
                       table. 1 GB/s = 10⁹ bytes a second.";
        let (legend, shared) = rows.legend(
            |color, _| Symbol::Bar(color),
            |run, rows| {
                let peak = words::memory_peak_gbps(run).map(|peak| format!("theoretical peak {} GB/s", words::figure(peak)));
                array_sizes(rows).into_iter().chain(peak).collect()
            },
        );
        Ok(Self {
            page: Page {
                title: "Key-value cache, read by pages",
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
