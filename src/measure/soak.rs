//! A case without a pause for a long time: what becomes of its bandwidth as the device gets hot.

use std::time::Duration;

use super::marks::is_limit;
use super::poll::{INTERVAL, Poller, Stamped};
use super::sampling::timed;
use super::statistics::median;
use super::telemetry::{Sampled, highest, summarise, told};
use crate::device::{DeviceError, Program, Sensors, Verification};
use crate::record::{Missing, Soak, SoakInterval, Telemetry, known};

/// A soak that was asked for.
#[derive(Clone, Copy)]
pub struct Soaking<'a> {
    /// For how long, in seconds.
    pub seconds: u64,
    /// Is told how many of them are over, several times a second.
    pub on: &'a dyn Fn(f64),
}

/// The length of a timed piece, ns: several a second, and beside it the microseconds between two are nothing.
const PIECE_NS: f64 = 250e6;
/// Stretches that a document stores at most.
const MOST_INTERVALS: f64 = 120.0;
/// Shorter ones would hold one piece each.
const LEAST_INTERVAL_S: f64 = 0.5;
/// Readings that are kept at most: 50 for each stretch.
const MOST_READINGS: f64 = 6000.0;
/// What is compared at both ends, in seconds.
const END_S: f64 = 10.0;

/// What the device gave in a soak.
pub(super) struct Soaked {
    asked_s: u64,
    pieces: Vec<Piece>,
    readings: Result<Vec<Stamped>, String>,
    /// Whether the results of the last execution were right, checked as they were.
    pub verification: Verification,
}

/// Executions that were timed as one.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// When it began, in seconds of work since the soak began.
    at_s: f64,
    seconds: f64,
    executions: u32,
    sm_clock_mhz: Option<f64>,
    /// How many readings of the sensors there were by its end.
    readings: usize,
}

/// Has a warm program, an execution of which takes about `execution_ns`, work for the time that is asked for, by the
/// device's clock.
///
/// `go_on` is asked before each piece; the result is none once it answers no.
///
/// # Errors
/// When the device fails.
pub(super) fn soak(
    program: &mut dyn Program,
    execution_ns: f64,
    Soaking { seconds: asked_s, on }: Soaking,
    sensors: Result<Box<dyn Sensors>, String>,
    go_on: &dyn Fn() -> bool,
) -> Result<Option<Soaked>, DeviceError> {
    let executions = (PIECE_NS / execution_ns).floor().clamp(1.0, 1e6) as u32;
    // A day of readings every 20 ms would fill the memory.
    let interval = INTERVAL.max(Duration::from_secs_f64(asked_s as f64 / MOST_READINGS));
    let poller = sensors.and_then(|sensors| Poller::every(interval, sensors));
    let (mut pieces, mut readings) = (Vec::new(), Vec::new());
    let mut spent_s = 0.0;
    while spent_s < asked_s as f64 {
        if !go_on() {
            return Ok(None);
        }
        let timing = timed(program, executions)?;
        readings.extend(poller.iter().flat_map(Poller::so_far));
        let piece =
            Piece { at_s: spent_s, seconds: timing.ns / 1e9, executions, sm_clock_mhz: timing.sm_clock_mhz, readings: readings.len() };
        spent_s += piece.seconds;
        pieces.push(piece);
        on(spent_s);
    }
    let readings = match poller.and_then(Poller::end) {
        Ok((rest, _)) => Ok([readings, rest].concat()),
        // Of sensors that hang at last, what they told before stands.
        Err(why) => {
            if readings.is_empty() {
                Err(why)
            } else {
                Ok(readings)
            }
        }
    };
    Ok(Some(Soaked { asked_s, pieces, readings, verification: program.check()? }))
}

