//! What holds for one row.

use super::What;
use crate::chart::words::{figure, mark_meaning, status};
use crate::measure::{Bounds, verdict};
use crate::record::{Claim, Mark, Status, Verdict};

pub(super) fn findings(claim: &Claim, bounds: Bounds) -> Vec<(What, String)> {
    match claim.status {
        None | Some(Status::Ok) => {}
        Some(Status::Unsupported | Status::Skipped) => return Vec::new(),
        Some(failed @ (Status::Error | Status::Timeout)) => return vec![(What::Failed, format!("the case ended as {}", status(failed)))],
        Some(Status::Unknown) => return vec![(What::Unknown, "a status of a newer version of the program".to_owned())],
    }
    let mut found = Vec::new();
    found.extend(judged(claim, bounds));
    if !claim.adds_up() {
        found.push((What::DoesNotAddUp, sums(claim)));
    }
    if claim.achieved_gbps.or(claim.requested_gbps()).is_none() {
        found.push((What::NoFigures, "it tells neither achieved_gbps nor bytes and time_ns".to_owned()));
    }
    if claim.verified.is_none() {
        found.push((What::NotVerified, "nobody checked the results".to_owned()));
    }
    found.extend(claim.marks.iter().map(|&mark| marked(mark)));
    found
}

/// The verdict as this program finds it, or else as the document has it.
fn judged(claim: &Claim, bounds: Bounds) -> Option<(What, String)> {
    let found = match verdict(claim, bounds) {
        Verdict::Ok => claim.verdict.unwrap_or(Verdict::Ok),
        found => found,
    };
    match found {
        Verdict::Ok => None,
        Verdict::Unverified => {
            let wrong = claim.mismatches.map_or("some".to_owned(), |n| n.to_string());
            Some((What::Unverified, format!("{wrong} wrong results")))
        }
        Verdict::AbovePeak => Some((What::AbovePeak, rate(claim, bounds))),
        Verdict::Compressed => Some((What::Compressed, rate(claim, bounds))),
        Verdict::Spilled => Some((What::Spilled, place(claim, bounds))),
        Verdict::CacheResident => {
            let share = claim.cache_share(bounds.cache_bytes).map_or("unknown".to_owned(), figure);
            Some((What::CacheResident, format!("{}; the size of the last cache over that of the data is {share}", rate(claim, bounds))))
        }
        Verdict::Unknown => Some((What::Unknown, "a verdict of a newer version of the program".to_owned())),
    }
}

/// `20 GB/s, and the link to the processor carries 31.5 GB/s; the free memory fell by 0 of 1073741824 bytes`.
fn place(claim: &Claim, bounds: Bounds) -> String {
    let gbps = |value: Option<f64>| value.map_or("an unknown number of GB/s".to_owned(), |value| format!("{} GB/s", figure(value)));
    let bytes = |value: Option<u64>| value.map_or("an unknown number".to_owned(), |value| value.to_string());
    format!(
        "{}, and the link to the processor carries {} in one direction; the free memory fell by {} of {} bytes",
        gbps(claim.carried_gbps()),
        gbps(bounds.link_gbps),
        bytes(claim.memory_taken_bytes),
        bytes(claim.footprint_bytes)
    )
}

/// `3868 GB/s, and the memory can carry 1008 GB/s`.
fn rate(claim: &Claim, bounds: Bounds) -> String {
    let gbps = |value: Option<f64>| value.map_or("an unknown number of GB/s".to_owned(), |value| format!("{} GB/s", figure(value)));
    let (what, bound) = bounds.link_of(&claim.id).map_or(("memory", bounds.peak_gbps), |link| ("link", Some(link)));
    format!("{}, and the {what} can carry {}", gbps(claim.carried_gbps()), gbps(bound))
}

