//! What marks a row whose figures stand, but not to the last percent.

use crate::record::{Mark, Spread, Telemetry};

/// Half-width of the median's 95 % interval, over the median, beyond which a row is unstable: ten
/// times what sampling aims at.
const NOISY_FRACTION: f64 = 0.05;

/// Movement of a clock during the samples (highest less lowest, over the median) beyond which a row
/// is unstable. Boost clocks wander by a few steps of 15 MHz, 2 % of 1980 MHz; an A100 that falls
/// from 1410 to 1275 MHz moves by 10 %, a memory clock by more with each performance state.
const CLOCK_MOVED_FRACTION: f64 = 0.05;

/// Reasons for lower clocks that mean no limit of power or temperature.
const NO_THROTTLE: [&str; 2] = ["GpuIdle", "ApplicationsClocksSetting"];

/// Whether a reason for lower clocks is a limit of power or temperature, or the like.
pub(crate) fn is_limit(reason: &str) -> bool {
    !NO_THROTTLE.contains(&reason)
}

/// The marks of a row, with a note for each that has the number behind it.
pub(super) fn marks(noise_fraction: f64, telemetry: Option<&Telemetry>) -> Vec<(Mark, String)> {
    let mut marks = Vec::new();
    if noise_fraction > NOISY_FRACTION {
        let percent = noise_fraction * 100.0;
        marks.push((
            Mark::Unstable,
            format!("noisy: the median is known to within {percent:.0} % at best; other work ran here, so repeat it on an idle machine"),
        ));
    }
    let Some(telemetry) = telemetry else { return marks };
    for (clock, spread) in [("multiprocessors", telemetry.sm_clock_mhz), ("memory", telemetry.memory_clock_mhz)] {
        marks.extend(spread.and_then(|spread| Some((Mark::Unstable, moved(clock, spread)?))));
    }
    marks.extend(throttled(telemetry).map(|note| (Mark::Throttled, note)));
    if let Some(others) = telemetry.other_processes.filter(|others| *others > 0) {
        let processes = if others == 1 { "1 other process was" } else { &format!("{others} other processes were") };
        marks.push((Mark::Shared, format!("shared: {processes} on the card during the samples; see them with nvidia-smi")));
    }
    marks
}

fn moved(clock: &str, Spread { min, median, max }: Spread) -> Option<String> {
    // Not told as a share of a clock that stood still at zero.
    ((max - min) / median > CLOCK_MOVED_FRACTION)
        .then(|| format!("unstable: the clock of the {clock} moved between {min:.0} and {max:.0} MHz during the samples"))
}

fn throttled(telemetry: &Telemetry) -> Option<String> {
    let reasons = telemetry.throttle_reasons.as_ref()?.iter().filter(|(name, _)| is_limit(name));
    // Rows that are throttled all the time share one note.
    let often = |n: u32| if n == telemetry.readings { "all".to_owned() } else { format!("{n} of {}", telemetry.readings) };
    let told: Vec<String> = reasons.map(|(name, &n)| format!("{name} in {} readings", often(n))).collect();
    (!told.is_empty()).then(|| format!("throttled: the clocks were held back ({})", told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::poll::Stamped;
    use super::super::telemetry::{Sampled, summarise};
    use super::*;
    use crate::device::Reading;

    fn marked(noise_fraction: f64, set: impl Fn(usize, &mut Reading)) -> Vec<(Mark, String)> {
        let one = |i| {
            let mut reading = Reading::untold("not told");
            set(i, &mut reading);
            Stamped { at_s: i as f64, reading }
        };
        let telemetry = summarise(&[one(0), one(1)], Sampled { seconds: 1.0, requested_bytes: Ok(1.0) });
        marks(noise_fraction, Some(&telemetry))
    }

    fn only(marks: Vec<(Mark, String)>) -> Option<(Mark, String)> {
        assert!(marks.len() <= 1, "{marks:?}");
        marks.into_iter().next()
    }

    #[test]
    fn a_quiet_row_whose_sensors_tell_nothing_has_no_mark() {
        assert_eq!(marked(0.05, |_, _| ()), []);
        assert_eq!(marks(0.05, None), []);
    }

    #[test]
    fn noise_beyond_5_percent_is_unstable_with_its_number() {
        let (mark, note) = only(marks(0.07, None)).unwrap();
        assert!(mark == Mark::Unstable && note.contains("within 7 %"), "{note}");
    }

    #[test]
    fn a_clock_that_moved_by_more_than_5_percent_is_unstable_with_both_ends() {
        assert_eq!(marked(0.0, |i, r| r.sm_clock_mhz = Ok([1980.0, 1890.0][i])), []);
        let (mark, note) = only(marked(0.0, |i, r| r.sm_clock_mhz = Ok([1410.0, 1275.0][i]))).unwrap();
        assert!(mark == Mark::Unstable && note.contains("multiprocessors moved between 1275 and 1410 MHz"), "{note}");
        let (mark, note) = only(marked(0.0, |i, r| r.memory_clock_mhz = Ok([10_501.0, 9501.0][i]))).unwrap();
        assert!(mark == Mark::Unstable && note.contains("memory moved between 9501 and 10501 MHz"), "{note}");
    }

    #[test]
    fn idle_and_a_setting_are_no_throttle_and_any_other_reason_is() {
        let with = |reasons: &[&str]| {
            let reasons: Vec<String> = reasons.iter().map(|&reason| reason.into()).collect();
            only(marked(0.0, move |i, r| r.throttle_reasons = Ok(if i == 0 { reasons.clone() } else { Vec::new() })))
        };
        assert_eq!(with(&["GpuIdle", "ApplicationsClocksSetting"]), None);
        let (mark, note) = with(&["GpuIdle", "SwThermalSlowdown"]).unwrap();
        assert!(mark == Mark::Throttled && note.contains("(SwThermalSlowdown in 1 of 2 readings)"), "{note}");
        assert!(with(&["0x10000000000"]).is_some());
        let (_, note) = only(marked(0.0, |_, r| r.throttle_reasons = Ok(vec!["SwPowerCap".into()]))).unwrap();
        assert!(note.contains("(SwPowerCap in all readings)"), "{note}");
    }

    #[test]
    fn another_process_on_the_card_is_told_with_their_number() {
        assert_eq!(marked(0.0, |_, r| r.other_processes = Ok(0)), []);
        let (mark, note) = only(marked(0.0, |_, r| r.other_processes = Ok(2))).unwrap();
        assert!(mark == Mark::Shared && note.contains("2 other processes were"), "{note}");
    }
}
