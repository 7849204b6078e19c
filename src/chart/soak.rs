//! `soak`: the bandwidth of a case that a device works at without a pause, and below it clock and temperature.

use plotters::prelude::*;

use super::curves::{Curves, Line, Scale, draw_stacked};
use super::marks::Symbol;
use super::page::{Entry, Page, Rect};
use super::rows::{Group, Rows};
use super::theme::{INK, PALETTE};
use super::{Area, Chart, Outcome, is_drawable, words};
use crate::record::{Measurement, Soak, SoakInterval};

/// The height of one panel with the space to the next.
const PANEL_HEIGHT: i32 = 420;

pub(super) struct SoakChart {
    page: Page,
    panels: Vec<Curves>,
}

/// A soak, and the colour that it has.
struct Drawn<'a> {
    run: usize,
    row: &'a Measurement,
    soak: &'a Soak,
    color: RGBColor,
}

impl Chart for SoakChart {
    const NAME: &'static str = "soak";

    fn new(group: &Group) -> Result<Self, String> {
        let mut rows = Rows::of_any_level(group);
        let mut soaks = Vec::new();
        for run in 0..group.len() {
            for row in &group.run(run).measurements {
                soaks.extend(row.soak.as_ref().filter(|_| rows.sound(run, row)).map(|soak| (run, row, soak)));
            }
        }
        if soaks.is_empty() {
            return Err(rows.nothing_of("with a soak"));
        }
        let drawn: Vec<Drawn> = soaks.iter().zip(PALETTE).map(|(&(run, row, soak), color)| Drawn { run, row, soak, color }).collect();
        let end_s = drawn.iter().map(|one| one.soak.run_s).fold(1.0, f64::max);
        let panel = |heading, lines: Vec<Vec<Line>>| Curves {
            heading,
            axis: "time since the soak began, s",
            scale: Scale::Until(end_s),
            lines: lines.into_iter().flatten().collect(),
            bounds: Vec::new(),
            bands: Vec::new(),
        };
        let lines = |dashed, of: fn(&SoakInterval) -> Option<f64>| drawn.iter().map(|one| line(one, dashed, of)).collect();
        let chip = lines(false, |at| at.temperature_gpu_c);
        let memory: Vec<Line> = lines(true, |at| at.temperature_memory_c);
        let mut key = Vec::new();
        if memory.iter().any(|line| line.points.iter().any(Option::is_some)) {
            key = vec![(Symbol::Line(INK, false), "temperature of the chip"), (Symbol::Line(INK, true), "temperature of the memory")];
        }
        let mut panels = vec![
            panel("Bandwidth, GB/s", vec![lines(false, |at| Some(at.achieved_gbps))]),
            panel("Clock of the multiprocessors, MHz", vec![lines(false, |at| at.sm_clock_mhz)]),
            panel("Temperature, °C", vec![chip, memory]),
        ];
        panels.retain(Curves::has_values);

        let mut reading =
            "One case without a pause: each point is the mean bandwidth, requested bytes over their time, until the next point; \
                       1 GB/s = 10⁹ bytes a second."
                .to_owned();
        if panels.len() > 1 {
            reading += " The clock is the median, as the work itself saw it; temperatures are the highest, as the driver tells them.";
        }
        let (of_runs, shared) = rows.legend(|color, _| Symbol::Line(color, false), |_, _| Vec::new());
        let mut caption = rows.caption(&reading, shared);
        caption.extend(drawn.iter().map(|one| format!("{}: {}", name(group, one), said(one.soak))));
        let undrawn: Vec<String> =
            soaks[drawn.len()..].iter().map(|(run, row, _)| format!("{}, {}", group.name(*run), words::clean(&row.id))).collect();
        if !undrawn.is_empty() {
            caption.push(format!("Not drawn, for want of colours: {}.", undrawn.join("; ")));
        }
        let entry = |one: &Drawn| Entry {
            symbol: Symbol::Line(one.color, false),
            name: name(group, one),
            conditions: of_runs[one.run].conditions.clone(),
        };
        let page = Page {
            title: "Bandwidth over a long time",
            plot_height_min: panels.len() as i32 * PANEL_HEIGHT,
            key,
            legend: drawn.iter().map(entry).collect(),
            caption,
        };
        Ok(Self { page, panels })
    }

    fn page(&self) -> &Page {
        &self.page
    }

    fn plot<DB: DrawingBackend>(&self, root: &Area<DB>, at: Rect) -> Outcome<DB> {
        draw_stacked(&self.panels, root, at)
    }
}

/// A quantity of a soak over its time; what is absent or absurd interrupts the line.
fn line(one: &Drawn, dashed: bool, of: fn(&SoakInterval) -> Option<f64>) -> Line {
    let points =
        one.soak.intervals.iter().map(|at| Some((at.start_s, of(at)?)).filter(|(s, value)| is_drawable(*s) && is_drawable(*value)));
    Line { color: one.color, shape: None, dashed, points: points.collect() }
}

fn name(group: &Group, one: &Drawn) -> String {
    format!("{}, {}", group.name(one.run), words::clean(&one.row.id))
}

/// What both ends say, and what it cost.
fn said(soak: &Soak) -> String {
    let mut parts = vec![format!(
        "{} GB/s in the first ten seconds, {} in the last of {}{}",
        words::figure(soak.first_10_s_gbps),
        words::figure(soak.last_10_s_gbps),
        words::duration(soak.run_s * 1e9),
        soak.last_over_first_fraction.map(|fraction| format!(" ({:.2} %)", fraction * 100.0)).unwrap_or_default()
    )];
    parts.extend(soak.joules_per_gb.map(|joules| format!("{} J/GB", words::figure(joules))));
    parts.extend(soak.power_mean_w.map(|watts| format!("{} W on average", words::figure(watts))));
    parts.extend(words::held_back(soak));
    format!("{}.", parts.join("; "))
}
