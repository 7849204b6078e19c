//! A chase through a cycle of links by one worker, alone or beside workers that read, and the check of
//! both.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::isa::Isa;
use super::memory::Region;
use super::saturation::{leave, left};
use super::share::{Findings, Share, compare};
use super::{Loaded, Task, Timed, stream};
use crate::device::DeviceError;
use crate::pattern::data::weighted;
use crate::pattern::permutation::Permutation;
use crate::pattern::reading::TILE_BYTES;
use crate::pattern::{Arg, Data, LINE_BYTES, Launch};

const LINE_WORDS: u64 = LINE_BYTES / 4;
const TILE_WORDS: u64 = TILE_BYTES / 4;

/// One worker's way through the links.
#[derive(Clone, Copy)]
struct Chase {
    /// Line and sum, 64 bits each, like a record.
    reached: Region,
    links: Region,
    lines: u64,
    first: u64,
    steps: u32,
}

impl Chase {
    fn new(loaded: &Loaded, args: &[Arg]) -> Result<Option<Self>, DeviceError> {
        let &[Arg::Buffer(reached), Arg::Buffer(links), Arg::U64(lines), Arg::U64(first), Arg::U32(steps)] = args else { return Ok(None) };
        let (reached, links) = (loaded.region(reached, 4)?, loaded.region(links, lines.saturating_mul(LINE_WORDS))?);
        Ok(Some(Self { reached, links, lines, first, steps }))
    }

    /// Goes on where the execution before it ended, or at the first line.
    ///
    /// Whether a link stays inside is asked of each; the processor guesses that it does and does not wait.
    fn run(self) {
        let [begun, _] = left(self.reached, 0);
        let base = self.links.address::<u32>(0);
        let (start, bytes) = (base.expose_provenance() as u64, self.lines * LINE_BYTES);
        let mut at = start + if begun < self.lines { begun } else { self.first } * LINE_BYTES;
        let mut sum = 0u64;
        for step in 0..self.steps {
            sum = sum.wrapping_add(u64::from(at as u32) * u64::from(2 * step + 1));
            assert!(at.wrapping_sub(start) < bytes && at.is_multiple_of(8), "a link leads out of the buffer");
            // SAFETY: an aligned address in the buffer, whose lines are whole, and nothing writes it.
            at = unsafe { std::ptr::with_exposed_provenance::<u64>(at as usize).read_volatile() };
        }
        leave(self.reached, 0, at.wrapping_sub(start) / LINE_BYTES, sum);
    }
}

/// Where a chase must have come.
#[derive(Clone, Copy)]
struct Expected {
    reached: Region,
    links: Region,
    lines: u64,
    steps: u32,
    seed: u32,
}

impl Expected {
    fn new(loaded: &Loaded, args: &[Arg]) -> Result<Option<Self>, DeviceError> {
        let &[Arg::Buffer(reached), Arg::Buffer(links), Arg::U64(lines), Arg::U32(steps), Arg::U32(seed)] = args else { return Ok(None) };
        let (reached, links) = (loaded.region(reached, 4)?, loaded.region(links, lines.saturating_mul(LINE_WORDS))?);
        Ok(Some(Self { reached, links, lines, steps, seed }))
    }

    /// Place by place from the order itself, without a look at the links.
    fn check(self) -> Findings {
        let order = Permutation::new(self.lines, self.seed);
        let start = self.links.address::<u32>(0).addr() as u64;
        let low = |step: u32| (start + order.place(u64::from(step) % self.lines) * LINE_BYTES) as u32;
        let sum = (0..self.steps).fold(0u64, |sum, step| sum.wrapping_add(u64::from(low(step)) * u64::from(2 * step + 1)));
        let line = order.place(u64::from(self.steps) % self.lines);
        compare(0, &[left(self.reached, 0)], |_, reached| reached == [line, sum])
    }
}

/// By which the chase ends the reads beside it. The last worker that has seen it makes all ready for the
/// next execution.
#[derive(Default)]
struct Control {
    ended: AtomicBool,
    seen: AtomicUsize,
}

