//! Finds the best of the ways in which a case can be written, and how easily that is reached.

use super::sampling::timed;
use super::{Settings, statistics, verify};
use crate::device::{DeviceError, Program};
use crate::pattern::{CacheState, Case, Form, Way, Ways};
use crate::record::{InFlight, Missing, Tuning, TuningSource, known};

/// A way is timed in so many pieces, of which the median counts.
const PIECES: usize = 3;
/// Each of at least this time, in ns.
const PIECE_NS: f64 = 2e6;
/// A way that is so much slower than the best at its first execution is not timed on.
const HOPELESS: f64 = 1.15;
/// Ways timed at most in one search.
const MOST_TRIED: usize = 60;
/// An improvement below this fraction is noise: the search ends.
const IMPROVEMENT_FRACTION: f64 = 0.001;
/// The best are timed again, so many of them, as often, so that none wins by chance.
const FINALISTS: usize = 3;
const FINAL_PIECES: usize = 15;

/// The share of the best bandwidth that is easy to reach, or not.
const EASE_FRACTION: f64 = 0.9;

/// What a search gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The best form.
    pub form: Form,
    /// How many were timed.
    pub tried: u32,
}

/// The time of one execution in this way, in ns; at least that of the first where it is beyond `hopeless_ns`.
fn time(program: &mut dyn Program, way: &Way, pieces: usize, hopeless_ns: f64) -> Result<f64, DeviceError> {
    program.take(way)?;
    program.execute(1)?;
    let first = timed(program, 1)?.ns;
    if first > hopeless_ns {
        return Ok(first);
    }
    let executions = (PIECE_NS / first).ceil().clamp(1.0, 1e4) as u32;
    let mut ns = Vec::with_capacity(pieces);
    for _ in 0..pieces {
        ns.push(timed(program, executions)?.ns / f64::from(executions));
    }
    Ok(statistics::median(&ns))
}

/// Finds the best way; none when `go_on` answers no.
///
/// # Errors
/// When the device fails.
pub fn search(program: &mut dyn Program, ways: &Ways, go_on: &dyn Fn() -> bool) -> Result<Option<Found>, DeviceError> {
    let mut descent = Descent::new(ways);
    while let Some(next) = descent.next() {
        if !go_on() {
            return Ok(None);
        }
        let ns = time(program, next, PIECES, descent.best_ns() * HOPELESS)?;
        descent.note(ns);
    }
    let tried = descent.timed.len() as u32;
    let mut finals = Vec::new();
    for way in descent.finalists() {
        if !go_on() {
            return Ok(None);
        }
        finals.push((time(program, way, FINAL_PIECES, f64::INFINITY)?, way.form));
    }
    let best = finals.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    Ok(Some(Found { form: best.map_or(ways.start, |(_, form)| form), tried }))
}

/// What a form is made of: the kernel, the threads of a block, and the blocks.
const AXES: usize = 3;

/// Coordinate descent: one property of the form after the other takes each value that it may have while the
/// rest stays, and keeps the best, until a round changes nothing. Vector, unroll and hint together are one
/// property: they are which kernel it is.
struct Descent<'a> {
    ways: &'a Ways,
    /// Indices of ways, with the time of each, in ns.
    timed: Vec<(usize, f64)>,
    /// The best when the axis was begun, and what is left to try on it.
    axis: usize,
    due: Vec<usize>,
    /// The best time when the round was begun.
    round_began_ns: f64,
}

impl<'a> Descent<'a> {
    fn new(ways: &'a Ways) -> Self {
        let start = ways.choice.iter().position(|way| way.form == ways.start).unwrap_or_default();
        Self { ways, timed: Vec::new(), axis: 0, due: vec![start], round_began_ns: f64::INFINITY }
    }

