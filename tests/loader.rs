//! A file, however it was damaged, is a document or an error: never a panic, never a wait, never out of memory.
//!
//! `HBMARK_MUTATIONS=100000 cargo test --release --test loader` tries more than the default.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use common::documents;
use fastrand::Rng;
use hbmark::check::check;
use hbmark::measure::judge_again;
use hbmark::record;
use hbmark::report::{Format, render};

/// Mutations by default: ten seconds in a debug build.
const MUTATIONS: u64 = 2000;

/// A document of some hundred KiB is read in milliseconds; far beyond this, something does not end.
const LONGEST: Duration = Duration::from_secs(10);

/// Numbers at and beyond the ends of what types hold.
const NUMBERS: [&str; 10] = [
    "1e308",
    "-1e308",
    "1e999",
    "1e-320",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775809",
    "-1",
    "0",
    "99999999999999999999999999999999999999999999",
];

fn extreme(rng: &mut Rng) -> &'static str {
    NUMBERS[rng.usize(..NUMBERS.len())]
}

/// A place and a length in a text of `len` bytes.
fn chunk(rng: &mut Rng, len: usize) -> Range<usize> {
    let start = rng.usize(..=len);
    start..(start + rng.usize(..=4096)).min(len)
}

/// Damages a document in one of seven ways.
fn mutate(rng: &mut Rng, text: &mut Vec<u8>) {
    match rng.u8(..7) {
        0 if !text.is_empty() => {
            for _ in 0..rng.usize(1..=8) {
                let at = rng.usize(..text.len());
                text[at] ^= 1 << rng.u8(..8);
            }
        }
        1 => text.truncate(rng.usize(..=text.len())),
        2 => {
            let (from, to) = (chunk(rng, text.len()), rng.usize(..=text.len()));
            let copy = text[from].to_vec();
            text.splice(to..to, copy);
        }
        3 => drop(text.drain(chunk(rng, text.len()))),
        4 => {
            let all = numbers(text);
            let one = rng.usize(..=all.len());
            all.into_iter().skip(one).take(1).for_each(|place| drop(text.splice(place, extreme(rng).bytes())));
        }
        // A tenth of all numbers at once, from the last: sums and products of them overflow too.
        5 => {
            for place in numbers(text).into_iter().rev() {
                if rng.u8(..10) == 0 {
                    text.splice(place, extreme(rng).bytes());
                }
            }
        }
        _ => {
            let (at, depth) = (rng.usize(..=text.len()), rng.usize(1..=100_000));
            let nested = if rng.bool() { "[".repeat(depth) } else { "{\"a\":".repeat(depth) };
            text.splice(at..at, nested.into_bytes());
        }
    }
}

/// The places of all numbers.
fn numbers(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 1;
    while at < text.len() {
        let length = text[at..].iter().take_while(|c| c.is_ascii_digit() || b"+-.eE".contains(c)).count();
        if length > 0 && b" :[,".contains(&text[at - 1]) {
            found.push(at..at + length);
        }
        at += length.max(1);
    }
    found
}

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most that they were.
    static LIVE: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// The system's allocator, which counts what each thread takes: a thread that loads a file is alone in its count.
struct Counting;

impl Counting {
    fn took(bytes: usize) {
        let (live, most) = LIVE.get();
        let live = live + bytes;
        LIVE.set((live, most.max(live)));
    }

    fn gave(bytes: usize) {
        let (live, most) = LIVE.get();
        // What another thread allocated may be freed here.
        LIVE.set((live.saturating_sub(bytes), most));
    }
}

// SAFETY: every call goes to the system's allocator as it came; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::took(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::gave(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }

    // `realloc` is that of the trait: the old block and the new one count beside each other while one is copied.
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of some work, and the most bytes that it held at once.
fn most_memory<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let (before, _) = LIVE.get();
    LIVE.set((before, before));
    let result = work();
    (result, LIVE.get().1 - before)
}

/// What `report` and `check` do with a file, up to drawing: whether it was a document, and the most memory that reading
/// it or checking it took.
fn read(path: &Path) -> (bool, usize) {
    let ((), to_check) = most_memory(|| {
        if let Ok(claims) = record::load_claims(path) {
            claims.iter().for_each(|claims| drop(check(claims)));
        }
    });
    let (runs, to_load) = most_memory(|| record::load_all(path));
    let most = to_check.max(to_load);
    let Ok(mut runs) = runs else { return (false, most) };
    runs.iter_mut().for_each(judge_again);
    for format in [Format::Table, Format::Json, Format::Csv, Format::Markdown] {
        let _ = render(&runs, format, None);
    }
    (true, most)
}

/// How many times a file's size reading it may take.
const MOST_TIMES: f64 = 16.0;

/// A smaller file counts as one of this size: the first row alone has a size of its own.
const SMALL: usize = 4 << 10;

/// How many times the size of a file of `len` bytes this memory is.
fn times(memory: usize, len: usize) -> f64 {
    memory as f64 / len.max(SMALL) as f64
}

#[test]
fn reading_a_recorded_document_takes_at_most_16_times_its_size_however_it_is_spaced_and_repeated() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.json");
    let mut largest = 0f64;
    for path in documents() {
        let pretty = std::fs::read_to_string(&path).expect("a file");
        let compact = serde_json::from_str::<serde_json::Value>(&pretty).expect("JSON").to_string();
        let many = format!("[{}]", vec![compact.as_str(); 50].join(","));
        for text in [pretty, compact, many] {
            std::fs::write(&file, &text).expect("a file in the temporary folder");
            let (document, most) = read(&file);
            assert!(document && times(most, text.len()) <= MOST_TIMES, "{}: {most} of {} bytes", path.display(), text.len());
            largest = largest.max(times(most, text.len()));
        }
    }
    println!("at most {largest:.2} times the size of a file");
}

#[test]
fn a_damaged_document_is_an_error_or_a_document_and_takes_at_most_16_times_its_size() {
    let mutations = std::env::var("HBMARK_MUTATIONS").map_or(MUTATIONS, |n| n.parse().expect("a number of mutations"));
    let originals: Vec<Vec<u8>> = documents().iter().map(|path| std::fs::read(path).expect("a file")).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("run.json");
    let (mut loaded, mut largest, started) = (0, 0f64, Instant::now());
    for seed in 0..mutations {
        let mut rng = Rng::with_seed(seed);
        let mut text = originals[rng.usize(..originals.len())].clone();
        for _ in 0..rng.usize(1..=2) {
            mutate(&mut rng, &mut text);
        }
        std::fs::write(&file, &text).expect("a file in the temporary folder");
        let began = Instant::now();
        let outcome = std::panic::catch_unwind(|| read(&file));
        let (document, most) = outcome.unwrap_or_else(|_| panic!("mutation {seed}"));
        assert!(began.elapsed() < LONGEST, "mutation {seed} took {:?}", began.elapsed());
        assert!(times(most, text.len()) <= MOST_TIMES, "mutation {seed} took {most} for {} bytes", text.len());
        largest = largest.max(times(most, text.len()));
        loaded += u64::from(document);
    }
    println!(
        "{mutations} mutations in {:.1?}: {loaded} documents, {} errors; at most {largest:.2} times the size of a file",
        started.elapsed(),
        mutations - loaded
    );
    // Both ways were taken, or the mutations test nothing.
    assert!(mutations < 100 || (loaded > 0 && loaded < mutations), "{loaded} of {mutations}");
}
