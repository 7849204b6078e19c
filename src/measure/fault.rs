//! Faults put into a case on purpose, to prove that its verification sees them.

use crate::device::{Device, DeviceError, Program, Verification};
use crate::pattern::data::POISON;
use crate::pattern::{Case, Content, Data, Form, Plan, Work};

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The last element is not read or not written.
    DroppedTail,
    /// Every element is taken from one place further on.
    OffByOne,
    /// A block's results were never written.
    UnwrittenBlock,
    /// Two output channels changed places.
    SwappedChannel,
    /// Two chunks are looked for where the other is.
    SwappedPlaces,
    /// The lowest bit of one element is wrong.
    FlippedBit,
    /// A word after the end of the output was written.
    PastTheEnd,
}

/// Words of the largest sector: what the last access of a strided read lies in.
const SECTOR_WORDS: usize = 16;
/// Words of a block's results.
const BLOCK_WORDS: usize = 256;

/// What is done to the words of a buffer.
type Change = Box<dyn Fn(&mut [u32])>;

/// A fault as it shows in the memory of a case.
struct Alteration {
    buffer: usize,
    /// Whether inputs are altered before the work, or outputs after it.
    before: bool,
    change: Change,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 7] = [
        Self::DroppedTail,
        Self::OffByOne,
        Self::UnwrittenBlock,
        Self::SwappedChannel,
        Self::SwappedPlaces,
        Self::FlippedBit,
        Self::PastTheEnd,
    ];

    /// A few words for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DroppedTail => "dropped tail",
            Self::OffByOne => "off by one",
            Self::UnwrittenBlock => "unwritten block",
            Self::SwappedChannel => "swapped channel",
            Self::SwappedPlaces => "swapped places",
            Self::FlippedBit => "flipped bit",
            Self::PastTheEnd => "past the end",
        }
    }

    /// How it shows in a case; none where it does not apply.
    fn alteration(self, case: &Case) -> Option<Alteration> {
        let plan = &case.plan;
        let output = plan.buffers.iter().position(|buffer| buffer.content == Content::Poison)?;
        let input = plan.buffers.iter().position(|buffer| buffer.content != Content::Poison);
        let words = |buffer: usize| (plan.buffers[buffer].bytes / 4) as usize;
        // Of copies in both directions, faults in one output and in the other are to be seen.
        let last = plan.buffers.iter().rposition(|buffer| buffer.content == Content::Poison)?;
        let n = words(output);
        let after = |change: Change| Some(Alteration { buffer: output, before: false, change });
        // A case that only reads leaves checksums: what it reads is altered instead, but not links, for a kernel
        // that follows a wrong one leaves the memory of its plan. Copies over a link write what they read.
        let copies = matches!(plan.work, Work::Copies(_));
        let reads = input.filter(|_| case.bytes.requested_write == 0 && case.accesses.is_none() && !copies);
        let before = |buffer, change: Change| Some(Alteration { buffer, before: true, change });
        match (self, reads) {
            (Self::DroppedTail, Some(input)) => {
                let m = words(input);
                before(input, Box::new(move |all| all[m - SECTOR_WORDS.min(m)..m].fill(0)))
            }
            (Self::DroppedTail, None) => after(Box::new(move |all| poison_last(&mut all[..n]))),
            (Self::OffByOne, Some(input)) => {
                let m = words(input);
                before(input, Box::new(move |all| all[..m].rotate_left(1)))
            }
            (Self::OffByOne, None) => after(Box::new(move |all| all[..n].rotate_left(1))),
            (Self::UnwrittenBlock, Some(_)) => after(Box::new(|sums| sums[..2].fill(POISON))),
            (Self::UnwrittenBlock, None) => after(Box::new(move |all| all[..n.min(BLOCK_WORDS)].fill(POISON))),
            (Self::SwappedChannel, _) => {
                let extent = case.parameters.get("extent")?.as_array()?;
                let volume: u64 = extent.iter().filter_map(|side| side.as_u64()).product();
                let volume = usize::try_from(volume).ok().filter(|volume| 2 * volume <= n)?;
                after(Box::new(move |all| {
                    let (one, two) = all.split_at_mut(volume);
                    one.swap_with_slice(&mut two[..volume]);
                }))
            }
            (Self::FlippedBit, Some(input)) if plan.rounds() => {
                let (word, bit) = sign_that_counts(plan, input)?;
                before(input, Box::new(move |all| all[word] ^= bit))
            }
            (Self::SwappedPlaces, _) => {
                let index = plan.buffers.iter().position(|buffer| matches!(buffer.content, Content::Permutation { .. }))?;
                before(index, Box::new(|places| places.swap(0, 1)))
            }
            (Self::FlippedBit, Some(input)) => before(input, Box::new(|all| all[0] ^= 1)),
            (Self::FlippedBit, None) if copies => {
                Some(Alteration { buffer: last, before: false, change: Box::new(move |all| all[n / 2] ^= 1) })
            }
            (Self::FlippedBit, None) => after(Box::new(move |all| {
                if let Some(word) = all[n / 2..n].iter_mut().find(|word| **word != POISON) {
                    *word ^= 1;
                }
            })),
            (Self::PastTheEnd, _) => after(Box::new(move |all| all[n] = 0)),
        }
    }
}

