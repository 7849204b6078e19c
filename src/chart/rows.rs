//! Which rows a chart shows, and what its caption must say about them.

use std::collections::BTreeSet;

use plotters::style::RGBColor;

use super::marks::Symbol;
use super::page::Entry;
use super::{is_drawable, theme, words};
use crate::pattern::{DeviceKind, Level};
use crate::record::{Mark, Measurement, Run};

/// The runs of one chart, all of one kind of device.
pub(super) struct Group<'a> {
    kind: DeviceKind,
    runs: Vec<&'a Run>,
    names: Vec<String>,
}

impl<'a> Group<'a> {
    /// Runs of one kind with their names, which were told apart among all runs given.
    pub(super) fn new(kind: DeviceKind, named: Vec<(&'a Run, String)>) -> Self {
        let (runs, names) = named.into_iter().unzip();
        Self { kind, runs, names }
    }

    /// How many runs there are; they are addressed by number.
    pub(super) fn len(&self) -> usize {
        self.runs.len()
    }

    /// What sort of device they are of.
    pub(super) fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// A run by its number.
    pub(super) fn run(&self, run: usize) -> &'a Run {
        self.runs[run]
    }

    /// The name of a run.
    pub(super) fn name(&self, run: usize) -> &str {
        &self.names[run]
    }

    /// The colour of each run.
    pub(super) fn colors(&self) -> Vec<RGBColor> {
        theme::PALETTE[..self.len()].to_vec()
    }

