//! `transfer`: copies between the main memory of the machine and the card, over the link between the two.
//!
//! | direction | source | destination |
//! |---|---|---|
//! | h2d | main memory | card |
//! | d2h | card | main memory |
//! | both | each | each, at the same time |
//!
//! Pinned memory the card reads and writes by itself; pageable memory the driver copies piece by piece through
//! pinned memory of its own. Each byte counts once, as it crosses the link: as one that is read at its source.

use serde_json::json;

use super::plan::{Arg, Buffer, BufferCopy, Launch, Place, Plan, Work};
use super::size::{Sizing, size_of};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, PlanError, Profile};

const NAME: &str = "transfer";

/// What goes to the card and what comes from it; told apart, so that one is not taken for the other.
const SEED_TO_CARD: u32 = 0x5EED_0A2D;
const SEED_FROM_CARD: u32 = 0x5EED_0D2A;

/// An array of this size takes some 5 ms over 16 lanes of PCIe 5.0: starting the copy costs next to nothing, and
/// no last cache of a processor holds more than a part of it.
const DEFAULT_BYTES: u64 = 256 << 20;
/// Less than this and starting the copy would be part of the figure.
const LEAST_BYTES: u64 = 16 << 20;
/// Default sizes are whole pages.
const GRANULE: u64 = 64 << 10;
/// Arrays of the card for each in main memory: its counterpart, and one through which kernels fill and check it.
const ON_CARD: u64 = 2;
/// Pinned memory is lost to everybody else while it is held: by default at most a quarter of what is free is
/// taken, and never more than half.
const MAIN_SHARE_DEFAULT: u64 = 4;
const MAIN_SHARE_MOST: u64 = 2;

/// Which way the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToCard,
    FromCard,
    Both,
}

impl Direction {
    const ALL: [Self; 3] = [Self::ToCard, Self::FromCard, Self::Both];

    const fn name(self) -> &'static str {
        match self {
            Self::ToCard => "h2d",
            Self::FromCard => "d2h",
            Self::Both => "both",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|direction| direction.name() == name)
    }

    /// How many directions of the link are busy.
    const fn directions(self) -> u64 {
        match self {
            Self::ToCard | Self::FromCard => 1,
            Self::Both => 2,
        }
    }
}

/// Kinds of main memory, by the names in ids.
const PLACES: [(&str, Place); 2] = [("pinned", Place::Pinned), ("pageable", Place::Pageable)];

/// In how many directions the case with this id keeps the link to the processor busy; none where it is no matter of the link.
pub fn link_directions(id: &str) -> Option<u64> {
    let id = CaseId::new(id);
    let direction = id.name().strip_prefix(NAME)?.strip_prefix('/')?.split('/').next()?;
    Some(Direction::of(direction)?.directions())
}

/// The transfer pattern.
pub struct Transfer;

impl Pattern for Transfer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "copies between main memory, pinned or pageable, and the card, one way and both ways at once (GPU only)"
    }

    fn ids(&self, profile: Profile, kind: DeviceKind) -> Vec<String> {
        if kind == DeviceKind::Host || profile == Profile::Quick {
            return Vec::new();
        }
        let ids = |direction: Direction| PLACES.map(|(place, _)| format!("{NAME}/{}/{place}", direction.name()));
        Direction::ALL.into_iter().flat_map(ids).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &[
            "transfer/h2d/pinned@1000004",
            "transfer/h2d/pageable@1000004",
            "transfer/d2h/pinned@1000004",
            "transfer/d2h/pageable@1000004",
            "transfer/both/pinned@1000004",
            "transfer/both/pageable@1000004",
        ]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let unknown = || PlanError::Unknown(format!("'{id}' is not {NAME}/<h2d|d2h|both>/<pinned|pageable>"));
        let [direction, place] = id.parts()[..] else { return Err(unknown()) };
        let direction = Direction::of(direction).ok_or_else(unknown)?;
        let (kind, place) = PLACES.into_iter().find(|(name, _)| *name == place).ok_or_else(unknown)?;
        if facts.kind == DeviceKind::Host {
            return Err(PlanError::Unsupported("a host has no link between its memory and itself".into()));
        }
        let directions = direction.directions();
        let sizing = sizing(id, facts, directions)?;
        let array = sizing.bytes_each;

        let mut parameters = Parameters::new();
        parameters.insert("array_bytes".into(), json!(array));
        parameters.insert("main_memory".into(), json!(kind));
        parameters.insert("directions".into(), json!(directions));
        parameters.insert("counted".into(), json!("each byte once, as it crosses the link"));
        Ok(Case {
            id: id.clone(),
            // Neither the card's memory nor its cache sets the pace.
            level: Level::Mixed,
            parameters,
            bytes: Bytes::contiguous(array * directions, 0),
            flops: 0,
            compute_pipe: None,
            accesses: None,
            report: None,
            notes: sizing.notes,
            plan: plan(direction, place, array, facts),
            ways: None,
        })
    }
}

