//! A contiguous read by some of the workers, and the check of its results.

use super::memory::Region;
use super::share::{Findings, Share, compare};
use super::{Loaded, Task, Timed, stream};
use crate::device::DeviceError;
use crate::pattern::data::weighted;
use crate::pattern::reading::RECORD_WORDS;
use crate::pattern::{Arg, Data, Launch};

/// The words of a record.
pub(super) fn record_at(record: usize) -> std::ops::Range<u64> {
    let word = record as u64 * RECORD_WORDS;
    word..word + RECORD_WORDS
}

/// Leaves the record with this number, which one worker alone writes.
pub(super) fn leave(records: Region, record: usize, sum: u64, figure: u64) {
    let words = [sum as u32, (sum >> 32) as u32, figure as u32, (figure >> 32) as u32];
    // SAFETY: the caller vouches that nobody else is at this record.
    unsafe { records.slice_mut(record_at(record)) }.copy_from_slice(&words);
}

/// Sum and second figure of the record with this number, while nothing writes.
pub(super) fn left(records: Region, record: usize) -> [u64; 2] {
    // SAFETY: nothing writes while a check runs.
    let words: &[u32] = unsafe { records.slice(record_at(record)) };
    [0, 2].map(|k| u64::from(words[k]) | u64::from(words[k + 1]) << 32)
}

/// The records of a read, and its share for this worker; none for workers beyond them.
fn share_of(share: Share, records: Region) -> Option<Share> {
    let workers = (records.words() / RECORD_WORDS) as usize;
    (share.worker < workers).then_some(Share { workers, ..share })
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    let ("saturation_read", &[Arg::Buffer(records), Arg::Buffer(input), Arg::U64(n)]) = (launch.kernel, &launch.args[..]) else {
        return Err(loaded.unknown(launch));
    };
    let (records, input) = (loaded.whole(records)?, loaded.region(input, n)?);
    let task = move |share: Share| {
        let Some(share) = share_of(share, records) else { return };
        let part = share.of(n, stream::GRAIN);
        // SAFETY: nothing writes the input while a task runs.
        let sum = isa.run(stream::Read { first: part.start, words: unsafe { input.slice(part) } });
        leave(records, share.worker, sum, share.worker as u64);
    };
    Ok(Timed { task: Box::new(task), stores: None })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let ("check_saturation_read", &[Arg::Buffer(records), Arg::U64(n), Arg::U32(seed), Arg::Data, Arg::Status]) =
        (launch.kernel, &launch.args[..])
    else {
        return Err(loaded.unknown(launch));
    };
    let records = loaded.whole(records)?;
    Ok(Box::new(move |share| {
        let Some(share) = share_of(share, records) else { return Findings::NONE };
        let expected = share.of(n, stream::GRAIN).fold(0u64, |sum, i| sum.wrapping_add(weighted(data.word(seed, i), i)));
        compare(share.worker as u64, &[left(records, share.worker)[0]], |_, sum| sum == expected)
    }))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::device::host::isa::Isa;

    #[test]
    fn a_read_by_some_of_the_workers_is_verified_and_leaves_as_many_records() {
        for workers in 1..=3 {
            for units in 1..=workers {
                let plan = plan(&format!("saturation/read/{units}@675840"), workers);
                assert_eq!(plan.compared, units as u64);
                for isa in Isa::all() {
                    assert!(with_plan(isa, workers, &plan, |program| verify(program, Data::Random)).passed(), "{units} of {workers}");
                }
            }
        }
    }

    #[test]
    fn a_wrong_word_is_found_in_the_share_of_its_worker() {
        let plan = plan("saturation/read/2@675840", 2);
        assert!(found(&plan, nothing, nothing).passed());
        let flipped = found(&plan, |regions| words(regions, 1)[168_959] ^= 1, nothing);
        assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(1)));
        let swapped = found(&plan, |regions| words(regions, 1).swap(3, 700), nothing);
        assert_eq!((swapped.mismatches, swapped.first_bad), (1, Some(0)));
    }
}
