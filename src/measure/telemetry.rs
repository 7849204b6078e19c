//! From the readings of a device's sensors to the telemetry of a row.

use std::collections::{BTreeMap, BTreeSet};

use super::poll::Stamped;
use super::statistics::{quantile, sorted};
use crate::device::Reading;
use crate::record::{EnergySource, Missing, PowerSource, Spread, Telemetry, known};

/// What the samples were, for the energy that they took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sampled {
    /// The time of all of them, in seconds.
    pub seconds: f64,
    /// Requested bytes of all of them; or why energy is not to be divided by these.
    pub requested_bytes: Result<f64, &'static str>,
}

/// The largest error of an energy from the counter that is better than a mean of power readings,
/// which follow the load with some delay.
const MOST_UNCERTAIN: f64 = 0.25;

/// Summarises the readings of a case; there must be at least one.
pub(super) fn summarise(readings: &[Stamped], sampled: Sampled) -> Telemetry {
    let mut missing = Missing::new();
    let m = &mut missing;
    let powers = told(readings, |r| r.power_w.clone());
    let watts = powers.clone().map(|powers| powers.into_iter().map(|(watts, _)| watts).collect::<Vec<_>>());
    // The mean is of one kind only if all readings are.
    let source = powers.map(|powers| {
        if powers.iter().all(|(_, source)| *source == PowerSource::Instant) { PowerSource::Instant } else { PowerSource::Average }
    });
    let mean_watts = watts.clone().map(|watts| watts.iter().sum::<f64>() / watts.len() as f64);
    let by_counter = counter_power(readings);
    let energy = match (&by_counter, &mean_watts) {
        (Ok(counter), _) => Ok((counter.watts, EnergySource::Counter)),
        (Err(_), Ok(watts)) => Ok((*watts, EnergySource::Power)),
        (Err(no_counter), Err(no_power)) => Err(format!("neither counter nor power: {no_counter}; {no_power}")),
    };
    let energy_j = energy.clone().map(|(watts, _)| watts * sampled.seconds);
    let joules_per_gb = energy_j.clone().and_then(|joules| Ok(joules / (sampled.requested_bytes? / 1e9)));
    Telemetry {
        readings: u32::try_from(readings.len()).unwrap_or(u32::MAX),
        sm_clock_mhz: known(m, "sm_clock_mhz", told(readings, |r| r.sm_clock_mhz.clone()).map(spread)),
        memory_clock_mhz: known(m, "memory_clock_mhz", told(readings, |r| r.memory_clock_mhz.clone()).map(spread)),
        performance_states: known(m, "performance_states", told(readings, |r| r.performance_state.clone()).map(distinct)),
        throttle_reasons: known(m, "throttle_reasons", told(readings, |r| r.throttle_reasons.clone()).map(counted)),
        temperature_gpu_max_c: known(m, "temperature_gpu_max_c", told(readings, |r| r.temperature_gpu_c.clone()).map(highest)),
        temperature_memory_max_c: known(m, "temperature_memory_max_c", told(readings, |r| r.temperature_memory_c.clone()).map(highest)),
        power_mean_w: known(m, "power_mean_w", mean_watts),
        power_max_w: known(m, "power_max_w", watts.map(highest)),
        power_source: known(m, "power_source", source),
        energy_j: known(m, "energy_j", energy_j),
        energy_source: known(m, "energy_source", energy.map(|(_, source)| source)),
        energy_uncertainty_fraction: known(m, "energy_uncertainty_fraction", by_counter.map(|counter| counter.uncertainty_fraction)),
        picojoules_per_bit: known(m, "picojoules_per_bit", joules_per_gb.clone().map(|joules| joules * 125.0)),
        joules_per_gb: known(m, "joules_per_gb", joules_per_gb),
        pcie_generation: known(m, "pcie_generation", most(readings, |r| r.pcie_generation.clone())),
        pcie_width: known(m, "pcie_width", most(readings, |r| r.pcie_width.clone())),
        other_processes: known(m, "other_processes", most(readings, |r| r.other_processes.clone())),
        missing,
    }
}