/// The length of each array: the id's own size, or the default as far as card and machine have room.
fn sizing(id: &CaseId, facts: &Facts, directions: u64) -> Result<Sizing, PlanError> {
    const MIB: u64 = 1 << 20;
    if id.size().is_some() {
        let sizing = size_of(id, facts, ON_CARD * directions, 4)?;
        let (wanted, room) = (sizing.bytes_each * directions, facts.main_free_bytes / MAIN_SHARE_MOST);
        return if wanted <= room {
            Ok(sizing)
        } else {
            Err(PlanError::TooLarge(format!(
                "'{id}' needs {} MiB of main memory, and {} MiB are free, of which half is left to others; choose a smaller size after '@', or none for the default",
                wanted.div_ceil(MIB),
                facts.main_free_bytes / MIB
            )))
        };
    }
    let on_card = facts.free_bytes / 10 * 6 / (ON_CARD * directions);
    let in_main = facts.main_free_bytes / MAIN_SHARE_DEFAULT / directions;
    let room = on_card.min(in_main) / GRANULE * GRANULE;
    if room < LEAST_BYTES {
        return Err(PlanError::TooLarge(format!(
            "too little free memory for a meaningful figure: {} MiB are free on the card and {} MiB in the machine, and arrays of {} MiB are the least that is useful; end other programs here, or name a smaller size after '@' (the row then shows what starting a copy costs)",
            facts.free_bytes / MIB,
            facts.main_free_bytes / MIB,
            LEAST_BYTES / MIB
        )));
    }
    let bytes_each = DEFAULT_BYTES.min(room);
    let capped = || format!("arrays of {} MiB in place of {}: there is no more room", bytes_each / MIB, DEFAULT_BYTES / MIB);
    Ok(Sizing { bytes_each, notes: (bytes_each < DEFAULT_BYTES).then(capped).into_iter().collect() })
}

