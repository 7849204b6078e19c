//! How much a cache serves of passes over a footprint, again and again.

/// How a cache chooses what gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Any line.
    Random,
    /// In each set of so many lines the one that was not used for longest; a hash of the address
    /// spreads lines over the sets. Many ways are next to one set: all hits end at the capacity.
    LeastRecent {
        /// Lines of a set.
        ways: u32,
    },
}

impl Policy {
    /// What curves are fitted with. Published curves of GPUs lie between 16 ways and 64.
    pub const ALL: [Self; 5] = [
        Self::Random,
        Self::LeastRecent { ways: 16 },
        Self::LeastRecent { ways: 32 },
        Self::LeastRecent { ways: 64 },
        Self::LeastRecent { ways: 256 },
    ];

    /// The share of hits where the footprint is `x` times the capacity.
    pub fn hits_fraction(self, x: f64) -> f64 {
        match self {
            Self::Random => random(x),
            Self::LeastRecent { ways } => least_recent(ways, x),
        }
    }
}

/// Between two uses of a line, (1 - h) F lines miss and each throws out a given one of C lines with chance 1/C:
/// h = exp(-(1 - h) F / C). Found from below, where Newton's steps never pass the lower root.
fn random(x: f64) -> f64 {
    if x <= 1.0 {
        return 1.0;
    }
    let mut h = 0.0;
    for _ in 0..20 {
        let survives = (-(1.0 - h) * x).exp();
        h += (survives - h) / (1.0 - x * survives);
    }
    h
}

/// A set that gets more lines than it has ways keeps none of them until its next turn. With a hash,
/// the other lines of a line's set follow Poisson's law, and it is a hit where they are fewer than the ways.
fn least_recent(ways: u32, x: f64) -> f64 {
    let mean = f64::from(ways) * x;
    // Beyond what exp() can tell, where next to nothing hits.
    if mean > 700.0 {
        return 0.0;
    }
    let mut term = (-mean).exp();
    let mut sum = term;
    for others in 1..ways {
        term *= mean / f64::from(others);
        sum += term;
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_serves_what_fits_well_and_next_to_nothing_of_many_times_its_size() {
        for policy in Policy::ALL {
            assert!(policy.hits_fraction(0.4) > 0.99, "{policy:?}");
            assert!(policy.hits_fraction(6.0) < 0.01, "{policy:?}");
            let curve: Vec<f64> = (1..100).map(|x| policy.hits_fraction(f64::from(x) / 10.0)).collect();
            assert!(curve.is_sorted_by(|a, b| *a >= b - 1e-9) && curve.iter().all(|h| (0.0..=1.0).contains(h)), "{policy:?}");
        }
    }

    #[test]
    fn random_replacement_solves_its_equation() {
        for x in [1.01, 1.2, 1.386, 2.0, 2.558, 4.0, 9.0] {
            let h = random(x);
            assert!((h - (-(1.0 - h) * x).exp()).abs() < 1e-6 && h < 1.0, "{x}: {h}");
        }
        assert!((random(2.0 * std::f64::consts::LN_2) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn with_more_ways_hits_end_nearer_the_capacity() {
        let width = |ways| least_recent(ways, 0.8) - least_recent(ways, 1.2);
        assert!(width(256) > width(64) && width(64) > width(32) && width(32) > width(16));
    }
}