    /// The row of the case with this id, default size.
    pub(super) fn row(&self, run: usize, id: &str) -> Option<&'a Measurement> {
        self.runs[run].measurements.iter().find(|row| row.id == id)
    }

    /// Items of several runs as one text, each run named once where there are several.
    fn list(&self, items: &[(usize, String)]) -> String {
        self.list_of(items, usize::MAX)
    }

    /// The first of them and how many more there are: a sweep may have a hundred.
    fn list_some(&self, items: &[(usize, String)]) -> String {
        const MOST: usize = 12;
        self.list_of(items, MOST)
    }

    fn list_of(&self, items: &[(usize, String)], most: usize) -> String {
        let of = |run: usize| {
            let mut items: Vec<&str> = items.iter().filter(|(r, _)| *r == run).map(|(_, item)| item.as_str()).collect();
            let more = items.len().saturating_sub(most);
            items.truncate(most);
            let text = items.join(", ");
            if more == 0 { text } else { format!("{text} and {more} more") }
        };
        if self.len() == 1 {
            return of(0);
        }
        (0..self.len())
            .filter(|run| items.iter().any(|(r, _)| r == run))
            .map(|run| format!("{}: {}", self.names[run], of(run)))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

/// The rows of a chart as they are taken in, and those that could not be.
pub(super) struct Rows<'a> {
    group: &'a Group<'a>,
    drawn: Vec<(usize, &'a Measurement)>,
    not_drawn: Vec<(usize, String)>,
    /// Whether the caption names rows that do not show the memory alone.
    names_levels: bool,
}

impl<'a> Rows<'a> {
    pub(super) fn of(group: &'a Group<'a>) -> Self {
        Self { group, drawn: Vec::new(), not_drawn: Vec::new(), names_levels: true }
    }

    /// For a chart whose subject is which level serves what.
    pub(super) fn of_any_level(group: &'a Group<'a>) -> Self {
        Self { names_levels: false, ..Self::of(group) }
    }

    /// Takes in a row that may be drawn; notes one that may not, with the reason.
    pub(super) fn sound(&mut self, run: usize, row: &'a Measurement) -> bool {
        match words::unsound(row) {
            None => {
                self.drawn.push((run, row));
                true
            }
            Some(why) => {
                self.refuse(run, row, why);
                false
            }
        }
    }

    /// Like [`Self::sound`], for figures that are to be the memory's alone.
    pub(super) fn of_memory(&mut self, run: usize, row: &'a Measurement) -> bool {
        if words::unsound(row).is_none() && row.level != Some(Level::Dram) {
            self.refuse(run, row, "not at level dram");
            return false;
        }
        self.sound(run, row)
    }

    /// The rows of these runs that were taken in.
    pub(super) fn drawn(&self, runs: &[usize]) -> Vec<&'a Measurement> {
        self.drawn.iter().filter(|(run, _)| runs.contains(run)).map(|(_, row)| *row).collect()
    }

    /// A figure of a row that was taken in; notes one that is absent or absurd.
    pub(super) fn figure(&mut self, run: usize, row: &Measurement, value: Option<f64>, what: &str) -> Option<f64> {
        let value = value.filter(|v| is_drawable(*v));
        if value.is_none() {
            self.refuse(run, row, &format!("no usable {what}"));
        }
        value
    }

    fn refuse(&mut self, run: usize, row: &Measurement, why: &str) {
        let item = (run, format!("{} ({why})", words::clean(&row.id)));
        if !self.not_drawn.contains(&item) {
            self.not_drawn.push(item);
        }
    }

    /// Why there is nothing to draw of the cases called `what`.
    pub(super) fn nothing(&self, what: &str) -> String {
        self.nothing_of(&format!("of {what} at its default size"))
    }

    /// Why there is nothing to draw of rows that are so.
    pub(super) fn nothing_of(&self, which: &str) -> String {
        if self.not_drawn.is_empty() {
            format!("no run has a row {which}")
        } else {
            format!("no row can be drawn: {}", self.group.list(&self.not_drawn))
        }
    }

    /// The legend: every run with the conditions of its figures; and the
    /// conditions that all runs share, which need not stand in each line. `own`
    /// tells what this chart's rows of a run worked on and refer to.
    pub(super) fn legend(
        &self,
        symbol: impl Fn(RGBColor, usize) -> Symbol,
        own: impl Fn(&Run, &[&Measurement]) -> Vec<String>,
    ) -> (Vec<Entry>, Vec<String>) {
        let programs: Vec<String> = self.group.runs.iter().map(|run| words::program(run)).collect();
        let one_program = programs.iter().all(|program| *program == programs[0]);
        let conditions: Vec<Vec<String>> = self
            .group
            .runs
            .iter()
            .enumerate()
            .map(|(n, run)| {
                let mut conditions = own(run, &self.drawn(&[n]));
                conditions.extend(words::conditions(run));
                if !one_program {
                    conditions.push(format!("measured by {}", programs[n]));
                }
                conditions
            })
            .collect();
        let is_shared = |condition: &String| self.group.len() > 1 && conditions.iter().all(|all| all.contains(condition));
        let shared: Vec<&str> = conditions[0].iter().filter(|condition| is_shared(condition)).map(String::as_str).collect();
        let entries = conditions.iter().zip(self.group.names.iter().zip(theme::PALETTE)).enumerate().map(|(n, (all, (name, color)))| {
            let rest: Vec<&str> = all.iter().filter(|condition| !is_shared(condition)).map(String::as_str).collect();
            Entry { symbol: symbol(color, n), name: name.clone(), conditions: rest.join("; ") }
        });
        let all = if shared.is_empty() { None } else { Some(format!("All: {}.", shared.join("; "))) };
        let program = one_program.then(|| format!("Measured by {}.", programs[0]));
        (entries.collect(), all.into_iter().chain(program).collect())
    }

    /// The caption: what the figures are, what bounds the trust in them, and what is absent.
    pub(super) fn caption(&self, reading: &str, shared: Vec<String>) -> Vec<String> {
        let mut caption = Vec::new();
        if self.group.kind == DeviceKind::Host {
            caption.push(format!("{}. {reading}", words::NOT_A_GPU));
        } else {
            caption.push(reading.to_owned());
        }
        caption.extend(shared);
        for (level, meaning) in [
            (Level::Cache, "the data fit the last cache, so this bandwidth is not the memory's."),
            (Level::Mixed, "the last cache holds part of the data, so this bandwidth is not the memory's alone."),
        ] {
            // Of a latency, the footprint says where it is that of a cache.
            let rows: Vec<_> =
                self.drawn.iter().filter(|(_, row)| self.names_levels && row.level == Some(level) && row.latency_ns.is_none()).collect();
            if rows.len() == self.drawn.len() {
                caption.push(format!("All rows: {meaning}"));
            } else if !rows.is_empty() {
                let rows: Vec<_> = rows.into_iter().map(|(run, row)| (*run, words::clean(&row.id))).collect();
                caption.push(format!("{}: {meaning}", self.group.list(&rows)));
            }
        }
        for (mark, meaning) in [
            (Mark::Unstable, "Unstable, the times or a clock moved"),
            (Mark::Throttled, "Throttled, the clocks were held back"),
            (Mark::Shared, "Shared, another process was on the card"),
        ] {
            let mut marked: Vec<(usize, String)> = Vec::new();
            for (run, row) in self.drawn.iter().filter(|(_, row)| row.marks.contains(&mark)) {
                let item = (*run, words::clean(&row.id));
                if !marked.contains(&item) {
                    marked.push(item);
                }
            }
            if !marked.is_empty() {
                caption.push(format!("{meaning}: {}.", self.group.list_some(&marked)));
            }
        }
        let mut notes: Vec<(usize, String)> = Vec::new();
        for (run, row) in &self.drawn {
            // The numbers behind marks stand in the tables.
            let of_mark = |note: &str| row.marks.iter().any(|mark| words::begins_note_of(*mark, note));
            for note in row.notes.iter().filter(|note| !of_mark(note)).map(|note| (*run, words::clean(note))) {
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        if !notes.is_empty() {
            caption.push(format!("Noted: {}.", self.group.list(&notes)));
        }
        if !self.not_drawn.is_empty() {
            caption.push(format!("Not drawn: {}.", self.group.list_some(&self.not_drawn)));
        }
        if self.group.runs.iter().any(|run| run.suite_version != self.group.runs[0].suite_version) {
            caption.push("The suite versions differ: these figures were measured in different ways.".to_owned());
        }
        caption
    }
}

/// `arrays of 3.75 GiB`, from the parameters of rows.
pub(super) fn array_sizes(rows: &[&Measurement]) -> Option<String> {
    let sizes = || rows.iter().filter_map(|row| row.parameters.get("array_bytes")?.as_u64());
    let (least, most) = (sizes().min()?, sizes().max()?);
    Some(if least == most {
        format!("arrays of {}", words::bytes(most))
    } else {
        format!("arrays of {} to {}", words::bytes(least), words::bytes(most))
    })
}

/// `fma/f32 peak 59836 GFLOP/s`: of each unit that rows ran on, the peak that the run measured.
pub(super) fn arithmetic_peaks(run: &Run, rows: &[&Measurement]) -> Vec<String> {
    let pipes: BTreeSet<&str> = rows.iter().filter_map(|row| row.compute_pipe.as_deref()).collect();
    let peak = |pipe| Some(format!("{} peak {} GFLOP/s", words::clean(pipe), words::figure(run.peaks.compute_measured_gflops(pipe)?)));
    pipes.into_iter().filter_map(peak).collect()
}
