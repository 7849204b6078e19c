//! `saturation`: the bandwidth of a read by how many multiprocessors make it.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale};
use super::latency::lines;
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, array_sizes};
use super::{Area, Chart, Outcome, words};
use crate::pattern::DeviceKind;

/// What share of a run's best bandwidth counts as having used the memory up.
const NEARLY_ALL: f64 = 0.9;

pub(super) struct Saturation {
    page: Page,
    curves: Curves,
}

/// The fewest units with nearly the best bandwidth of a line, and that bandwidth.
fn enough(line: &Line) -> Option<(f64, f64)> {
    let points = || line.points.iter().flatten().copied();
    let best = points().map(|(_, gbps)| gbps).fold(0.0, f64::max);
    points().find(|(_, gbps)| *gbps >= best * NEARLY_ALL)
}

impl Chart for Saturation {
    const NAME: &'static str = "saturation";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let lines = lines(group, &mut rows, ("saturation", "read"), |rows, run, row, units| {
            // No device has more than it says.
            let gbps = rows.figure(run, row, row.achieved_gbps, "GB/s").filter(|_| units <= group.run(run).device.units.into())?;
            Some((units as f64, gbps))
        });
        let (units, axis) = match group.kind() {
            DeviceKind::Cuda => ("multiprocessors", "multiprocessors that read"),
            DeviceKind::Host => ("workers", "workers that read"),
        };
        let enough: Vec<(usize, RGBColor, (f64, f64))> =
            lines.iter().enumerate().filter_map(|(run, line)| Some((run, line.color, enough(line)?))).collect();
        if enough.is_empty() {
            return Err(rows.nothing("saturation/read"));
        }
        let told = enough.iter().map(|&(run, _, (fewest, gbps))| {
            let all = group.run(run).device.units;
            format!("{}: {fewest} of {all} {units} ({} GB/s)", group.name(run), words::figure(gbps))
        });
        let reading = format!(
            "A contiguous read by so many {units}, medians, 1 GB/s = 10⁹ bytes a second. The fewest, of those measured, with {} % of the \
             best: {}.",
            NEARLY_ALL * 100.0,
            told.collect::<Vec<_>>().join("; ")
        );
        let (legend, shared) = rows.legend(Symbol::Points, |_, rows| array_sizes(rows).into_iter().collect());
        Ok(Self {
            page: Page {
                title: "Bandwidth by the number of readers",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: vec![(Symbol::Threshold, "90 % of the best")],
                legend,
                caption: rows.caption(&reading, shared),
            },
            curves: Curves {
                heading: "Read, GB/s",
                axis,
                scale: Scale::Linear,
                bounds: enough.into_iter().map(|(_, color, (fewest, _))| (fewest, color)).collect(),
                bands: Vec::new(),
                lines,
            },
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        self.curves.draw(root, at, self.curves.largest())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_are_the_fewest_with_nine_tenths_of_the_best() {
        let line = |points: &[Option<(f64, f64)>]| Line { color: BLACK, shape: Some(0), dashed: false, points: points.to_vec() };
        assert_eq!(enough(&line(&[Some((1.0, 50.0)), None, Some((64.0, 4500.0)), Some((132.0, 4600.0))])), Some((64.0, 4500.0)));
        assert_eq!(enough(&line(&[Some((1.0, 50.0))])), Some((1.0, 50.0)));
        assert_eq!(enough(&line(&[None])), None);
    }
}
