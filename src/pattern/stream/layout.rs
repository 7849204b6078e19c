//! Buffers, kernels and geometry of one pass, in every form.

use super::form::{self, Compiled};
use super::operation::dot_tolerance;
use super::{BLOCKS_PER_UNIT, Element, Operation};
use crate::pattern::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use crate::pattern::ways::{Form, Rung, Way, Ways};
use crate::pattern::{DeviceKind, Facts, data};

/// The seeds of the arrays that an operation reads, and where the written sequence starts.
const SEED_B: u32 = 0x5EED_000B;
const SEED_C: u32 = 0x5EED_000C;
const SEED_A: u32 = 0x5EED_000A;

/// Threads of a block and blocks a multiprocessor that a tuner may try; none: a block for each tile.
const BLOCKS: [u32; 4] = [128, 256, 512, 1024];
const BLOCKS_PER_UNIT_TRIED: [Option<u32>; 6] = [Some(2), Some(4), Some(8), Some(32), Some(BLOCKS_PER_UNIT), None];
/// Elements whose products a worker of the host adds up in their own type; sums of pieces are added in f64.
pub(crate) const HOST_PIECE_ELEMENTS: usize = 16 << 10;
/// More sums than this for each multiprocessor are no sums any more.
const MOST_SUMS_PER_UNIT: u64 = 4096;

/// Threads a multiprocessor and vectors of 16 bytes a thread that make the rungs of the ladder: 1 KiB to
/// 128 KiB of loads in flight from one array. No card grants more than 1024 threads of 64 registers.
const RUNGS: [(u32, u32); 14] = [
    (64, 1),
    (128, 1),
    (192, 1),
    (256, 1),
    (384, 1),
    (512, 1),
    (768, 1),
    (1024, 1),
    (768, 2),
    (1024, 2),
    (768, 4),
    (1024, 4),
    (768, 8),
    (1024, 8),
];

/// One pass over arrays of `array` bytes.
pub(super) struct Layout<'a> {
    pub operation: Operation,
    pub element: Element,
    pub array: u64,
    pub facts: &'a Facts,
}