fn sums(claim: &Claim) -> String {
    let told = |figure: Option<f64>, unit: &str| figure.map(|value| format!("{value} {unit}"));
    let bytes = claim.bytes.map(|bytes| format!("{} bytes requested", bytes.requested()));
    let time = told(claim.time_ns.map(|time| time.median), "ns");
    let samples = claim.extremes_ns().map(|(min, max)| format!("samples of {min} to {max} ns"));
    let all = [told(claim.achieved_gbps, "GB/s achieved"), bytes, time, samples, told(claim.requested_gbps(), "GB/s by bytes over time")];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn marked(mark: Mark) -> (What, String) {
    let what = match mark {
        Mark::Unstable => What::Unstable,
        Mark::Throttled => What::Throttled,
        Mark::Shared => What::Shared,
        Mark::Unknown => What::Unknown,
    };
    (what, format!("{}; the row's notes have the numbers", mark_meaning(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::{Bytes, Level};
    use crate::record::Median;

    const BOUNDS: Bounds = Bounds { peak_gbps: Some(1008.0), link_gbps: Some(31.5), cache_bytes: Some(72 << 20) };

    /// A row of a GiB at 900 GB/s, without a fault.
    fn sound() -> Claim {
        Claim {
            level: Some(Level::Dram),
            bytes: Some(Bytes::contiguous(900_000_000, 0)),
            time_ns: Some(Median { median: 1e6 }),
            achieved_gbps: Some(900.0),
            verified: Some(true),
            verdict: Some(Verdict::Ok),
            ..Claim::default()
        }
    }

    fn only(claim: &Claim) -> (What, String) {
        let found = findings(claim, BOUNDS);
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    }

    #[test]
    fn a_row_whose_figures_have_other_names_is_not_passed_over() {
        let (what, _) = only(&Claim { achieved_gbps: None, bytes: None, ..sound() });
        assert_eq!(what, What::NoFigures);
    }

    #[test]
    fn a_sound_row_gives_no_finding() {
        assert_eq!(findings(&sound(), BOUNDS), []);
    }

    #[test]
    fn what_a_document_calls_ok_is_judged_again() {
        let (what, says) = only(&Claim { time_ns: Some(Median { median: 2.5e5 }), achieved_gbps: Some(3600.0), ..sound() });
        assert!(what == What::AbovePeak && says.contains("3600 GB/s") && says.contains("1008 GB/s"), "{says}");
        let (what, says) = only(&Claim { cache_fraction: Some(1.5), ..sound() });
        assert!(what == What::CacheResident && says.contains("1.50"), "{says}");
        assert_eq!(only(&Claim { mismatches: Some(3), ..sound() }), (What::Unverified, "3 wrong results".to_owned()));
    }

    #[test]
    fn what_a_document_itself_calls_wrong_stays_so() {
        for (verdict, what) in
            [(Verdict::Unverified, What::Unverified), (Verdict::AbovePeak, What::AbovePeak), (Verdict::Unknown, What::Unknown)]
        {
            assert_eq!(only(&Claim { verdict: Some(verdict), ..sound() }).0, what);
        }
    }

    #[test]
    fn a_bandwidth_that_is_not_bytes_over_time_is_told_with_all_three() {
        let (what, says) = only(&Claim { achieved_gbps: Some(950.0), ..sound() });
        assert_eq!(what, What::DoesNotAddUp);
        assert_eq!(says, "950 GB/s achieved, 900000000 bytes requested, 1000000 ns, 900 GB/s by bytes over time");
    }

    #[test]
    fn rows_that_failed_are_told_and_those_left_out_are_not_judged() {
        let ended = |status| findings(&Claim { status: Some(status), ..Claim::default() }, BOUNDS);
        assert_eq!((ended(Status::Error)[0].0, ended(Status::Timeout)[0].0), (What::Failed, What::Failed));
        assert_eq!((ended(Status::Skipped), ended(Status::Unsupported)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_row_that_nobody_verified_and_each_mark_is_told() {
        assert_eq!(only(&Claim { verified: None, ..sound() }).0, What::NotVerified);
        let marked = findings(&Claim { marks: vec![Mark::Throttled, Mark::Shared], ..sound() }, BOUNDS);
        assert_eq!(marked.iter().map(|(what, _)| *what).collect::<Vec<_>>(), [What::Throttled, What::Shared]);
    }
}