impl Soaked {
    /// As a row keeps it. An execution requests `requested_bytes`, by which energy is divided unless there is a reason
    /// not to; `no_clock` is why the clock of the multiprocessors is not known, where it is not.
    pub fn summarise(&self, requested_bytes: u64, no_energy_for_each_byte: Option<&'static str>, no_clock: &str) -> Soak {
        let mut missing = Missing::new();
        let run_s: f64 = self.pieces.iter().map(|piece| piece.seconds).sum();
        let gbps = |(executions, seconds): (f64, f64)| requested_bytes as f64 * executions / seconds / 1e9;
        let [first, last] = [gbps(work(self.pieces.iter(), END_S)), gbps(work(self.pieces.iter().rev(), END_S))];
        let ratio = if run_s < 2.0 * END_S { Err("the first and the last ten seconds overlap".to_owned()) } else { Ok(last / first) };

        let all_bytes = requested_bytes as f64 * work(self.pieces.iter(), f64::INFINITY).0;
        let sampled = Sampled { seconds: run_s, requested_bytes: no_energy_for_each_byte.map_or(Ok(all_bytes), Err) };
        let summary = self.readings.as_deref().map_err(Clone::clone).map(|readings| summarise(readings, sampled));
        let intervals = self.intervals(gbps, no_clock, &mut missing);
        let throttled = self.readings.as_deref().map_err(Clone::clone).and_then(throttled_fraction);
        let m = &mut missing;
        Soak {
            asked_s: self.asked_s,
            run_s,
            first_10_s_gbps: first,
            last_10_s_gbps: last,
            last_over_first_fraction: known(m, "last_over_first_fraction", ratio),
            joules_per_gb: of(&summary, m, "joules_per_gb", |told| told.joules_per_gb),
            picojoules_per_bit: of(&summary, m, "picojoules_per_bit", |told| told.picojoules_per_bit),
            energy_source: of(&summary, m, "energy_source", |told| told.energy_source),
            power_mean_w: of(&summary, m, "power_mean_w", |told| told.power_mean_w),
            power_max_w: of(&summary, m, "power_max_w", |told| told.power_max_w),
            temperature_gpu_max_c: of(&summary, m, "temperature_gpu_max_c", |told| told.temperature_gpu_max_c),
            temperature_memory_max_c: of(&summary, m, "temperature_memory_max_c", |told| told.temperature_memory_max_c),
            throttled_fraction: known(m, "throttled_fraction", throttled),
            throttle_reasons: of(&summary, m, "throttle_reasons", |told| {
                let share = |n: u32| f64::from(n) / f64::from(told.readings);
                Some(told.throttle_reasons.as_ref()?.iter().map(|(name, n)| (name.clone(), share(*n))).collect())
            }),
            intervals,
            missing,
        }
    }

    /// The stretches, with the reasons for what they lack; `gbps` makes a bandwidth of executions and seconds.
    fn intervals(&self, gbps: impl Fn((f64, f64)) -> f64, no_clock: &str, missing: &mut Missing) -> Vec<SoakInterval> {
        let width_s = (self.asked_s as f64 / MOST_INTERVALS).max(LEAST_INTERVAL_S);
        let place = |piece: &Piece| (piece.at_s / width_s).floor().min(MOST_INTERVALS - 1.0);
        let mut from = 0;
        let stretches = self.pieces.chunk_by(|a, b| place(a) == place(b));
        let interval = |pieces: &[Piece]| {
            let until = pieces.last().map_or(from, |last| last.readings);
            let readings = self.readings.as_ref().map(|readings| &readings[from..until]).map_err(Clone::clone);
            from = until;
            let clocks: Vec<f64> = pieces.iter().filter_map(|piece| piece.sm_clock_mhz).collect();
            let mut of = |field: &str, value: Result<f64, String>| known(missing, &format!("intervals.{field}"), value);
            let memory_clock = readings.clone().and_then(|r| told(r, |r| r.memory_clock_mhz.clone())).map(|mhz| median(&mhz));
            let temperature_gpu = readings.clone().and_then(|r| told(r, |r| r.temperature_gpu_c.clone())).map(highest);
            let temperature_memory = readings.clone().and_then(|r| told(r, |r| r.temperature_memory_c.clone())).map(highest);
            let power = readings.clone().and_then(|r| told(r, |r| r.power_w.clone().map(|(watts, _)| watts))).map(mean);
            SoakInterval {
                start_s: pieces.first().map_or(0.0, |first| first.at_s),
                achieved_gbps: gbps(work(pieces.iter(), f64::INFINITY)),
                sm_clock_mhz: of("sm_clock_mhz", if clocks.is_empty() { Err(no_clock.to_owned()) } else { Ok(median(&clocks)) }),
                memory_clock_mhz: of("memory_clock_mhz", memory_clock),
                temperature_gpu_c: of("temperature_gpu_c", temperature_gpu),
                temperature_memory_c: of("temperature_memory_c", temperature_memory),
                power_w: of("power_w", power),
                throttled_fraction: of("throttled_fraction", readings.and_then(throttled_fraction)),
            }
        };
        stretches.map(interval).collect()
    }
}

/// Executions and seconds of pieces, until these fill `most_s`.
fn work<'a>(pieces: impl Iterator<Item = &'a Piece>, most_s: f64) -> (f64, f64) {
    let (mut executions, mut seconds) = (0.0, 0.0);
    for piece in pieces {
        if seconds >= most_s {
            break;
        }
        executions += f64::from(piece.executions);
        seconds += piece.seconds;
    }
    (executions, seconds)
}

