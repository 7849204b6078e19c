//! Cards that drive a display, and all cards on some systems, have a driver that ends a kernel after
//! a few seconds and takes the context with it.

use super::{Case, Facts, PlanError, Work};

/// The longest that a launch may take on such a card, in seconds: half of what the strictest driver grants.
const MOST_S: f64 = 1.0;
/// What one multiprocessor moves and computes at the least, by the slowest kernels on the slowest cards:
/// a quarter of the f32 rate at 1 GHz, and less than a tenth of what GDDR cards grant it of their bandwidth.
const LEAST_FLOPS_PER_UNIT: f64 = 32e9;
const LEAST_BYTES_PER_S_PER_UNIT: f64 = 1e9;

/// The longest that one execution of the case may take, in seconds.
fn longest_s(case: &Case, facts: &Facts) -> f64 {
    let launched = match &case.plan.work {
        Work::Kernel(launch) => launch.grid,
        _ => facts.units,
    };
    let units = f64::from(launched.min(facts.units).max(1));
    let moved = case.bytes.requested().max(case.bytes.compulsory) as f64;
    case.flops as f64 / (units * LEAST_FLOPS_PER_UNIT) + moved / (units * LEAST_BYTES_PER_S_PER_UNIT)
}

/// Refuses a case that the driver might end.
///
/// # Errors
/// [`PlanError::TooLarge`] where the driver limits launches and the case might exceed it.
pub fn fits_a_launch(case: &Case, facts: &Facts) -> Result<(), PlanError> {
    let longest_s = longest_s(case, facts);
    if !facts.launch_limited || longest_s <= MOST_S {
        return Ok(());
    }
    Err(PlanError::TooLarge(format!(
        "'{}' might run for {longest_s:.1} s, and the driver of this card, which may drive a display, ends kernels after a few seconds: choose a smaller size",
        case.id
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{CaseId, PATTERNS, Profile, plan};

    const SMALL: Facts = Facts { units: 14, cache_bytes: Some(1 << 20), free_bytes: 3 << 30, launch_limited: true, ..Facts::H200 };

    #[test]
    fn only_a_card_with_a_limit_refuses_a_launch_that_might_exceed_it() {
        let long = CaseId::new("stream/write/f32@17179869184");
        let limited = |launch_limited| plan(&long, &Facts { units: 14, launch_limited, ..Facts::H200 });
        assert!(limited(false).is_ok());
        let refused = limited(true).unwrap_err();
        assert!(matches!(&refused, PlanError::TooLarge(why) if why.contains("1.2 s") && why.contains("smaller size")), "{refused}");
    }

    #[test]
    fn default_sizes_fit_a_launch_on_a_small_card() {
        for id in PATTERNS.iter().flat_map(|pattern| pattern.ids_on(Profile::Full, &SMALL)) {
            // Footprints that the card does not hold are no matter of launches.
            let planned = plan(&CaseId::new(&id), &SMALL).map_err(|error| error.to_string());
            assert!(planned.is_ok() || planned.is_err_and(|why| why.contains("80 % of the free memory")), "{id}");
        }
    }
}
