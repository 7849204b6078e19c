//! Charts: one file a chart, from run documents to SVG and PNG.
//!
//! Each chart is one drawing function, generic over the plotters backend. The
//! fonts are compiled in and nothing depends on the machine: the same documents
//! give the same bytes.

mod bandwidth;
mod bars;
pub(crate) mod beside;
mod by_size;
mod cards;
mod conv3d;
mod curves;
mod footprint;
mod gather;
mod in_flight;
mod kv;
mod latency;
mod loaded_latency;
mod marks;
mod matvec;
mod page;
mod panel;
mod raster;
mod rows;
mod saturation;
mod soak;
mod stride;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod theme;
mod transfer;
pub(crate) mod words;

use std::path::{Path, PathBuf};

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::pattern::DeviceKind;
use crate::record::{Run, write_whole};
use rows::Group;

/// What a chart is drawn on.
type Area<DB> = DrawingArea<DB, Shift>;
/// How drawing ends.
type Outcome<DB> = Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// More runs than colours would not be told apart.
const RUNS_PER_CHART: usize = theme::PALETTE.len();

/// No memory or bus is within two orders of magnitude of 10^6 GB/s, and no
/// percentage near 10^6: such a figure is an error in the document.
const LARGEST_FIGURE: f64 = 1e6;

/// Neither is any below one byte a second.
const SMALLEST_FIGURE: f64 = 1e-9;

/// Whether a figure can be drawn at all.
fn is_drawable(value: f64) -> bool {
    value == 0.0 || (SMALLEST_FIGURE..=LARGEST_FIGURE).contains(&value)
}

/// Why charts could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// A file or the folder could not be written.
    #[error("cannot write {}: {source}; choose a folder that you can write to", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The drawing itself failed.
    #[error("cannot draw the chart '{chart}': {message}")]
    Draw {
        /// Its name.
        chart: String,
        /// What the backend said.
        message: String,
    },
}

/// What [`draw_all`] did.
#[derive(Debug, Default)]
pub struct Drawn {
    /// The files written, an SVG and a PNG for each chart.
    pub files: Vec<PathBuf>,
    /// Charts that were not drawn, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A chart with all that it shows.
trait Chart: Sized {
    /// The first part of its files' names.
    const NAME: &'static str;

    /// Gathers what there is to draw.
    ///
    /// # Errors
    /// When there is nothing: the reason.
    fn new(group: &Group) -> Result<Self, String>;

    /// The texts around the plot.
    fn page(&self) -> &page::Page;

    /// Draws the plot itself.
    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: page::Rect) -> Outcome<DB>;
}

/// Every chart.
pub(crate) const NAMES: [&str; 14] = [
    bandwidth::Bandwidth::NAME,
    stride::Stride::NAME,
    footprint::Footprint::NAME,
    gather::Gather::NAME,
    kv::Kv::NAME,
    conv3d::Conv3d::NAME,
    matvec::Matvec::NAME,
    saturation::Saturation::NAME,
    in_flight::InFlight::NAME,
    latency::Latency::NAME,
    loaded_latency::LoadedLatency::NAME,
    transfer::Transfer::NAME,
    soak::SoakChart::NAME,
    cards::Cards::NAME,
];

/// Draws every chart that the runs have data for into `dir`, as `<name>.svg` and
/// `<name>.png`. Charts of these names that an earlier call left there are removed, so
/// that the folder shows these runs alone.
///
/// GPUs and hosts never share a chart: a host's are called `<name>-host`. Beyond
/// eight runs of one kind a further chart `<name>-2` is begun; in the chart of cards,
/// beyond eight cards.
///
/// # Errors
/// When the folder cannot be written.
pub fn draw_all(runs: &[Run], dir: &Path) -> Result<Drawn, ChartError> {
    let mut drawn = Drawn::default();
    let groups = groups(runs);
    draw_each::<bandwidth::Bandwidth>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<stride::Stride>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<footprint::Footprint>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<gather::Gather>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<kv::Kv>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<conv3d::Conv3d>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<matvec::Matvec>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<saturation::Saturation>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<in_flight::InFlight>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<latency::Latency>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<loaded_latency::LoadedLatency>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<transfer::Transfer>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<soak::SoakChart>(&groups, "no run was given", dir, &mut drawn)?;
    draw_each::<cards::Cards>(&groups_of_cards(runs), "no run of a GPU was given", dir, &mut drawn)?;
    remove_stale(dir, &drawn.files)?;
    Ok(drawn)
}