fn plan(direction: Direction, place: Place, array: u64, facts: &Facts) -> Plan {
    let to_card = [Buffer::output(array), Buffer::words(array, SEED_TO_CARD).at(place)];
    let from_card = [Buffer::output(array).at(place), Buffer::words(array, SEED_FROM_CARD)];
    let words = array / 4 * direction.directions();
    let check = |module, kernel, args| Launch { module, kernel, grid: facts.units * 8, block: 256, args, body: None };
    let one = |seed| check("stream_check", "check_words", vec![Arg::Buffer(0), Arg::U64(words), Arg::U32(seed), Arg::Data, Arg::Status]);
    let (buffers, check) = match direction {
        Direction::ToCard => (to_card.to_vec(), one(SEED_TO_CARD)),
        Direction::FromCard => (from_card.to_vec(), one(SEED_FROM_CARD)),
        Direction::Both => {
            let seeds = [SEED_TO_CARD, SEED_FROM_CARD].map(Arg::U32);
            let args = [Arg::Buffer(0), Arg::U64(words), Arg::Buffer(2), seeds[0], seeds[1], Arg::Data, Arg::Status];
            ([to_card, from_card].concat(), check("transfer", "check_both", args.to_vec()))
        }
    };
    let copies = (0..buffers.len()).step_by(2).map(|to| BufferCopy { from: to + 1, to }).collect();
    Plan { buffers, work: Work::Copies(copies), check, compared: words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Content;

    const MIB: u64 = 1 << 20;

    fn case_on(text: &str, facts: &Facts) -> Result<Case, PlanError> {
        Transfer.case(&CaseId::new(text), facts)
    }

    fn case(text: &str) -> Case {
        case_on(text, &Facts::H200).unwrap()
    }

    #[test]
    fn each_byte_counts_once_as_it_crosses_the_link() {
        for (id, directions) in [("transfer/h2d/pinned", 1), ("transfer/d2h/pageable", 1), ("transfer/both/pinned", 2)] {
            let case = case(id);
            assert_eq!((case.bytes.requested_read, case.bytes.requested_write), (directions * 256 * MIB, 0), "{id}");
            assert_eq!((case.plan.compared, link_directions(id)), (directions * 64 * MIB, Some(directions)), "{id}");
        }
        assert_eq!(link_directions("transfer/both/pageable@4096"), Some(2));
        for id in ["copy_engine/d2d", "transfer", "transfer/up/pinned", "transfers/h2d/pinned"] {
            assert_eq!(link_directions(id), None, "{id}");
        }
    }

    #[test]
    fn every_copy_crosses_the_link_from_words_to_an_output_of_the_same_length() {
        for id in Transfer.ids(Profile::Full, DeviceKind::Cuda) {
            let case = case(&id);
            let Work::Copies(copies) = &case.plan.work else { unreachable!() };
            assert_eq!(copies.len() as u64, link_directions(&id).unwrap(), "{id}");
            let wanted = if id.ends_with("pinned") { Place::Pinned } else { Place::Pageable };
            for copy in copies {
                let [from, to] = [copy.from, copy.to].map(|n| case.plan.buffers[n]);
                assert!(matches!(from.content, Content::Words { .. }) && to.content == Content::Poison && from.bytes == to.bytes, "{id}");
                let main: Vec<Place> = [from, to].map(|buffer| buffer.place).into_iter().filter(|place| *place != Place::Device).collect();
                assert_eq!(main, [wanted], "{id}");
            }
        }
    }

    #[test]
    fn the_two_directions_copy_different_words_and_both_results_are_compared() {
        let Plan { work: Work::Copies(copies), buffers, check, compared } = case("transfer/both/pinned@4096").plan else { unreachable!() };
        assert_ne!(buffers[copies[0].from].content, buffers[copies[1].from].content);
        assert_eq!([buffers[copies[0].to].place, buffers[copies[1].to].place], [Place::Device, Place::Pinned]);
        assert!(copies.iter().all(|copy| check.args.contains(&Arg::Buffer(copy.to))));
        assert_eq!(compared, 2 * 1024);
    }

    #[test]
    fn a_transfer_is_no_bandwidth_of_the_memory_whatever_its_size() {
        for size in [4u64, 4096, 1 << 33] {
            assert_eq!(case(&format!("transfer/h2d/pinned@{size}")).level, Level::Mixed);
        }
    }

    #[test]
    fn the_default_shrinks_to_what_card_and_machine_have_free_and_says_so() {
        let array = |facts| case_on("transfer/both/pinned", &facts).map(|c| (c.plan.buffers[0].bytes / MIB, c.notes.len()));
        assert_eq!(array(Facts::H200), Ok((256, 0)));
        assert_eq!(array(Facts { main_free_bytes: 512 * MIB, ..Facts::H200 }), Ok((64, 1)));
        assert_eq!(array(Facts { free_bytes: 400 * MIB, ..Facts::H200 }), Ok((60, 1)));
        let refused = array(Facts { main_free_bytes: 64 * MIB, ..Facts::H200 });
        assert!(matches!(&refused, Err(PlanError::TooLarge(why)) if why.contains("64 MiB in the machine")), "{refused:?}");
    }

    #[test]
    fn a_named_size_leaves_half_of_the_main_memory_and_a_tenth_of_the_cards() {
        let facts = Facts { main_free_bytes: 16 << 30, ..Facts::H200 };
        assert!(case_on("transfer/both/pinned@4294967296", &facts).is_ok());
        let refused = case_on("transfer/both/pinned@4294967300", &facts).map(|_| ());
        assert!(matches!(&refused, Err(PlanError::TooLarge(why)) if why.contains("of main memory")), "{refused:?}");
        let small = Facts { free_bytes: 1 << 30, ..Facts::H200 };
        assert!(matches!(case_on("transfer/h2d/pinned@536870912", &small), Err(PlanError::TooLarge(_))));
        assert!(matches!(case_on("transfer/h2d/pinned@1002", &small), Err(PlanError::Invalid(_))));
    }

    #[test]
    fn sizes_on_both_sides_of_31_and_32_bits_are_exact() {
        for bytes in [(1u64 << 31) - 4, 1 << 31, (1 << 32) + 4, (1 << 34) + 4] {
            let case = case(&format!("transfer/both/pageable@{bytes}"));
            assert_eq!((case.bytes.requested(), case.plan.compared), (2 * bytes, bytes / 2));
        }
    }

    #[test]
    fn a_host_has_no_link_and_other_names_are_refused() {
        assert!(matches!(case_on("transfer/h2d/pinned", &Facts::HOST), Err(PlanError::Unsupported(why)) if why.contains("no link")));
        assert!(Transfer.ids(Profile::Full, DeviceKind::Host).is_empty());
        for id in ["transfer", "transfer/h2d", "transfer/h2h/pinned", "transfer/h2d/paged", "transfer/h2d/pinned/4"] {
            assert!(matches!(case_on(id, &Facts::H200), Err(PlanError::Unknown(why)) if why.contains(id)), "{id}");
        }
    }

    #[test]
    fn the_quick_profile_has_no_transfers_and_the_others_have_all() {
        assert_eq!([Profile::Quick, Profile::Standard, Profile::Full].map(|p| Transfer.ids(p, DeviceKind::Cuda).len()), [0, 6, 6]);
    }
}