/// What a summary tells, or its reason for not telling it.
fn of<T>(summary: &Result<Telemetry, String>, missing: &mut Missing, field: &str, value: impl Fn(&Telemetry) -> Option<T>) -> Option<T> {
    let value = summary.as_ref().map_err(Clone::clone).and_then(|told| {
        let why = || told.missing.get(field).cloned().unwrap_or_default();
        value(told).ok_or_else(why)
    });
    known(missing, field, value)
}

/// The share of readings in which a limit held the clocks back.
fn throttled_fraction(readings: &[Stamped]) -> Result<f64, String> {
    let reasons = told(readings, |reading| reading.throttle_reasons.clone())?;
    let held_back = reasons.iter().filter(|names| names.iter().any(|name| is_limit(name))).count();
    Ok(held_back as f64 / reasons.len() as f64)
}

fn mean(values: Vec<f64>) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::device::Reading;
    use crate::measure::testing::Steady;
    use crate::record::{EnergySource, PowerSource};

    /// A soak of a device whose every execution takes `ns`; it has no sensors.
    fn soaked(ns: f64, seconds: u64) -> Soaked {
        let mut device = Steady { ns, ..Steady::default() };
        soak(&mut &mut device, ns, Soaking { seconds, on: &|_| () }, Err("no sensors".into()), &|| true).unwrap().unwrap()
    }

    /// Pieces of a second each, of so many executions, with a reading in each that differs from one in which nothing is told.
    fn made(asked_s: u64, executions: impl Fn(usize) -> u32, with: impl Fn(usize, &mut Reading)) -> Soaked {
        let seconds = 0..asked_s as usize;
        let pieces = seconds.clone().map(|n| Piece {
            at_s: n as f64,
            seconds: 1.0,
            executions: executions(n),
            sm_clock_mhz: Some(1980.0 - n as f64),
            readings: n + 1,
        });
        let readings = seconds.map(|n| {
            let mut reading = Reading::untold("not told here");
            with(n, &mut reading);
            Stamped { at_s: n as f64, reading }
        });
        let verification = Verification { mismatches: 0, first_bad: None, stray: 0 };
        Soaked { asked_s, pieces: pieces.collect(), readings: Ok(readings.collect()), verification }
    }

    #[test]
    fn the_device_works_for_the_time_asked_in_pieces_of_which_there_are_several_a_second() {
        for ns in [1000.0, 2e6, 240e6] {
            let soaked = soaked(ns, 30);
            let run_s: f64 = soaked.pieces.iter().map(|piece| piece.seconds).sum();
            assert!((30.0..30.5).contains(&run_s), "{run_s}");
            assert!(ns < 1e6 || soaked.pieces.iter().all(|piece| (0.1..=0.5).contains(&piece.seconds)), "{ns}");
        }
        // Executions that are longer than that are a piece each.
        assert_eq!(soaked(700e6, 10).pieces.len(), 15);
    }

    #[test]
    fn whatever_the_time_the_points_are_120_at_most_and_the_readings_bounded() {
        for seconds in [10, 60, 61, 119, 600, 86_400] {
            let soak = soaked(250e6, seconds).summarise(1, None, "no clock");
            assert!((20..=120).contains(&soak.intervals.len()), "{seconds}: {}", soak.intervals.len());
            assert!(soak.intervals.windows(2).all(|pair| pair[0].start_s < pair[1].start_s));
            let shares: Vec<f64> = soak.intervals.iter().map(|interval| interval.achieved_gbps * 0.25e9).collect();
            assert!(shares.iter().all(|bytes| (bytes - 1.0).abs() < 1e-9), "{shares:?}");
        }
    }

    #[test]
    fn the_ends_are_ten_seconds_each_and_their_ratio_shows_what_was_lost() {
        // 100 executions a second, and 90 in the last ten seconds.
        let soak = made(60, |n| if n < 50 { 100 } else { 90 }, |_, _| ()).summarise(1_000_000_000, None, "");
        assert_eq!((soak.first_10_s_gbps, soak.last_10_s_gbps, soak.last_over_first_fraction), (100.0, 90.0, Some(0.9)));
        assert_eq!((soak.asked_s, soak.run_s, soak.intervals.len()), (60, 60.0, 60));
        assert_eq!((soak.intervals[7].start_s, soak.intervals[7].sm_clock_mhz), (7.0, Some(1973.0)));
    }

    #[test]
    fn ends_that_overlap_are_not_compared() {
        let soak = made(19, |_| 1, |_, _| ()).summarise(1, None, "");
        assert_eq!(soak.last_over_first_fraction, None);
        assert!(soak.missing["last_over_first_fraction"].contains("overlap"));
        assert!(made(20, |_| 1, |_, _| ()).summarise(1, None, "").last_over_first_fraction.is_some());
    }

    #[test]
    fn without_sensors_there_is_bandwidth_over_time_and_a_reason_for_all_else() {
        let mut soaked = soaked(2e6, 60);
        soaked.pieces.iter_mut().for_each(|piece| piece.sm_clock_mhz = None);
        let soak = soaked.summarise(1, None, "no clock here");
        assert!(soak.intervals.iter().all(|interval| interval.achieved_gbps > 0.0));
        assert_eq!(soak.missing["intervals.sm_clock_mhz"], "no clock here");
        let json = serde_json::to_value(&soak).unwrap();
        let nulls = |prefix: &str, value: &serde_json::Value| {
            for (field, value) in value.as_object().unwrap() {
                let reason = soak.missing.get(&format!("{prefix}{field}"));
                assert_eq!(value.is_null(), reason.is_some(), "{prefix}{field}");
                assert!(reason.is_none_or(|reason| reason == "no sensors" || field == "sm_clock_mhz"), "{reason:?}");
            }
        };
        nulls("", &json);
        nulls("intervals.", &json["intervals"][0]);
    }

    #[test]
    fn each_point_has_the_readings_of_its_own_time() {
        let soak = made(
            240,
            |_| 1,
            |n, reading| {
                reading.temperature_gpu_c = Ok(30.0 + n as f64);
                reading.power_w = Ok((600.0 + n as f64, PowerSource::Instant));
                reading.memory_clock_mhz = Ok(3201.0);
                // From the middle on a limit; idleness is none.
                reading.throttle_reasons = Ok(vec![if n < 120 { "GpuIdle" } else { "SwThermalSlowdown" }.to_owned()]);
            },
        )
        .summarise(1_000_000_000, None, "");
        assert_eq!(soak.intervals.len(), 120);
        let at = &soak.intervals[10];
        assert_eq!((at.start_s, at.temperature_gpu_c, at.power_w, at.memory_clock_mhz), (20.0, Some(51.0), Some(620.5), Some(3201.0)));
        assert_eq!((at.throttled_fraction, soak.intervals[60].throttled_fraction), (Some(0.0), Some(1.0)));
        assert_eq!((soak.temperature_gpu_max_c, soak.power_max_w, soak.power_mean_w), (Some(269.0), Some(839.0), Some(719.5)));
        assert_eq!(soak.throttled_fraction, Some(0.5));
        assert_eq!(soak.throttle_reasons.unwrap()["SwThermalSlowdown"], 0.5);
        assert_eq!(soak.missing["intervals.temperature_memory_c"], "not told here");
        assert!(!soak.missing.contains_key("intervals.power_w"));
    }

    #[test]
    fn the_energy_is_that_of_the_counter_over_all_bytes() {
        let counting = |n: usize, reading: &mut Reading| reading.energy_counter_j = Ok(500.0 * n as f64);
        let soak = made(100, |_| 4, counting).summarise(1_000_000_000_000, None, "");
        // 500 W over 4 TB a second.
        assert_eq!((soak.joules_per_gb, soak.picojoules_per_bit), (Some(0.125), Some(15.625)));
        assert_eq!(soak.energy_source, Some(EnergySource::Counter));
        let soak = made(100, |_| 4, counting).summarise(1, Some("not of the memory"), "");
        assert_eq!((soak.joules_per_gb, soak.missing["joules_per_gb"].as_str()), (None, "not of the memory"));
    }

    #[test]
    fn it_tells_how_far_it_is_and_an_interruption_ends_it_without_a_result() {
        let mut device = Steady { ns: 250e6, ..Steady::default() };
        let (told, left) = (RefCell::new(Vec::new()), Cell::new(3));
        let go_on = || left.replace(left.get() - 1) > 0;
        let soaking = Soaking { seconds: 10, on: &|seconds| told.borrow_mut().push(seconds) };
        assert!(soak(&mut &mut device, 250e6, soaking, Err(String::new()), &go_on).unwrap().is_none());
        assert_eq!(*told.borrow(), [0.25, 0.5, 0.75]);
    }

    #[test]
    fn a_device_that_fails_ends_it() {
        let mut device = Steady { ns: f64::NAN, ..Steady::default() };
        let outcome = soak(&mut &mut device, 1e6, Soaking { seconds: 10, on: &|_| () }, Err(String::new()), &|| true);
        assert!(outcome.is_err());
    }
}
