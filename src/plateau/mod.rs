//! What the curve of bandwidth against footprint says: its plateaus, and where the last cache
//! ends, with no hint from the driver. From records alone.
//!
//! The time of a byte is a mix of that of a hit and that of a miss, so the two plateaus give the
//! share of hits at every footprint between them. Which capacity these shares mean depends on what
//! gives way in the cache: with random replacement a tenth still hits at 2.6 times the capacity,
//! with hashed sets and least recent use at 1.3 times. So curves of both kinds are fitted to the
//! shares, and every capacity of which one fits counts: they are the interval, and its middle, by
//! ratio, the result. Bandwidth may fall once more within the cache, as where a half of it is
//! further away: a step is fitted where it explains clearly more.

mod cache;
#[cfg(test)]
mod tests;
mod text;

use crate::pattern::{CaseId, DeviceKind};
use crate::record::{Measurement, Run};
use cache::Policy;

/// A plateau's share of hits is no less.
const PLATEAU_HITS_MIN: f64 = 0.85;
/// From here on a cache counts as exceeded.
const HITS_END: f64 = 0.1;
/// The least that the cache must be faster than the memory to be told from it.
const CONTRAST_MIN: f64 = 1.15;
/// The memory's plateau begins where bandwidth falls by less than this for each e-fold of the footprint.
const FLAT_SLOPE: f64 = 0.05;
/// Over which it is looked at, as a ratio of footprints.
const SLOPE_SPAN: f64 = 1.3;
/// Large footprints that lose less than this are the memory's plateau still.
const LARGE_LOSS_MIN: f64 = 0.015;
/// Shares of hits, summed over the points, by which a curve may fit worse than the best and count all the same.
const FIT_TOLERANCE: f64 = 0.1;
/// And by which a step must make it fit better.
const STEP_GAIN_MIN: f64 = 0.15;
/// What a hit beyond the step is worth, as a share of one before it.
const STEPS: [f64; 6] = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5];
/// Capacities are tried at ratios of 1 plus this.
const CAPACITY_STEP: f64 = 0.02;
/// A driver that differs by more is contradicted.
const DISAGREEMENT: f64 = 0.25;
/// Fewer points show no plateau.
const POINTS_MIN: usize = 6;

/// One footprint.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    bytes: f64,
    gbps: f64,
    /// Half-width of the 95 % interval, as a fraction.
    noise: f64,
}

/// What serves a plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The last cache, or where bandwidth falls within it, its faster part; on a host the caches of the processors.
    Near,
    /// The last cache beyond that fall.
    Far,
    /// The memory.
    Memory,
    /// The memory where the footprint is so large that it costs bandwidth, as the translation of addresses does.
    Large,
}

/// A stretch of the curve on one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// What serves it.
    pub place: Place,
    /// The median of its points, GB/s.
    pub gbps: f64,
    /// Its first footprint, in bytes.
    pub first_bytes: u64,
    /// Its last footprint, in bytes.
    pub last_bytes: u64,
}

/// Where the last cache ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// The middle of the interval, by ratio, in bytes.
    pub bytes: u64,
    /// The least that fits the curve, in bytes.
    pub low_bytes: u64,
    /// The most, in bytes.
    pub high_bytes: u64,
    /// The footprint beyond which less than a tenth hits, in bytes.
    pub hits_end_bytes: u64,
}

/// What a run's curve says.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    kind: DeviceKind,
    /// From small footprints to large ones.
    pub plateaus: Vec<Plateau>,
    /// Where the last cache ends.
    pub capacity: Capacity,
    /// What the driver or the system says of it, in bytes; none where it does not.
    pub told_bytes: Option<u64>,
}

impl Findings {
    /// What a place is called on this device.
    pub fn name(&self, place: Place) -> &'static str {
        let steps = self.plateaus.iter().any(|plateau| plateau.place == Place::Far);
        match (place, self.kind) {
            (Place::Near, DeviceKind::Cuda) if steps => "L2 near",
            (Place::Near, DeviceKind::Cuda) => "L2",
            (Place::Far, DeviceKind::Cuda) => "L2 far",
            (Place::Near, DeviceKind::Host) if steps => "inner caches",
            (Place::Near, DeviceKind::Host) => "caches",
            (Place::Far, DeviceKind::Host) => "L3",
            (Place::Memory, DeviceKind::Cuda) => "DRAM",
            (Place::Memory, DeviceKind::Host) => "RAM",
            (Place::Large, _) => "large footprint",
        }
    }

    /// What the last cache is called.
    pub fn cache(&self) -> &'static str {
        match self.kind {
            DeviceKind::Cuda => "L2",
            DeviceKind::Host => "last cache",
        }
    }

    /// By how much the curve's capacity differs from what is told of it, as a fraction of that, where that is
    /// too much to be the curve's uncertainty.
    pub fn disagreement(&self) -> Option<f64> {
        let difference = self.capacity.bytes as f64 / self.told_bytes.filter(|told| *told > 0)? as f64 - 1.0;
        (difference.abs() > DISAGREEMENT).then_some(difference)
    }
}

