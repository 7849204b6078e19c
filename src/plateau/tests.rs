use super::*;
use crate::chart::testing::{footprint_row, h200};
use std::collections::BTreeMap;

const MIB: f64 = (1 << 20) as f64;

/// The footprints of the profile `standard`, in MiB.
const STANDARD: [f64; 19] =
    [1.0 / 16.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0, 256.0, 1024.0, 8192.0];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Random,
    LeastRecent,
    HashedSets,
}

/// A small cache that is walked over and over, line by line; gives the share of hits after the first passes.
fn simulated(kind: Kind, footprint: usize) -> f64 {
    let mut random = fastrand::Rng::with_seed(7);
    let sets = match kind {
        Kind::Random | Kind::LeastRecent => 1,
        Kind::HashedSets => LINES / WAYS,
    };
    let set_of: Vec<usize> = (0..footprint).map(|_| random.usize(0..sets)).collect();
    let (mut hits, mut uses) = (0, 0);
    if kind == Kind::Random {
        let (mut held, mut lines) = (vec![false; footprint], vec![None; LINES]);
        for pass in 0..6 {
            for line in 0..footprint {
                (hits, uses) = if pass >= 3 { (hits + usize::from(held[line]), uses + 1) } else { (hits, uses) };
                if !held[line] {
                    let place = &mut lines[random.usize(0..LINES)];
                    if let Some(out) = place.replace(line) {
                        held[out] = false;
                    }
                    held[line] = true;
                }
            }
        }
    } else {
        // A line hits if no more other lines of its set than fit were used since.
        let mut last_use = vec![None; footprint];
        let mut used = vec![0usize; sets];
        let mut distinct = vec![0usize; sets];
        set_of.iter().for_each(|set| distinct[*set] += 1);
        for pass in 0..3 {
            for line in 0..footprint {
                let set = set_of[line];
                let since = last_use[line].map(|at: usize| used[set] - at);
                let hit = since.is_some_and(|since| since <= LINES / sets && distinct[set] <= LINES / sets);
                (hits, uses) = if pass >= 1 { (hits + usize::from(hit), uses + 1) } else { (hits, uses) };
                last_use[line] = Some(used[set]);
                used[set] += 1;
            }
        }
    }
    hits as f64 / uses as f64
}

const LINES: usize = 1024;
const WAYS: usize = 16;

/// Shares of hits, kept because each takes a moment.
#[derive(Default)]
struct Simulator(BTreeMap<(Kind, usize), f64>);

impl Simulator {
    fn hits(&mut self, kind: Kind, x: f64) -> f64 {
        let footprint = (x * LINES as f64).round().max(1.0) as usize;
        if x > 12.0 {
            return 0.0;
        }
        *self.0.entry((kind, footprint)).or_insert_with(|| simulated(kind, footprint))
    }
}

/// The points of a curve with the noise of half a percent.
fn curve(gbps: impl FnMut(f64) -> f64) -> Vec<Point> {
    let mut random = fastrand::Rng::with_seed(11);
    let mut noisy = || 1.0 + (random.f64() - 0.5) * 0.01;
    let times = STANDARD.iter().map(|mib| mib * MIB);
    times.clone().zip(times.map(gbps)).map(|(bytes, gbps)| Point { bytes, gbps: gbps * noisy(), noise: 0.002 }).collect()
}

fn mix(hits: f64, hit_gbps: f64, miss_gbps: f64) -> f64 {
    1.0 / (hits / hit_gbps + (1.0 - hits) / miss_gbps)
}

#[test]
fn the_capacity_of_a_simulated_cache_is_found_to_within_25_percent() {
    let mut simulator = Simulator::default();
    for kind in [Kind::Random, Kind::LeastRecent, Kind::HashedSets] {
        for capacity in [4.0, 6.0, 40.0, 50.0, 72.0, 96.0] {
            for (hit, miss) in [(5300.0, 1800.0), (9800.0, 4700.0), (2500.0, 1900.0)] {
                let points = curve(|bytes| mix(simulator.hits(kind, bytes / capacity / MIB), hit, miss));
                let (plateaus, found) = analyse(&points).unwrap();
                let error = found.bytes as f64 / capacity / MIB - 1.0;
                assert!(error.abs() < 0.25, "{kind:?} {capacity} MiB {hit}/{miss}: {error:+.2}, {found:?}");
                assert!(found.low_bytes <= found.bytes && found.bytes <= found.high_bytes);
                for (place, gbps) in [(Place::Near, hit), (Place::Memory, miss)] {
                    let plateau = plateaus.iter().find(|plateau| plateau.place == place).unwrap();
                    assert!((plateau.gbps / gbps - 1.0).abs() < 0.05, "{kind:?} {capacity} MiB: {plateau:?}");
                }
            }
        }
    }
}