    fn best(&self) -> Option<(usize, f64)> {
        self.timed.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn best_ns(&self) -> f64 {
        self.best().map_or(f64::INFINITY, |(_, ns)| ns)
    }

    /// The next way to time; none at the end.
    fn next(&mut self) -> Option<&'a Way> {
        while self.due.is_empty() {
            let best_ns = self.best_ns();
            if self.axis == AXES {
                if best_ns > self.round_began_ns * (1.0 - IMPROVEMENT_FRACTION) {
                    return None;
                }
                self.axis = 0;
            }
            if self.axis == 0 {
                self.round_began_ns = best_ns;
            }
            self.due = self.along(self.axis);
            self.axis += 1;
        }
        let next = self.due.pop().filter(|_| self.timed.len() < MOST_TRIED)?;
        // Its time is not known yet.
        self.timed.push((next, f64::INFINITY));
        self.ways.choice.get(next)
    }

    /// Notes the time of the way that came last.
    fn note(&mut self, ns: f64) {
        if let Some(last) = self.timed.last_mut() {
            last.1 = ns;
        }
    }

    /// The ways not timed yet that differ from the best along one axis only.
    fn along(&self, axis: usize) -> Vec<usize> {
        let Some(best) = self.best().and_then(|(best, _)| self.ways.choice.get(best)) else { return Vec::new() };
        let same = |form: &Form| {
            let kernel = |form: &Form| (form.vector_bytes, form.unroll, form.once);
            let same =
                [kernel(form) == kernel(&best.form), form.block == best.form.block, form.blocks_per_unit == best.form.blocks_per_unit];
            (0..AXES).all(|other| other == axis || same[other])
        };
        let others = self.ways.choice.iter().enumerate().filter(|(_, way)| same(&way.form));
        others.map(|(n, _)| n).filter(|n| self.timed.iter().all(|(timed, _)| timed != n)).collect()
    }

    fn finalists(&self) -> impl Iterator<Item = &'a Way> + use<'a> {
        let mut timed = self.timed.clone();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let ways = self.ways;
        timed.into_iter().take(FINALISTS).filter_map(|(n, _)| ways.choice.get(n))
    }
}