/// What the sequential reads of a run say; none where it has none.
///
/// # Errors
/// Why its curve shows no plateaus.
pub fn of_run(run: &Run) -> Option<Result<Findings, String>> {
    let mut points: Vec<Point> = run.measurements.iter().filter_map(point).collect();
    if points.is_empty() {
        return None;
    }
    points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    Some(analyse(&points).map(|(plateaus, capacity)| Findings {
        kind: run.device.kind,
        plateaus,
        capacity,
        told_bytes: run.device.memory.cache_bytes,
    }))
}

fn point(row: &Measurement) -> Option<Point> {
    let bytes = read_footprint(&row.id).filter(|_| row.is_sound())?;
    let gbps = row.achieved_gbps.filter(|gbps| gbps.is_finite() && *gbps > 0.0)?;
    Some(Point { bytes: bytes as f64, gbps, noise: row.time_ns.as_ref()?.noise_fraction })
}

/// The footprint of a sequential read, in bytes.
fn read_footprint(id: &str) -> Option<u64> {
    let id = CaseId::new(id);
    match id.parts()[..] {
        ["read", bytes] if id.pattern() == "footprint" && id.size().is_none() => bytes.parse().ok().filter(|bytes| *bytes > 0),
        _ => None,
    }
}

/// The two levels between which the shares of hits lie, and where on the curve they end and begin.
#[derive(Debug, Clone, Copy)]
struct Levels {
    /// GB/s where all hits.
    hit_gbps: f64,
    /// GB/s where nothing does.
    miss_gbps: f64,
    /// The last point of the first plateau.
    last_near: usize,
    /// The first point of the memory's.
    first_memory: usize,
}

impl Levels {
    /// The share of hits that gives this bandwidth; beyond 0 to 1 where it lies beyond the levels.
    fn hits_fraction(&self, gbps: f64) -> f64 {
        (1.0 / gbps - 1.0 / self.miss_gbps) / (1.0 / self.hit_gbps - 1.0 / self.miss_gbps)
    }

    /// By how much that share is wrong when the bandwidth is by this fraction.
    fn hits_noise(&self, point: &Point) -> f64 {
        (point.noise / point.gbps / (1.0 / self.hit_gbps - 1.0 / self.miss_gbps)).abs()
    }
}

/// Plateaus and capacity of a curve whose points are in the order of their footprints.
fn analyse(points: &[Point]) -> Result<(Vec<Plateau>, Capacity), String> {
    if points.len() < POINTS_MIN {
        return Err(format!("too few footprints were read to show any ({}, and it takes {POINTS_MIN})", points.len()));
    }
    let levels = levels(points)?;
    let (capacity, step) = fit(points, &levels)?;
    Ok((plateaus(points, &levels, &capacity, step), capacity))
}

fn levels(points: &[Point]) -> Result<Levels, String> {
    // Two neighbours vouch for each other: a single point may be an accident.
    let pairs = || points.windows(2).map(|pair| (pair[0].gbps, pair[1].gbps));
    let hit_gbps = pairs().map(|(a, b)| a.min(b)).fold(0.0, f64::max);
    let miss_gbps = pairs().map(|(a, b)| a.max(b)).fold(f64::INFINITY, f64::min);
    let mut levels = Levels { hit_gbps, miss_gbps, last_near: 0, first_memory: 0 };
    // The lowest level may be that of footprints which are too large even for the memory: once more with the memory's own.
    for _ in 0..2 {
        if levels.hit_gbps < levels.miss_gbps * CONTRAST_MIN {
            return Err("the curve does not tell caches from memory: its footprints end before memory begins, or begin after it".to_owned());
        }
        let hits = |point: &Point| levels.hits_fraction(point.gbps);
        let half = points.iter().rposition(|point| hits(point) >= 0.5).unwrap_or(0);
        let last_near = points[..=half].iter().rposition(|point| hits(point) >= PLATEAU_HITS_MIN).unwrap_or(0);
        let near = points[..=last_near].iter().filter(|point| hits(point) >= PLATEAU_HITS_MIN);
        let hit_gbps = median(near.map(|point| point.gbps));
        let first_memory = (half + 1..points.len())
            .find(|&at| is_flat(&points[at..]))
            .ok_or("the curve has not become flat at its largest footprint, so the memory's plateau is not there")?;
        let from = points[first_memory].bytes;
        // Further on, where no hit is left.
        let beyond = points.iter().filter(|point| (2.0 * from..=8.0 * from).contains(&point.bytes));
        let miss_gbps = match median(beyond.map(|point| point.gbps)) {
            found if found > 0.0 => found,
            _ => median(points[first_memory..].iter().take(2).map(|point| point.gbps)),
        };
        levels = Levels { hit_gbps, miss_gbps, last_near, first_memory };
    }
    Ok(levels)
}