/// Removes charts of an earlier call: files with a chart's name that were not drawn now.
fn remove_stale(dir: &Path, drawn: &[PathBuf]) -> Result<(), ChartError> {
    let is_chart = |path: &Path| {
        let (Some(stem), Some(extension)) = (path.file_stem().and_then(|s| s.to_str()), path.extension()) else { return false };
        let rest = NAMES.iter().find_map(|name| stem.strip_prefix(name));
        let number = rest.map(|rest| rest.strip_prefix("-host").unwrap_or(rest));
        let is_number = |n: &str| n.parse::<u32>().is_ok_and(|value| value >= 2 && value.to_string() == n);
        (extension == "svg" || extension == "png") && number.is_some_and(|n| n.is_empty() || n.strip_prefix('-').is_some_and(is_number))
    };
    // No folder, nothing stale.
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| is_chart(path) && !drawn.contains(path)) {
        std::fs::remove_file(&path).map_err(|source| ChartError::Write { path, source })?;
    }
    Ok(())
}

/// The runs of each chart, with what distinguishes its files' names.
fn groups(runs: &[Run]) -> Vec<(String, Group<'_>)> {
    let names = words::names(&runs.iter().collect::<Vec<_>>());
    let named: Vec<(&Run, String)> = runs.iter().zip(names).collect();
    [(DeviceKind::Cuda, ""), (DeviceKind::Host, "-host")]
        .into_iter()
        .flat_map(|(kind, suffix)| {
            let of_kind: Vec<(&Run, String)> = named.iter().filter(|(run, _)| run.device.kind == kind).cloned().collect();
            let chunks: Vec<Vec<(&Run, String)>> = of_kind.chunks(RUNS_PER_CHART).map(<[_]>::to_vec).collect();
            chunks.into_iter().enumerate().map(move |(n, runs)| (format!("{suffix}{}", numbered(n)), Group::new(kind, runs)))
        })
        .collect()
}

/// All runs of GPUs, those of one card together.
fn groups_of_cards(runs: &[Run]) -> Vec<(String, Group<'_>)> {
    let names = words::names(&runs.iter().collect::<Vec<_>>());
    let gpus: Vec<(&Run, String)> = runs.iter().zip(names).filter(|(run, _)| run.device.kind == DeviceKind::Cuda).collect();
    let mut cards: Vec<String> = Vec::new();
    for (run, _) in &gpus {
        let card = beside::identity(run);
        if !cards.contains(&card) {
            cards.push(card);
        }
    }
    let chunks = cards.chunks(RUNS_PER_CHART).enumerate();
    chunks
        .map(|(n, cards)| {
            let runs = gpus.iter().filter(|(run, _)| cards.contains(&beside::identity(run))).cloned().collect();
            (numbered(n), Group::new(DeviceKind::Cuda, runs))
        })
        .collect()
}

/// What tells the `n`-th chart of one name, from 0, from the others.
fn numbered(n: usize) -> String {
    if n == 0 { String::new() } else { format!("-{}", n + 1) }
}

/// Draws a chart for each group; `none` says why there is no group.
fn draw_each<C: Chart>(groups: &[(String, Group)], none: &str, dir: &Path, drawn: &mut Drawn) -> Result<(), ChartError> {
    if groups.is_empty() {
        drawn.left_out.push((C::NAME.to_owned(), none.to_owned()));
    }
    for (suffix, group) in groups {
        let name = format!("{}{suffix}", C::NAME);
        match C::new(group) {
            Err(reason) => drawn.left_out.push((name, reason)),
            Ok(chart) => {
                let failed = |message: String| ChartError::Draw { chart: name.clone(), message };
                let (svg, png) = (svg(&chart).map_err(failed)?, png(&chart).map_err(failed)?);
                for (extension, bytes) in [("svg", svg.as_bytes()), ("png", png.as_slice())] {
                    let path = dir.join(format!("{name}.{extension}"));
                    write_whole(&path, bytes).map_err(|source| ChartError::Write { path: path.clone(), source })?;
                    drawn.files.push(path);
                }
            }
        }
    }
    Ok(())
}

fn draw<C: Chart, DB: DrawingBackend>(chart: &C, layout: &page::Layout, root: &Area<DB>) -> Outcome<DB> {
    layout.draw(root)?;
    chart.plot(root, layout.plot)?;
    root.present()
}

fn svg<C: Chart>(chart: &C) -> Result<String, String> {
    let layout = chart.page().layout();
    let mut text = String::new();
    draw(chart, &layout, &SVGBackend::with_string(&mut text, layout.size()).into_drawing_area()).map_err(|e| e.to_string())?;
    Ok(text)
}

fn png<C: Chart>(chart: &C) -> Result<Vec<u8>, String> {
    let layout = chart.page().layout();
    let mut buffer = vec![0; raster::buffer_len(layout.size())];
    draw(chart, &layout, &raster::Raster::new(&mut buffer, layout.size()).into_drawing_area()).map_err(|e| e.to_string())?;
    raster::encode(&buffer, layout.size()).map_err(|e| e.to_string())
}