#[test]
fn a_cache_of_which_a_half_is_further_away_has_two_plateaus_and_its_whole_capacity() {
    let mut simulator = Simulator::default();
    for (capacity, near_end, near, far, miss) in
        [(50.0, 25.0, 7000.0, 4500.0, 2000.0), (60.0, 28.0, 10_000.0, 6800.0, 4000.0), (40.0, 20.0, 5300.0, 3300.0, 1800.0)]
    {
        for kind in [Kind::Random, Kind::LeastRecent] {
            let points = curve(|bytes| {
                let hits = simulator.hits(kind, bytes / capacity / MIB);
                mix(hits, if bytes <= near_end * MIB { near } else { far }, miss)
            });
            let (plateaus, found) = analyse(&points).unwrap();
            let error = found.bytes as f64 / capacity / MIB - 1.0;
            assert!(error.abs() < 0.25, "{kind:?} {capacity} MiB: {error:+.2}, {found:?}");
            let places: Vec<Place> = plateaus.iter().map(|plateau| plateau.place).collect();
            assert_eq!(places, [Place::Near, Place::Far, Place::Memory], "{kind:?} {capacity} MiB");
            assert!((plateaus[1].gbps / far - 1.0).abs() < 0.15, "{:?}", plateaus[1]);
        }
    }
}

/// GB/s at the footprints of `standard` from the third on, read off the results of gpu-l2-cache
/// (RRZE-HPC/gpu-benches: gpu-l2-cache/a100_80.txt, h100_pcie.txt, h200.txt, l40.txt), to three digits, and MiB of L2.
const PUBLISHED: [(&str, f64, [f64; 16]); 4] = [
    (
        "A100 80 GB",
        40.0,
        [5480.0, 5420.0, 5470.0, 5420.0, 5440.0, 5430.0, 5430.0, 5400.0, 3740.0, 2010.0, 1890.0, 1870.0, 1870.0, 1850.0, 1840.0, 1730.0],
    ),
    (
        "H100 PCIe",
        50.0,
        [7380.0, 7250.0, 7120.0, 7080.0, 7030.0, 6990.0, 6920.0, 6910.0, 6930.0, 3270.0, 2060.0, 1990.0, 1990.0, 1990.0, 1990.0, 1990.0],
    ),
    (
        "GH200",
        60.0,
        [
            11_700.0, 11_000.0, 10_600.0, 10_300.0, 10_300.0, 9720.0, 9810.0, 9720.0, 9670.0, 7260.0, 4370.0, 3910.0, 3890.0, 3890.0,
            3890.0, 3890.0,
        ],
    ),
    (
        "L40",
        96.0,
        [5290.0, 5190.0, 5310.0, 5180.0, 5330.0, 5190.0, 5170.0, 5210.0, 5180.0, 5250.0, 5260.0, 4480.0, 854.0, 845.0, 842.0, 807.0],
    ),
];

#[test]
fn published_curves_give_the_capacity_of_their_cards_to_within_25_percent() {
    for (card, capacity, gbps) in PUBLISHED {
        let points: Vec<Point> =
            STANDARD[2..18].iter().zip(gbps).map(|(mib, gbps)| Point { bytes: mib * MIB, gbps, noise: 0.002 }).collect();
        let (_, found) = analyse(&points).unwrap();
        let error = found.bytes as f64 / capacity / MIB - 1.0;
        assert!(error.abs() < 0.25, "{card}: {error:+.2}, {found:?}");
        assert!(found.hits_end_bytes as f64 > 0.9 * capacity * MIB, "{card}: {found:?}");
    }
}

#[test]
fn footprints_too_large_for_the_memory_are_a_plateau_of_their_own() {
    let points = curve(|bytes| match bytes / MIB {
        mib if mib <= 32.0 => 5000.0,
        mib if mib <= 1024.0 => 2000.0,
        _ => 1900.0,
    });
    let (plateaus, _) = analyse(&points).unwrap();
    let last = plateaus.last().unwrap();
    assert_eq!((last.place, last.first_bytes), (Place::Large, 8 << 30));
    assert!((last.gbps / 1900.0 - 1.0).abs() < 0.01);
}

#[test]
fn a_curve_that_does_not_tell_says_why() {
    let flat = curve(|_| 100.0);
    assert!(analyse(&flat).unwrap_err().contains("does not tell"));
    assert!(analyse(&flat[..3]).unwrap_err().contains("too few"));
    // The largest footprint is in the midst of the fall.
    let falling = curve(|bytes| if bytes < 100.0 * MIB { 5000.0 } else { 5000.0 * (100.0 * MIB / bytes).powf(0.4) });
    assert!(analyse(&falling).unwrap_err().contains("not become flat"));
}

#[test]
fn a_run_says_what_its_own_sound_rows_say_beside_what_is_told_of_the_cache() {
    let mut run = h200();
    assert_eq!(of_run(&run), None);
    for (mib, gbps) in STANDARD[2..18].iter().zip(PUBLISHED[2].2) {
        run.measurements.push(footprint_row("read", (mib * MIB) as u64, gbps));
    }
    let findings = of_run(&run).unwrap().unwrap();
    assert_eq!(findings.plateaus.iter().map(|plateau| findings.name(plateau.place)).collect::<Vec<_>>(), ["L2", "DRAM"]);
    assert_eq!((findings.told_bytes, findings.disagreement()), (Some(60 << 20), None));
    run.device.memory.cache_bytes = Some(30 << 20);
    assert!(of_run(&run).unwrap().unwrap().disagreement().unwrap() > 0.7);
    run.device.memory.cache_bytes = None;
    assert_eq!(of_run(&run).unwrap().unwrap().disagreement(), None);
    // Only rows that are sound make a curve.
    run.measurements.iter_mut().for_each(|row| row.verified = Some(false));
    assert_eq!(of_run(&run), None);
}