/// Whether bandwidth hardly falls from the first of these points on.
fn is_flat(points: &[Point]) -> bool {
    let Some(first) = points.first() else { return false };
    let next = points.iter().find(|point| point.bytes >= first.bytes * SLOPE_SPAN);
    next.is_some_and(|next| (first.gbps / next.gbps).ln() < FLAT_SLOPE * (next.bytes / first.bytes).ln())
}

/// The median; 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n => (values[n / 2] + values[(n - 1) / 2]) / 2.0,
    }
}

/// One curve that was fitted.
struct Fit {
    capacity: f64,
    /// What a hit beyond the first plateau is worth.
    step: f64,
    /// Shares of hits by which it differs, summed over the points.
    misfit: f64,
}

/// The capacities whose curves fit, and the step of the one that does best.
fn fit(points: &[Point], levels: &Levels) -> Result<(Capacity, f64), String> {
    let (near_bytes, memory_bytes) = (points[levels.last_near].bytes, points[levels.first_memory].bytes);
    let used: Vec<(f64, f64)> = points
        .iter()
        .filter(|point| (near_bytes / 2.0..=memory_bytes * 8.0).contains(&point.bytes))
        .map(|point| (point.bytes, levels.hits_fraction(point.gbps).clamp(0.0, 1.0)))
        .collect();
    let noise = points.iter().map(|point| levels.hits_noise(point).powi(2)).sum::<f64>().sqrt();

    let ratio = 1.0 + CAPACITY_STEP;
    let steps = ((memory_bytes * 4.0) / near_bytes).ln() / ratio.ln();
    let capacities = (0..=steps as i32).map(|n| near_bytes / 2.0 * ratio.powi(n));
    let mut fits = Vec::new();
    for capacity in capacities {
        for policy in Policy::ALL {
            let expected: Vec<f64> = used.iter().map(|(bytes, _)| policy.hits_fraction(bytes / capacity)).collect();
            fits.extend(STEPS.map(|step| {
                let worth = |bytes: f64| if bytes <= near_bytes { 1.0 } else { step };
                let misses = used.iter().zip(&expected).map(|(&(bytes, hits), expected)| (hits - expected * worth(bytes)).abs());
                let cost = if step < 1.0 { STEP_GAIN_MIN } else { 0.0 };
                Fit { capacity, step, misfit: misses.sum::<f64>() + cost }
            }));
        }
    }
    let best = fits.iter().min_by(|a, b| a.misfit.total_cmp(&b.misfit)).ok_or("no capacity lies between the plateaus")?;
    let good = || fits.iter().filter(|fit| fit.misfit <= best.misfit + FIT_TOLERANCE + noise).map(|fit| fit.capacity);
    let (low, high) = (good().fold(f64::INFINITY, f64::min), good().fold(0.0, f64::max));
    let capacity = Capacity {
        bytes: (low * high).sqrt() as u64,
        low_bytes: low as u64,
        high_bytes: high as u64,
        hits_end_bytes: hits_end(points, levels) as u64,
    };
    Ok((capacity, best.step))
}

/// Where the share of hits falls below [`HITS_END`] for good, between two points by the logarithm of the footprint.
fn hits_end(points: &[Point], levels: &Levels) -> f64 {
    let hits = |point: &Point| levels.hits_fraction(point.gbps);
    let last = points[..=levels.first_memory].iter().rposition(|point| hits(point) >= HITS_END).unwrap_or(0);
    match points.get(last + 1) {
        Some(next) => {
            let share = (hits(&points[last]) - HITS_END) / (hits(&points[last]) - hits(next));
            points[last].bytes * (next.bytes / points[last].bytes).powf(share.clamp(0.0, 1.0))
        }
        None => points[last].bytes,
    }
}

fn plateaus(points: &[Point], levels: &Levels, capacity: &Capacity, step: f64) -> Vec<Plateau> {
    let of = |place, part: &[Point]| {
        let (first, last) = (part.first()?, part.last()?);
        let gbps = median(part.iter().map(|point| point.gbps));
        Some(Plateau { place, gbps, first_bytes: first.bytes as u64, last_bytes: last.bytes as u64 })
    };
    let hits = |point: &Point| levels.hits_fraction(point.gbps);
    let first_near = points.iter().position(|point| hits(point) >= PLATEAU_HITS_MIN).unwrap_or(0);
    // What is worth about a step and still fits.
    let far: Vec<Point> = points[levels.last_near + 1..levels.first_memory]
        .iter()
        .filter(|point| step < 1.0 && point.bytes <= capacity.high_bytes as f64 && (hits(point) - step).abs() < HITS_END)
        .copied()
        .collect();
    let memory = &points[levels.first_memory..];
    let lost = |point: &Point| point.gbps < levels.miss_gbps * (1.0 - LARGE_LOSS_MIN - point.noise);
    let large = memory.iter().rposition(|point| !lost(point)).map_or(0, |last| last + 1);
    let parts = [
        of(Place::Near, &points[first_near..=levels.last_near]),
        of(Place::Far, &far),
        of(Place::Memory, &memory[..large]),
        of(Place::Large, &memory[large..]),
    ];
    parts.into_iter().flatten().collect()
}
