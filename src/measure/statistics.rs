//! Pure functions of samples.

/// The `q`-quantile (0 to 1) of sorted samples, linear between neighbours
/// (type 7 of Hyndman and Fan, 1996). NaN when there are none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let position = q.clamp(0.0, 1.0) * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64)
}

/// A sorted copy; NaNs last.
pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The median. NaN when there are no samples.
pub fn median(samples: &[f64]) -> f64 {
    quantile(&sorted(samples), 0.5)
}

/// Resamples of the bootstrap: the ends of a 95 % interval then move by about a
/// tenth of its width from seed to seed, enough for a stop rule.
const RESAMPLES: usize = 400;

/// Half-width of the 95 % percentile-bootstrap interval of the median, over the
/// median (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13).
/// Infinite with fewer than two samples. The seed is fixed: same samples, same value.
pub fn median_noise(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return f64::INFINITY;
    }
    let mut random = fastrand::Rng::with_seed(0x6862_6D61_726B);
    let mut resample = vec![0.0; samples.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample.fill_with(|| samples[random.usize(..samples.len())]);
            resample.sort_by(f64::total_cmp);
            quantile(&resample, 0.5)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    let half_width = (quantile(&medians, 0.975) - quantile(&medians, 0.025)) / 2.0;
    half_width / median(samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let s = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&s, 0.5), 2.5);
        assert_eq!(quantile(&s, 0.25), 1.75);
        assert_eq!(quantile(&s, 0.0), 1.0);
        assert_eq!(quantile(&s, 1.0), 4.0);
    }

    #[test]
    fn no_samples_have_no_median() {
        assert!(median(&[]).is_nan());
        assert_eq!(median_noise(&[1.0]), f64::INFINITY);
    }

    #[test]
    fn equal_samples_have_no_noise() {
        assert_eq!(median_noise(&[5.0; 10]), 0.0);
    }

    #[test]
    fn one_outlier_does_not_move_the_median() {
        assert_eq!(median(&[10.0, 10.0, 10.0, 10.0, 1e9]), 10.0);
    }

    proptest! {
        #[test]
        fn the_median_lies_within_the_samples_and_scales_with_them(s in prop::collection::vec(1e-3f64..1e9, 1..50), k in 0.001f64..1000.0) {
            let m = median(&s);
            prop_assert!(s.iter().any(|x| *x <= m) && s.iter().any(|x| *x >= m));
            let scaled: Vec<f64> = s.iter().map(|x| x * k).collect();
            prop_assert!((median(&scaled) - m * k).abs() <= 1e-9 * m * k);
        }

        #[test]
        fn noise_does_not_depend_on_the_unit(s in prop::collection::vec(1.0f64..10.0, 2..30)) {
            let scaled: Vec<f64> = s.iter().map(|x| x * 1e6).collect();
            prop_assert!((median_noise(&s) - median_noise(&scaled)).abs() < 1e-9);
        }
    }
}