/// What the ways of a measured case tell beside its own figures; none when `go_on` answers no.
///
/// # Errors
/// When the device fails.
pub fn compare(
    program: &mut dyn Program,
    case: &Case,
    ways: &Ways,
    settings: Settings,
    (found, source): (Found, TuningSource),
    best_ns: f64,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Tuning>, DeviceError> {
    if settings.cache == CacheState::Cold {
        let hot = || "on hot caches alone the other ways are timed".to_owned();
        let missing = ["naive_gbps", "ease_kib_per_unit"].map(|field| (field.to_owned(), hot())).into();
        let (naive_gbps, ease_kib_per_unit, in_flight) = (None, None, Vec::new());
        return Ok(Some(Tuning { form: found.form, source, tried: found.tried, naive_gbps, ease_kib_per_unit, in_flight, missing }));
    }
    let gbps = |ns: f64| case.bytes.requested() as f64 / ns;
    let mut in_flight = Vec::with_capacity(ways.ladder.len());
    for rung in &ways.ladder {
        if !go_on() {
            return Ok(None);
        }
        let ns = time(program, &rung.way, PIECES, f64::INFINITY)?;
        in_flight.push(InFlight { kib_per_unit: rung.in_flight_bytes_per_unit as f64 / 1024.0, gbps: gbps(ns) });
    }
    let naive_ns = time(program, &ways.naive, PIECES, f64::INFINITY)?;
    let naive =
        if verify(program, &case.plan, settings.data)?.passed() { Ok(gbps(naive_ns)) } else { Err("its results were wrong".to_owned()) };
    let mut missing = Missing::new();
    let ease = if ways.ladder.is_empty() {
        Err("the case loads nothing".to_owned())
    } else {
        ease_kib(&in_flight, gbps(best_ns)).ok_or_else(|| "not reached with as much in flight as was tried".to_owned())
    };
    Ok(Some(Tuning {
        form: found.form,
        source,
        tried: found.tried,
        naive_gbps: known(&mut missing, "naive_gbps", naive),
        ease_kib_per_unit: known(&mut missing, "ease_kib_per_unit", ease),
        in_flight,
        missing,
    }))
}

/// Where the points, by rising KiB, first come to [`EASE_FRACTION`] of the best, on a straight line between two.
fn ease_kib(points: &[InFlight], best_gbps: f64) -> Option<f64> {
    let wanted = best_gbps * EASE_FRACTION;
    let at = points.iter().position(|point| point.gbps >= wanted)?;
    let reached = points[at];
    let Some(before) = at.checked_sub(1).map(|before| points[before]) else { return Some(reached.kib_per_unit) };
    let share = (wanted - before.gbps) / (reached.gbps - before.gbps);
    Some(before.kib_per_unit + share * (reached.kib_per_unit - before.kib_per_unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{CaseId, Facts, plan};
    use proptest::prelude::*;

    fn ways() -> Ways {
        plan(&CaseId::new("stream/copy/f32"), &Facts::H200).unwrap().ways.unwrap()
    }

    /// Searches where a form takes `ns`, and says what was timed.
    fn searched(ns: impl Fn(&Form) -> f64) -> (Form, usize) {
        let ways = ways();
        let mut descent = Descent::new(&ways);
        while let Some(way) = descent.next() {
            descent.note(ns(&way.form));
        }
        (descent.finalists().next().unwrap().form, descent.timed.len())
    }

    /// Times whose parts do not depend on each other.
    fn separable(best: &Form, form: &Form) -> f64 {
        let blocks = |form: &Form| f64::from(form.blocks_per_unit.unwrap_or(1024));
        let far = |a: f64, b: f64| (a / b).log2().abs();
        let kernel = |form: &Form| (form.vector_bytes, form.unroll, form.once);
        1e6 * (1.0
            + f64::from(u8::from(kernel(best) != kernel(form)))
            + 0.1 * far(f64::from(form.block), f64::from(best.block))
            + 0.1 * far(blocks(form), blocks(best)))
    }

    #[test]
    fn the_best_form_is_found_wherever_it_is_when_its_parts_do_not_depend_on_each_other() {
        for way in &ways().choice {
            let (found, tried) = searched(|form| separable(&way.form, form));
            assert_eq!(found, way.form);
            assert!(tried <= MOST_TRIED, "{tried}");
        }
    }

    proptest! {
        #[test]
        fn whatever_the_times_no_way_is_timed_twice_nor_more_than_allowed_and_the_best_timed_is_found(seed in any::<u64>()) {
            let ways = ways();
            let ns = |n: usize| (seed.wrapping_add(n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 + 1.0;
            let mut descent = Descent::new(&ways);
            while let Some(way) = descent.next() {
                let n = ways.choice.iter().position(|other| other.form == way.form).unwrap();
                descent.note(ns(n));
            }
            let mut timed: Vec<usize> = descent.timed.iter().map(|(n, _)| *n).collect();
            let best = timed.iter().copied().min_by(|&a, &b| ns(a).total_cmp(&ns(b))).unwrap();
            prop_assert_eq!(ns(ways.choice.iter().position(|way| way.form == descent.finalists().next().unwrap().form).unwrap()), ns(best));
            prop_assert!(timed.len() <= MOST_TRIED);
            timed.sort_unstable();
            timed.dedup();
            prop_assert_eq!(timed.len(), descent.timed.len());
        }
    }

    fn points(all: &[(f64, f64)]) -> Vec<InFlight> {
        all.iter().map(|&(kib_per_unit, gbps)| InFlight { kib_per_unit, gbps }).collect()
    }

    #[test]
    fn the_ease_is_where_the_line_between_two_points_crosses_nine_tenths() {
        let points = points(&[(8.0, 400.0), (16.0, 800.0), (32.0, 1000.0)]);
        assert_eq!(ease_kib(&points, 1000.0), Some(24.0));
        assert_eq!(ease_kib(&points, 400.0), Some(8.0));
        assert_eq!(ease_kib(&points, 1200.0), None);
    }

    #[test]
    fn bytes_in_flight_that_come_to_nine_tenths_and_fall_again_count_where_they_came_to_it() {
        let points = points(&[(8.0, 500.0), (16.0, 950.0), (32.0, 850.0), (64.0, 1000.0)]);
        assert!(ease_kib(&points, 1000.0).unwrap() < 16.0);
    }
}
