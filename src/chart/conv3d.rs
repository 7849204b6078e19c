//! `conv3d`: bandwidth and compute utilization of convolutions, side by side.

use plotters::prelude::DrawingBackend;

use super::bandwidth::quartiles;
use super::bars::{Bar, Bars, Cluster};
use super::marks::Symbol;
use super::page::{PLOT_HEIGHT_MIN, Page, Rect};
use super::rows::{Group, Rows, arithmetic_peaks};
use super::{Area, Chart, Outcome, words};
use crate::pattern::CaseId;
use crate::record::Measurement;

/// The share of the arithmetic peak that convolutions on memory-bound cards are often said
/// to stay under; the chart shows whether they do.
const LOW_UTILIZATION_PERCENT: f64 = 30.0;

/// Space between the two panels.
const GUTTER: i32 = 56;

pub(super) struct Conv3d {
    page: Page,
    bandwidth: Bars,
    utilization: Bars,
}

impl Chart for Conv3d {
    const NAME: &'static str = "conv3d";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of(group);
        let (mut bandwidth, mut utilization) = (Vec::new(), Vec::new());
        for (id, label) in cases(group) {
            let mut bars = (Vec::new(), Vec::new());
            for run in 0..group.len() {
                let row = group.row(run, &id).filter(|row| rows.sound(run, row));
                bars.0.push(row.and_then(|row| {
                    let value = rows.figure(run, row, row.achieved_gbps, "GB/s")?;
                    Some(Bar { value, quartiles: quartiles(row, value), ..Bar::default() })
                }));
                bars.1.push(row.and_then(|row| {
                    let value = rows.figure(run, row, row.compute_utilization.map(|u| u * 100.0), "compute utilization")?;
                    Some(Bar { value, quartiles: quartiles(row, value), ..Bar::default() })
                }));
            }
            if bars.0.iter().chain(&bars.1).any(Option::is_some) {
                bandwidth.push(Cluster { label: label.clone(), bars: bars.0, bound: None });
                utilization.push(Cluster { label, bars: bars.1, bound: None });
            }
        }
        if bandwidth.is_empty() {
            return Err(rows.nothing("conv3d"));
        }
        let reading = "Labels: channels in → out. Bars: medians; 1 GB/s = 10⁹ bytes a second, each input, weight and output \
                       counted once. Compute utilization: flops over the peak that the same run measured; networks of such layers on memory-bound cards are often said to stay under 30 %.";
        let (legend, shared) =
            rows.legend(|color, _| Symbol::Bar(color), |run, rows| volumes(rows).into_iter().chain(arithmetic_peaks(run, rows)).collect());
        Ok(Self {
            page: Page {
                title: "3D convolutions, 3 x 3 x 3",
                plot_height_min: PLOT_HEIGHT_MIN,
                key: vec![(Symbol::Whisker, "lower to upper quartile"), (Symbol::Threshold, "30 % of the measured arithmetic peak")],
                legend,
                caption: rows.caption(reading, shared),
            },
            bandwidth: Bars { heading: "Achieved GB/s", colors: group.colors(), clusters: bandwidth, threshold: None },
            utilization: Bars {
                heading: "Compute utilization, %",
                colors: group.colors(),
                clusters: utilization,
                threshold: Some((LOW_UTILIZATION_PERCENT, "30 %")),
            },
        })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        let middle = (at.left + at.right) / 2;
        self.bandwidth.draw(root, Rect { right: middle - GUTTER / 2, ..at })?;
        self.utilization.draw(root, Rect { left: middle + GUTTER / 2, ..at })
    }
}

/// Every case of default size in any run, in the order of measurement, with its label.
fn cases(group: &Group) -> Vec<(String, String)> {
    let mut cases: Vec<(String, String)> = Vec::new();
    for row in (0..group.len()).flat_map(|run| &group.run(run).measurements).filter(|row| row.pattern == "conv3d") {
        if CaseId::new(&row.id).size().is_none() && cases.iter().all(|(id, _)| *id != row.id) {
            cases.push((row.id.clone(), label(&row.id)));
        }
    }
    cases
}

/// `conv3d/depthwise/f32/32x32` as `32→32 depthwise`; what every case has in
/// common is not said.
fn label(id: &str) -> String {
    let id = CaseId::new(id);
    let [kind, element, channels] = id.parts()[..] else { return words::clean(id.name()) };
    let mut label = channels.replacen('x', "→", 1);
    for part in [kind, element].into_iter().filter(|part| !["direct", "f32"].contains(part)) {
        label.push(' ');
        label.push_str(part);
    }
    words::clean(&label)
}

/// `volume 32 x 32 x 32, batch 1`; of several volumes each with the cases that have it.
fn volumes(rows: &[&Measurement]) -> Option<String> {
    let mut volumes: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let Some(volume) = volume(row) else { continue };
        match volumes.iter_mut().find(|(other, _)| *other == volume) {
            Some((_, cases)) => cases.push(label(&row.id)),
            None => volumes.push((volume, vec![label(&row.id)])),
        }
    }
    match &volumes[..] {
        [] => None,
        [(only, _)] => Some(format!("volume {only}")),
        several => {
            let each: Vec<String> = several.iter().map(|(volume, cases)| format!("{volume} ({})", cases.join(", "))).collect();
            Some(format!("volumes {}", each.join(" and ")))
        }
    }
}

/// `32 x 32 x 32, batch 1`.
fn volume(row: &Measurement) -> Option<String> {
    let extent = row.parameters.get("extent")?.as_array()?.iter().map(|n| n.as_u64()).collect::<Option<Vec<_>>>()?;
    let extent = extent.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    let batch = row.parameters.get("batch").and_then(|n| n.as_u64()).map(|n| format!(", batch {n}"));
    Some(format!("{extent}{}", batch.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Status;
    use serde_json::json;

    #[test]
    fn a_label_says_what_distinguishes_the_case() {
        assert_eq!(label("conv3d/direct/f32/1x16"), "1→16");
        assert_eq!(label("conv3d/depthwise/f32/32x32"), "32→32 depthwise");
        assert_eq!(label("conv3d/tensor/f16/64x64"), "64→64 tensor f16");
        assert_eq!(label("conv3d/odd"), "conv3d/odd");
    }

    #[test]
    fn of_several_volumes_each_is_told_with_its_cases() {
        let row = |id: &str, edge: u64| {
            let row = Measurement::without_figures(id, "conv3d", Status::Ok, String::new());
            let parameters = [("extent".to_owned(), json!([edge, edge, edge])), ("batch".to_owned(), json!(4))].into_iter().collect();
            Measurement { parameters, ..row }
        };
        let (a, b, c) = (row("conv3d/direct/f32/1x16", 8), row("conv3d/direct/f32/32x32", 6), row("conv3d/depthwise/f32/32x32", 8));
        assert_eq!(volumes(&[&a, &c]).unwrap(), "volume 8 x 8 x 8, batch 4");
        assert_eq!(volumes(&[&a, &b, &c]).unwrap(), "volumes 8 x 8 x 8, batch 4 (1→16, 32→32 depthwise) and 6 x 6 x 6, batch 4 (32→32)");
    }
}