impl Control {
    fn see(&self, workers: usize) {
        if self.seen.fetch_add(1, Ordering::AcqRel) + 1 == workers {
            self.seen.store(0, Ordering::Relaxed);
            self.ended.store(false, Ordering::Release);
        }
    }
}

/// An array that workers read tile by tile.
#[derive(Clone, Copy)]
struct Reading {
    isa: Isa,
    records: Region,
    input: Region,
    tiles: u64,
}

impl Reading {
    /// Round and round until the chase has ended, at least one tile and at most `most`.
    fn run(self, reader: usize, readers: usize, most: u32, control: &Control) {
        let (mut sum, mut count, mut tile) = (0u64, 0u32, reader as u64 % self.tiles);
        while count == 0 || count < most && !control.ended.load(Ordering::Relaxed) {
            let first = tile * TILE_WORDS;
            // SAFETY: nothing writes the input while a task runs.
            let words = unsafe { self.input.slice(first..first + TILE_WORDS) };
            sum = sum.wrapping_add(self.isa.run(stream::Read { first, words }));
            count += 1;
            tile = (tile + readers as u64) % self.tiles;
        }
        leave(self.records, reader, sum, count.into());
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let task: Task<()> = match (launch.kernel, &launch.args[..]) {
        ("latency_chase", args) => {
            let chase = Chase::new(loaded, args)?.ok_or_else(|| loaded.unknown(launch))?;
            Box::new(move |share: Share| {
                if share.worker == 0 {
                    chase.run();
                }
            })
        }
        ("latency_loaded", &[Arg::Buffer(records), Arg::Buffer(input), Arg::U64(n), ref chase @ .., Arg::U64(0), Arg::Buffer(_)]) => {
            let chase = Chase::new(loaded, chase)?.ok_or_else(|| loaded.unknown(launch))?;
            let (records, input, isa) = (loaded.whole(records)?, loaded.region(input, n)?, loaded.isa);
            let reading = Reading { isa, records, input, tiles: n / TILE_WORDS };
            // As many blocks as workers where there is a load, and one where there is none.
            let readers = launch.grid as usize - 1;
            let control = Control::default();
            Box::new(move |share: Share| match share.worker {
                0 => {
                    chase.run();
                    control.ended.store(true, Ordering::Release);
                    control.see(readers + 1);
                }
                worker if worker <= readers => {
                    reading.run(worker - 1, readers, chase.steps, &control);
                    control.see(readers + 1);
                }
                _ => {}
            })
        }
        _ => return Err(loaded.unknown(launch)),
    };
    Ok(Timed { task, stores: None })
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, data: Data, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    match (launch.kernel, &launch.args[..]) {
        ("check_latency_chase", [chase @ .., Arg::Status]) => {
            let chase = Expected::new(loaded, chase)?.ok_or_else(|| loaded.unknown(launch))?;
            Ok(Box::new(move |share| if share.worker == 0 { chase.check() } else { Findings::NONE }))
        }
        (
            "check_latency_loaded",
            &[Arg::Buffer(records), Arg::U64(readers), Arg::U64(n), Arg::U32(seed), Arg::Data, ref chase @ .., Arg::Status],
        ) => {
            let chase = Expected::new(loaded, chase)?.ok_or_else(|| loaded.unknown(launch))?;
            let (records, tiles, readers) = (loaded.whole(records)?, n / TILE_WORDS, readers as usize);
            Ok(Box::new(move |share| match share.worker {
                0 => chase.check(),
                worker if worker <= readers => {
                    let [sum, count] = left(records, worker - 1);
                    let expected = (count <= u64::from(chase.steps)).then(|| expected_sum(worker - 1, readers, count, tiles, seed, data));
                    compare(worker as u64, &[sum], |_, sum| Some(sum) == expected)
                }
                _ => Findings::NONE,
            }))
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// What a reader must have summed in `count` tiles, word by word; a tile that it came to again counts again.
fn expected_sum(reader: usize, readers: usize, count: u64, tiles: u64, seed: u32, data: Data) -> u64 {
    let mut sums = vec![None; tiles as usize];
    (0..count).fold(0u64, |sum, n| {
        let tile = (reader as u64 + n * readers as u64) % tiles;
        let words = tile * TILE_WORDS..(tile + 1) * TILE_WORDS;
        let of_tile = || words.fold(0u64, |sum, i| sum.wrapping_add(weighted(data.word(seed, i), i)));
        sum.wrapping_add(*sums[tile as usize].get_or_insert_with(of_tile))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::device::Program as _;

    #[test]
    fn chases_are_verified_whatever_the_number_of_lines() {
        // Around powers of two and of four, where the order is walked differently.
        for lines in [1u64, 2, 3, 5, 64, 65, 4097] {
            let plan = plan(&format!("latency/chase/{}", lines * LINE_BYTES), 2);
            assert!(found(&plan, nothing, nothing).passed(), "{lines}");
        }
    }

    #[test]
    fn a_chase_goes_on_where_the_execution_before_it_ended() {
        let plan = plan("latency/chase/5248", 1);
        with_plan(Isa::best(), 1, &plan, |program| {
            let order = Permutation::new(41, 0x5EED_001A);
            let mut ended = Vec::new();
            program.prepare(Data::Random).unwrap();
            for _ in 0..3 {
                program.execute(1).unwrap();
                ended.push(left(program.regions[0], 0)[0]);
            }
            let steps = 1u64 << 20;
            assert_eq!(ended, [1, 2, 3].map(|n| order.place(n * steps % 41)));
            // Prepared anew, it begins anew, and that is what the check expects.
            assert!(verify(program, Data::Random).passed());
        });
    }

    #[test]
    fn a_chase_that_took_another_way_is_found() {
        let plan = plan("latency/chase/5248", 2);
        assert!(found(&plan, nothing, nothing).passed());
        // Two lines change their successors: one cycle becomes two.
        let swapped = found(
            &plan,
            |regions| {
                let links = words(regions, 1);
                (0..2).for_each(|half| links.swap(half, 32 + half));
            },
            nothing,
        );
        assert_eq!((swapped.mismatches, swapped.first_bad), (1, Some(0)));
        for word in 0..4 {
            assert!(!found(&plan, nothing, |regions| words(regions, 0)[word] ^= 1).passed(), "{word}");
        }
    }

    #[test]
    #[should_panic]
    fn a_link_that_leads_out_of_the_buffer_is_not_followed() {
        found(&plan("latency/chase/5248", 1), |regions| words(regions, 1).fill(0), nothing);
    }

    #[test]
    fn a_load_is_verified_and_tells_how_much_it_read() {
        for workers in [2, 3] {
            let plan = plan("latency/loaded/100@675840", workers);
            with_plan(Isa::best(), workers, &plan, |program| {
                for _ in 0..3 {
                    assert!(verify(program, Data::Random).passed());
                    let read = |reader| left(program.regions[0], reader)[1];
                    assert!((0..workers - 1).all(|reader| (1..=1 << 17).contains(&read(reader))));
                }
            });
        }
        assert!(found(&plan("latency/loaded/0@675840", 2), nothing, nothing).passed());
    }

    #[test]
    fn a_reader_that_claims_more_or_other_tiles_than_it_read_is_found() {
        let plan = plan("latency/loaded/100@675840", 2);
        let altered = |word: usize, bit: u32| found(&plan, nothing, move |regions| words(regions, 0)[word] ^= bit);
        for (word, bit) in [(0, 1), (1, 1), (2, 1), (2, 1 << 31), (3, 1)] {
            assert_eq!(altered(word, bit).first_bad, Some(1), "{word}");
        }
        // In the first tile, which is read for certain.
        assert_eq!(found(&plan, |regions| words(regions, 1)[5] ^= 1, nothing).first_bad, Some(1));
    }
}
