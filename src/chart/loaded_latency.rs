//! `loaded-latency`: how long a dependent access takes by what the memory moves meanwhile.

use plotters::prelude::*;

use super::curves::{Curves, Scale};
use super::latency::lines;
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, words};
use crate::pattern::DeviceKind;

pub(super) struct LoadedLatency {
    page: Page,
    curves: Curves,
}

impl Chart for LoadedLatency {
    const NAME: &'static str = "loaded-latency";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let lines = lines(group, &mut rows, ("latency", "loaded"), |rows, run, row, _| {
            let latency = rows.figure(run, row, row.latency_ns, "latency")?;
            Some((rows.figure(run, row, row.achieved_gbps, "GB/s")?, latency))
        });
        let peaks = group.colors().into_iter().enumerate();
        let peaks = peaks.filter_map(|(run, color)| Some((words::memory_peak_gbps(group.run(run))?, color)));
        let curves = Curves {
            heading: "Latency, ns",
            axis: "what the load and the access moved together, GB/s",
            scale: Scale::Linear,
            bounds: peaks.collect(),
            bands: Vec::new(),
            lines,
        };
        if !curves.has_values() {
            return Err(rows.nothing("latency/loaded"));
        }
        let others = match group.kind() {
            DeviceKind::Cuda => {
                "multiprocessors read an array, at 0 to 100 % of the theoretical peak as far as it goes (100: without a pause)"
            }
            DeviceKind::Host => "workers read an array without a pause, or not at all",
        };
        let reading = format!(
            "The time of one access that waits for the one before it, medians, while all other {others}. Across: the bandwidth that \
             came of it, 1 GB/s = 10⁹ bytes a second."
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, rows| array_sizes(rows).into_iter().collect());
        let mut key = vec![(Symbol::Threshold, "theoretical peak of the memory")];
        if curves.bounds.is_empty() {
            key.clear();
        }
        Ok(Self {
            page: Page {
                title: "Latency under load",
                plot_height_min: PLOT_HEIGHT_MIN,
                key,
                legend,
                caption: rows.caption(&reading, shared),
            },
            curves,
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        self.curves.draw(root, at, self.curves.largest())
    }
}