/// The word and bit that hold the sign of an element of `input` whose products are not 0 on small integers. A rounded
/// sum of many products shows a lost element, and not the lowest bit of one.
fn sign_that_counts(plan: &Plan, input: usize) -> Option<(usize, u32)> {
    let seed = |content| match content {
        Content::Numbers { seed } | Content::Doubles { seed } | Content::Halves { seed } => Some(seed),
        _ => None,
    };
    let seeds: Vec<u32> = plan.buffers.iter().filter_map(|buffer| seed(buffer.content)).collect();
    let element = (0..1000).find(|&i| seeds.iter().all(|&seed| Data::SmallIntegers.number(seed, i) != 0.0))? as usize;
    match plan.buffers[input].content {
        Content::Doubles { .. } => Some((2 * element + 1, 1 << 31)),
        Content::Halves { .. } => Some((element / 2, 1 << (15 + 16 * (element % 2)))),
        _ => Some((element, 1 << 31)),
    }
}

/// Undoes the last write.
fn poison_last(words: &mut [u32]) {
    if let Some(word) = words.iter_mut().rfind(|word| **word != POISON) {
        *word = POISON;
    }
}

/// What the verification of a case says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was right.
    Right,
    /// Something was wrong.
    Wrong,
    /// The fault does not apply to the case.
    NotApplicable,
}

/// Verifies a case with a fault in it, or without one.
///
/// # Errors
/// When the device fails.
pub fn with_fault(case: &Case, device: &mut dyn Device, fault: Option<Fault>) -> Result<Outcome, DeviceError> {
    let alteration = match fault {
        None => None,
        Some(fault) => match fault.alteration(case) {
            None => return Ok(Outcome::NotApplicable),
            some => some,
        },
    };
    let mut program = device.load(&case.plan)?;
    let found = verify_altered(program.as_mut(), &case.plan, alteration.as_ref())?;
    Ok(if found.passed() { Outcome::Right } else { Outcome::Wrong })
}

/// Verifies a case in each of its ways: the kernels of those whose results are wrong.
///
/// # Errors
/// When the device fails.
pub fn wrong_ways(case: &Case, device: &mut dyn Device) -> Result<Vec<Form>, DeviceError> {
    let Some(ways) = &case.ways else { return Ok(Vec::new()) };
    let mut program = device.load(&case.plan)?;
    let mut wrong = Vec::new();
    for way in ways.all() {
        program.take(way)?;
        if !super::verify(program.as_mut(), &case.plan, Data::Random)?.passed() {
            wrong.push(way.form);
        }
    }
    Ok(wrong)
}

/// As [`super::verify`], with the alteration before or after each execution.
fn verify_altered(program: &mut dyn Program, plan: &Plan, alteration: Option<&Alteration>) -> Result<Verification, DeviceError> {
    super::verification::verify_with(program, plan, Data::Random, &mut |program, done| match alteration {
        Some(alteration) if alteration.before != done => program.alter(alteration.buffer, &*alteration.change),
        _ => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::host::HostDevice;
    use crate::pattern::{self, CaseId, Facts, PATTERNS, PlanError};

    #[test]
    fn faults_of_copies_lie_in_what_was_written_and_in_both_directions() {
        let buffers = |id: &str| {
            let case = pattern::plan(&CaseId::new(id), &Facts::H200).unwrap();
            let altered: Vec<Alteration> = Fault::ALL.iter().filter_map(|fault| fault.alteration(&case)).collect();
            assert!(altered.len() >= 5 && altered.iter().all(|alteration| !alteration.before), "{id}");
            altered.iter().map(|alteration| alteration.buffer).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(buffers("transfer/h2d/pinned@1000004"), [0].into());
        assert_eq!(buffers("transfer/d2h/pageable@1000004"), [0].into());
        assert_eq!(buffers("transfer/both/pinned@1000004"), [0, 2].into());
    }

    #[test]
    fn every_fault_that_applies_is_seen_in_every_pattern() {
        let mut device = HostDevice::open().unwrap();
        let mut seen = 0;
        // A debug build takes minutes for the arithmetic of `compute`, whose own tests put faults in.
        for id in PATTERNS.iter().filter(|pattern| pattern.name() != "compute").flat_map(|pattern| pattern.trials()) {
            let case = match pattern::plan(&CaseId::new(id), &device.facts().unwrap()) {
                Err(PlanError::Unsupported(_)) => continue,
                case => case.unwrap(),
            };
            assert_eq!(with_fault(&case, &mut device, None).unwrap(), Outcome::Right, "{id}");
            for fault in Fault::ALL {
                match with_fault(&case, &mut device, Some(fault)).unwrap() {
                    Outcome::NotApplicable => assert!(matches!(fault, Fault::SwappedChannel | Fault::SwappedPlaces), "{id}"),
                    outcome => assert_eq!(outcome, Outcome::Wrong, "{id}: {}", fault.name()),
                }
                seen += 1;
            }
        }
        assert!(seen >= 12 * Fault::ALL.len());
    }
}