impl Layout<'_> {
    /// How the pass is carried out, and on a GPU in which ways.
    pub fn plan(&self) -> (Plan, Option<Ways>) {
        match self.facts.kind {
            DeviceKind::Host => (self.host_plan(), None),
            DeviceKind::Cuda => {
                let ways = self.ways();
                let start = ways.of(&ways.start).unwrap_or(&ways.naive).clone();
                let grid = ways.all().map(|way| way.work.grid).max().unwrap_or(1);
                let plan = Plan {
                    compared: start.compared,
                    buffers: self.buffers(u64::from(grid)),
                    work: Work::Kernel(start.work),
                    check: start.check,
                };
                (plan, Some(ways))
            }
        }
    }

    fn words(&self) -> u64 {
        self.array / 4
    }

    /// Where the arrays, and the sums of `blocks` blocks, are: the output first, but of a pass that sums.
    fn buffers(&self, blocks: u64) -> Vec<Buffer> {
        let input = |seed| if self.operation.computes() { self.element.buffer(self.array, seed) } else { Buffer::words(self.array, seed) };
        let inputs = [SEED_B, SEED_C].into_iter().take(self.operation.arrays_read() as usize).map(input);
        if self.operation.sums() {
            inputs.chain([Buffer::output(blocks * 8)]).collect()
        } else {
            [Buffer::output(self.array)].into_iter().chain(inputs).collect()
        }
    }

    /// What the kernel of the pass takes, in its order.
    fn work_args(&self) -> Vec<Arg> {
        let buffers = (0..self.buffers(0).len()).map(Arg::Buffer);
        let own = match self.operation {
            Operation::Write => Some(Arg::U32(SEED_A)),
            Operation::Scale | Operation::Triad => Some(Arg::F32(data::TRIAD_SCALAR)),
            Operation::Read | Operation::Copy | Operation::Add | Operation::Dot => None,
        };
        buffers.chain([Arg::U64(self.words())]).chain(own).collect()
    }

    /// The check's kernel.
    fn check_kernel(&self) -> &'static str {
        use Element::{F16, F32, F64};
        match (self.operation, self.element) {
            (Operation::Read, _) => "check_stream_read",
            (Operation::Write, _) => "check_stream_write",
            (Operation::Copy, _) => "check_words",
            (Operation::Scale, F32) => "check_scale_f32",
            (Operation::Scale, F64) => "check_scale_f64",
            (Operation::Scale, F16) => "check_scale_f16",
            (Operation::Add, F32) => "check_add_f32",
            (Operation::Add, F64) => "check_add_f64",
            (Operation::Add, F16) => "check_add_f16",
            (Operation::Triad, F32) => "check_triad_f32",
            (Operation::Triad, F64) => "check_triad_f64",
            (Operation::Triad, F16) => "check_triad_f16",
            (Operation::Dot, F32) => "check_dot_f32",
            (Operation::Dot, F64) => "check_dot_f64",
            (Operation::Dot, F16) => "check_dot_f16",
        }
    }

    /// What the check takes, in its order; `tiles` are the words of a tile and of a vector where sums are
    /// checked block by block, and `terms` the products that a thread adds up.
    fn check_args(&self, tiles: [u64; 2], terms: u64) -> Vec<Arg> {
        let sums = self.operation.arrays_read() as usize;
        let result = Arg::Buffer(if self.operation.sums() { sums } else { 0 });
        let tiles = tiles.map(Arg::U64);
        let (b, c, scalar) = (Arg::U32(SEED_B), Arg::U32(SEED_C), Arg::F32(data::TRIAD_SCALAR));
        let rounded = Arg::Tolerance(self.element.tolerance());
        let own: Vec<Arg> = match self.operation {
            Operation::Read => [&tiles[..], &[b, Arg::Data]].concat(),
            Operation::Write => vec![Arg::U32(SEED_A)],
            Operation::Copy => vec![b, Arg::Data],
            Operation::Scale => vec![b, scalar, Arg::Data, rounded],
            Operation::Add => vec![b, c, Arg::Data, rounded],
            Operation::Triad => vec![b, c, scalar, Arg::Data, rounded],
            Operation::Dot => [&tiles[..], &[b, c, Arg::Data, Arg::Tolerance(dot_tolerance(self.element, terms))]].concat(),
        };
        [vec![result, Arg::U64(self.words())], own, vec![Arg::Status]].concat()
    }

    /// The way of a kernel with this geometry.
    fn way(&self, kernel: &Compiled, block: u32, blocks_per_unit: Option<u32>) -> Way {
        let &Compiled { vector_bytes, unroll, once, .. } = kernel;
        let vector_words = u64::from(vector_bytes / 4);
        let tile_words = u64::from(block * unroll) * vector_words;
        let tiles = self.words().div_ceil(tile_words).max(1);
        let grid = match blocks_per_unit {
            Some(blocks) => tiles.min(u64::from(self.facts.units) * u64::from(blocks)),
            None => tiles,
        };
        // 2^31 tiles of 512 bytes, the smallest, are a TiB: more than any card holds.
        let grid = u32::try_from(grid).unwrap_or(u32::MAX);
        let loaded = vector_bytes * unroll;
        let body =
            Body { load_bytes: loaded * self.operation.arrays_read() as u32, store_bytes: loaded * self.operation.arrays_written() as u32 };
        let work = Launch {
            module: form::family(self.operation, self.element).module,
            kernel: kernel.kernel,
            grid,
            block,
            args: self.work_args(),
            body: Some(body),
        };
        let tiles_a_block = tiles.div_ceil(u64::from(grid));
        let terms = tiles_a_block * u64::from(loaded) / self.element.bytes();
        let sums = self.operation.sums();
        let check = Launch {
            module: "stream_check",
            kernel: self.check_kernel(),
            // Sums are checked block by block, as they were summed; elements in strides of the grid, whatever its size.
            grid: if sums { grid } else { grid.min(self.facts.units.saturating_mul(8)) },
            block: 256,
            args: self.check_args([tile_words, vector_words], terms),
            body: None,
        };
        let compared = if sums { u64::from(grid) } else { self.results() };
        Way { form: Form { vector_bytes, unroll, once, block, blocks_per_unit }, work, check, compared }
    }

    /// How many results a pass without sums has: words, or elements where it computes.
    fn results(&self) -> u64 {
        if self.operation.computes() { self.array / self.element.bytes() } else { self.words() }
    }

    fn ways(&self) -> Ways {
        let family = form::family(self.operation, self.element);
        let sums = self.operation.sums();
        let most_sums = u64::from(self.facts.units) * MOST_SUMS_PER_UNIT;
        let mut choice = Vec::new();
        for kernel in family.all() {
            for block in BLOCKS.into_iter().filter(|block| *block <= kernel.most_threads) {
                let ways = BLOCKS_PER_UNIT_TRIED.into_iter().map(|blocks_per_unit| self.way(kernel, block, blocks_per_unit));
                choice.extend(ways.filter(|way| !sums || u64::from(way.work.grid) <= most_sums));
            }
        }
        // On an H200 (2026-12; METHOD.md) sums want many loads in flight and blocks that take turns, and
        // stores one vector a thread and a block for each tile, in order.
        let start = if sums {
            Form { vector_bytes: 16, unroll: 8, once: false, block: 512, blocks_per_unit: Some(BLOCKS_PER_UNIT) }
        } else {
            Form { vector_bytes: 16, unroll: 1, once: false, block: 256, blocks_per_unit: None }
        };
        // A sum lives across tiles, so even the simplest program has its threads stay.
        let naive = self.way(&family.kernels[0][0], 256, sums.then_some(8));
        Ways { family: family.module, choice, start, naive, ladder: self.ladder(family) }
    }

    fn ladder(&self, family: &form::Family) -> Vec<Rung> {
        let arrays = self.operation.arrays_read();
        let rung = |(threads, unroll): (u32, u32)| {
            let kernel = family.kernel(16, unroll, false)?;
            let block = if threads < 256 { 64 } else { 128 };
            let in_flight_bytes_per_unit = u64::from(threads * unroll * 16) * arrays;
            let way = self.way(kernel, block, Some(threads / block));
            // Of a small array fewer threads have a tile.
            let all_busy = way.work.grid == self.facts.units * (threads / block);
            all_busy.then_some(Rung { in_flight_bytes_per_unit, way })
        };
        // A write loads nothing; two arrays of eight vectors a thread are more registers than so many threads have.
        let fits = |&(threads, unroll): &(u32, u32)| threads <= self.facts.threads_per_unit && arrays > 0 && (arrays == 1 || unroll < 8);
        RUNGS.into_iter().filter(fits).filter_map(rung).collect()
    }

    fn host_plan(&self) -> Plan {
        let units = self.facts.units;
        let launch = |kernel, args| Launch { module: "stream", kernel, grid: units, block: 1, args, body: None };
        let kernel = match (self.operation, self.element) {
            (Operation::Read, _) => "stream_read",
            (Operation::Write, _) => "stream_write",
            (Operation::Copy, _) => "stream_copy",
            _ => form::family(self.operation, self.element).module,
        };
        Plan {
            compared: if self.operation.sums() { u64::from(units) } else { self.results() },
            buffers: self.buffers(u64::from(units)),
            work: Work::Kernel(launch(kernel, self.work_args())),
            check: launch(self.check_kernel(), self.check_args([0, 0], HOST_PIECE_ELEMENTS as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ways(operation: Operation, element: Element, array: u64) -> Ways {
        Layout { operation, element, array, facts: &Facts::H200 }.plan().1.unwrap()
    }

    fn all() -> impl Iterator<Item = (Operation, Element)> {
        Operation::ALL.into_iter().flat_map(|operation| Element::ALL.map(|element| (operation, element)))
    }

    #[test]
    fn every_way_has_another_form_and_the_first_one_tried_is_among_them() {
        for (operation, element) in all() {
            let ways = ways(operation, element, 64 * (60 << 20));
            let forms: std::collections::HashSet<_> = ways.choice.iter().map(|way| way.form).collect();
            assert_eq!(forms.len(), ways.choice.len());
            assert!(ways.of(&ways.start).is_some(), "{operation:?} {element:?}");
            assert!(ways.choice.len() <= 300, "{}", ways.choice.len());
        }
    }

    #[test]
    fn the_naive_way_is_one_element_of_8_bytes_a_thread() {
        for (operation, element) in all() {
            let Form { vector_bytes, unroll, once, .. } = ways(operation, element, 1 << 30).naive.form;
            assert_eq!((vector_bytes, unroll, once), (8, 1, false));
        }
    }

    #[test]
    fn a_ladder_climbs_from_1_kib_and_a_write_has_none() {
        let kib = |operation| -> Vec<u64> {
            ways(operation, Element::F32, 1 << 30).ladder.iter().map(|rung| rung.in_flight_bytes_per_unit >> 10).collect()
        };
        assert_eq!(kib(Operation::Read), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]);
        assert_eq!(kib(Operation::Triad), [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]);
        assert!(kib(Operation::Write).is_empty());
    }

    #[test]
    fn the_sums_of_every_way_fit_the_plans_buffer() {
        for operation in [Operation::Read, Operation::Dot] {
            let (plan, ways) = Layout { operation, element: Element::F32, array: 64 * (60 << 20), facts: &Facts::H200 }.plan();
            let ways = ways.unwrap();
            let sums = plan.buffers.last().unwrap().bytes / 8;
            assert!(ways.choice.iter().chain([&ways.naive]).all(|way| u64::from(way.work.grid) <= sums));
            assert!(sums <= 132 * MOST_SUMS_PER_UNIT);
        }
    }

    proptest! {
        /// Also around 2^31 and 2^32 elements, where 32-bit arithmetic would wrap.
        #[test]
        fn one_block_a_tile_covers_every_word_with_none_to_spare(base in prop::sample::select(vec![0u64, 1 << 20, 1 << 31, 1 << 32]), extra in 1u64..50_000) {
            let array = (base + 2 * extra) * 4;
            for operation in [Operation::Write, Operation::Copy, Operation::Triad] {
                for way in ways(operation, Element::F32, array).choice.iter().filter(|way| way.form.blocks_per_unit.is_none()) {
                    let tile = u64::from(way.form.vector_bytes * way.form.unroll * way.form.block);
                    prop_assert!(u64::from(way.work.grid) * tile >= array);
                    prop_assert!((u64::from(way.work.grid) - 1) * tile < array);
                }
            }
        }
    }
}