/// What a sensor told, in all readings in which it did: at least one value, or the last reason.
pub(super) fn told<T>(readings: &[Stamped], of: impl Fn(&Reading) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    let mut reason = "there was no reading".to_owned();
    for stamped in readings {
        match of(&stamped.reading) {
            Ok(value) => values.push(value),
            Err(error) => reason = error,
        }
    }
    if values.is_empty() { Err(reason) } else { Ok(values) }
}

fn spread(values: Vec<f64>) -> Spread {
    let sorted = sorted(&values);
    Spread { min: quantile(&sorted, 0.0), median: quantile(&sorted, 0.5), max: quantile(&sorted, 1.0) }
}

pub(super) fn highest(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

fn most(readings: &[Stamped], of: impl Fn(&Reading) -> Result<u32, String>) -> Result<u32, String> {
    told(readings, of).map(|values| values.into_iter().max().unwrap_or_default())
}

fn distinct(values: Vec<u32>) -> Vec<u32> {
    values.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

fn counted(readings: Vec<Vec<String>>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for name in readings.into_iter().flatten() {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// What the energy counter says of the mean power.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CounterPower {
    watts: f64,
    uncertainty_fraction: f64,
}

/// Mean power between the first and the last step of the energy counter that readings show.
///
/// The counter stands still for up to 100 ms and then takes a step, so its difference between the
/// ends of the samples would mean little. A step happened between two readings and is put at the
/// later one, which makes the time between two steps wrong by one gap between readings at most.
fn counter_power(readings: &[Stamped]) -> Result<CounterPower, String> {
    let mut values = Vec::new();
    for stamped in readings {
        values.push((stamped.at_s, stamped.reading.energy_counter_j.clone()?));
    }
    let steps: Vec<_> = values.windows(2).filter(|pair| pair[1].1 > pair[0].1).map(|pair| (pair[1], pair[1].0 - pair[0].0)).collect();
    let (Some(&((first_s, first_j), first_gap_s)), Some(&((last_s, last_j), last_gap_s))) = (steps.first(), steps.last()) else {
        return Err("the energy counter took no step while the samples lasted".into());
    };
    let seconds = last_s - first_s;
    let uncertainty_fraction = first_gap_s.max(last_gap_s) / seconds;
    // Not "greater than": one step alone makes no time, and no number of this.
    if seconds > 0.0 && uncertainty_fraction <= MOST_UNCERTAIN {
        Ok(CounterPower { watts: (last_j - first_j) / seconds, uncertainty_fraction })
    } else {
        Err(format!("the energy counter took {} steps while the samples lasted, too few to tell a time between them", steps.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Sampled = Sampled { seconds: 1.0, requested_bytes: Ok(4e12) };

    /// Readings every 20 ms that differ from one in which nothing is told.
    fn readings(n: u32, with: impl Fn(u32, &mut Reading)) -> Vec<Stamped> {
        let one = |i| {
            let mut reading = Reading::untold("not told here");
            with(i, &mut reading);
            Stamped { at_s: f64::from(i) * 0.02, reading }
        };
        (0..n).map(one).collect()
    }

    #[test]
    fn every_field_is_a_value_or_has_a_reason() {
        let nothing = summarise(&readings(3, |_, _| ()), SECOND);
        let json = serde_json::to_value(&nothing).unwrap();
        for (field, value) in json.as_object().unwrap() {
            let has_reason = json["missing"][field].as_str().is_some_and(|reason| reason.contains("not told here"));
            assert!(value.is_null() == has_reason, "{field}");
        }
        assert_eq!(nothing.missing.len(), json.as_object().unwrap().len() - 2);
    }

    #[test]
    fn a_sensor_that_fails_now_and_then_is_told_by_the_other_readings() {
        let telemetry = summarise(
            &readings(4, |i, reading| {
                if i % 2 == 1 {
                    reading.temperature_gpu_c = Ok(f64::from(40 + i));
                }
            }),
            SECOND,
        );
        assert_eq!(telemetry.temperature_gpu_max_c, Some(43.0));
        assert!(!telemetry.missing.contains_key("temperature_gpu_max_c"));
    }

    #[test]
    fn clocks_are_spreads_states_and_reasons_are_sets_and_counts_are_the_most() {
        let telemetry = summarise(
            &readings(3, |i, reading| {
                reading.sm_clock_mhz = Ok([1980.0, 1410.0, 1965.0][i as usize]);
                reading.performance_state = Ok([2, 0, 2][i as usize]);
                reading.throttle_reasons =
                    Ok([vec!["SwPowerCap".into()], vec![], vec!["SwPowerCap".into(), "GpuIdle".into()]][i as usize].clone());
                reading.other_processes = Ok([0, 2, 1][i as usize]);
            }),
            SECOND,
        );
        assert_eq!(telemetry.sm_clock_mhz, Some(Spread { min: 1410.0, median: 1965.0, max: 1980.0 }));
        assert_eq!(telemetry.performance_states, Some(vec![0, 2]));
        assert_eq!(telemetry.throttle_reasons, Some([("GpuIdle".into(), 1), ("SwPowerCap".into(), 2)].into()));
        assert_eq!(telemetry.other_processes, Some(2));
    }

    #[test]
    fn energy_without_a_counter_is_mean_power_over_the_time_of_the_samples() {
        let telemetry = summarise(
            &readings(2, |i, reading| reading.power_w = Ok(([400.0, 600.0][i as usize], PowerSource::Instant))),
            Sampled { seconds: 0.5, ..SECOND },
        );
        assert_eq!((telemetry.power_mean_w, telemetry.power_max_w), (Some(500.0), Some(600.0)));
        assert_eq!((telemetry.energy_j, telemetry.energy_source), (Some(250.0), Some(EnergySource::Power)));
        // 250 J for 4000 GB.
        assert_eq!(telemetry.joules_per_gb, Some(0.0625));
        assert_eq!(telemetry.picojoules_per_bit, Some(7.8125));
        assert!(telemetry.missing["energy_uncertainty_fraction"].contains("not told here"));
    }

    #[test]
    fn a_power_that_is_averaged_once_is_called_averaged() {
        let mixed = |i: u32, reading: &mut Reading| {
            reading.power_w = Ok((300.0, if i == 1 { PowerSource::Average } else { PowerSource::Instant }));
        };
        assert_eq!(summarise(&readings(1, mixed), SECOND).power_source, Some(PowerSource::Instant));
        assert_eq!(summarise(&readings(3, mixed), SECOND).power_source, Some(PowerSource::Average));
    }

    #[test]
    fn a_counter_that_moves_in_steps_is_read_between_its_steps() {
        // 500 W, told anew every 100 ms: 50 J a step.
        let stepped = |i: u32, reading: &mut Reading| {
            reading.energy_counter_j = Ok(1000.0 + f64::from(i / 5) * 50.0);
            reading.power_w = Ok((100.0, PowerSource::Average));
        };
        let telemetry = summarise(&readings(24, stepped), SECOND);
        assert_eq!(telemetry.energy_source, Some(EnergySource::Counter));
        assert!((telemetry.energy_j.unwrap() - 500.0).abs() < 1e-6, "{telemetry:?}");
        // Steps at 100 and 400 ms, each known to 20 ms.
        assert!((telemetry.energy_uncertainty_fraction.unwrap() - 0.02 / 0.3).abs() < 1e-9);
    }

    #[test]
    fn a_counter_with_too_few_steps_leaves_the_energy_to_the_power() {
        for n in [1, 5, 6, 10] {
            let telemetry = summarise(
                &readings(n, |i, reading| {
                    reading.energy_counter_j = Ok(f64::from(i / 5) * 50.0);
                    reading.power_w = Ok((700.0, PowerSource::Instant));
                }),
                SECOND,
            );
            assert_eq!((telemetry.energy_j, telemetry.energy_source), (Some(700.0), Some(EnergySource::Power)), "{n}");
            assert!(telemetry.missing["energy_uncertainty_fraction"].contains("counter"), "{n}");
        }
    }

    #[test]
    fn bytes_that_mean_nothing_leave_energy_without_a_quotient() {
        let telemetry = summarise(
            &readings(1, |_, reading| reading.power_w = Ok((700.0, PowerSource::Instant))),
            Sampled { requested_bytes: Err("not the memory's"), ..SECOND },
        );
        assert_eq!((telemetry.energy_j, telemetry.joules_per_gb), (Some(700.0), None));
        assert_eq!(telemetry.missing["joules_per_gb"], "not the memory's");
        assert_eq!(telemetry.missing["picojoules_per_bit"], "not the memory's");
    }
}
