//! `bandwidth`: what contiguous streams achieve, by operation and run.

use plotters::prelude::DrawingBackend;

use super::bars::{Bar, Bars, Cluster};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, theme, words};
use crate::pattern::StreamOperation;
use crate::record::Measurement;

pub(super) struct Bandwidth {
    page: Page,
    bars: Bars,
}

impl Chart for Bandwidth {
    const NAME: &'static str = "bandwidth";

    fn new(group: &Group) -> Result<Self, String> {
        let streams = StreamOperation::ALL.iter().map(|o| (o.name().to_owned(), format!("stream/{}/f32", o.name())));
        let cases = streams.chain([("copy engine".to_owned(), "copy_engine/d2d".to_owned())]);
        let mut rows = Rows::of(group);
        let mut clusters = Vec::new();
        for (label, id) in cases {
            let bars: Vec<Option<Bar>> = (0..group.len())
                .map(|run| {
                    let row = group.row(run, &id)?;
                    if !rows.sound(run, row) {
                        return None;
                    }
                    let value = rows.figure(run, row, row.achieved_gbps, "GB/s")?;
                    let lesser = row.tuning.as_ref().and_then(|tuning| rows.figure(run, row, tuning.naive_gbps, "naive GB/s"));
                    let bound = words::memory_peak_gbps(group.run(run));
                    Some(Bar { value, quartiles: quartiles(row, value), bound, lesser, ..Bar::default() })
                })
                .collect();
            if bars.iter().any(Option::is_some) {
                clusters.push(Cluster { label, bars, bound: None });
            }
        }
        if clusters.is_empty() {
            return Err(rows.nothing("stream"));
        }
        let mut key = vec![(Symbol::Whisker, "lower to upper quartile")];
        if (0..group.len()).any(|run| words::memory_peak_gbps(group.run(run)).is_some()) {
            key.push((Symbol::Tick, "theoretical peak (2 x memory clock x bus width / 8)"));
        }
        let mut reading = "Bars: requested bytes, read + written, over the median time. 1 GB/s = 10⁹ bytes a second.".to_owned();
        if clusters.iter().flat_map(|cluster| &cluster.bars).flatten().any(|bar| bar.lesser.is_some()) {
            key.push((Symbol::Cut(theme::MUTED), "naive"));
            reading += " Bars with a white line: the best kernel that a search found for the card. White line, with its figure at the foot where there is room: \
                        the simplest kernel, one element of 8 bytes a thread.";
        }
        let (legend, shared) = rows.legend(
            |color, _| Symbol::Bar(color),
            |run, rows| {
                let peak = words::memory_peak_gbps(run).map(|peak| format!("theoretical peak {} GB/s", words::figure(peak)));
                array_sizes(rows).into_iter().chain(peak).collect()
            },
        );
        Ok(Self {
            page: Page {
                title: "Memory bandwidth, f32 streams",
                plot_height_min: PLOT_HEIGHT_MIN,
                key,
                legend,
                caption: rows.caption(&reading, shared),
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

/// The bandwidth at the upper and at the lower quartile of the time.
pub(super) fn quartiles(row: &Measurement, achieved_gbps: f64) -> Option<(f64, f64)> {
    let time = row.time_ns.as_ref()?;
    Some((achieved_gbps * time.median / time.p75, achieved_gbps * time.median / time.p25))
}
