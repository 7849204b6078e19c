//! `matvec`: the decoding step of a language model: matrices of half-precision weights, each
//! times a few vectors, in f32: `y[matrix][input][row] = sum of w[matrix][row][column] x[matrix][input][column]`.
//!
//! One execution goes through eight matrices in one launch, as a step goes through layers: none
//! is found in a cache where a few of them exceed it. Bytes count all weights, inputs and
//! outputs once, flops two for each weight and input.

use serde_json::json;

use super::plan::{Arg, Body, Buffer, Launch, Plan, Work, sum_tolerance};
use super::size::{numbers, room_bytes};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, Pipe, PlanError, Profile};

const SEED_WEIGHTS: u32 = 0x5EED_0A17;
const SEED_INPUTS: u32 = 0x5EED_0A18;

/// Matrices of one execution.
const MATRICES: u64 = 8;

/// Inputs that a matrix is multiplied with, and the kernel that does so on CUDA.
const BATCHES: [(u64, Cuda); 7] = [
    (1, Cuda { kernel: "matvec_fma_1", pipe: Pipe::FmaF32, tiles: 1 }),
    (2, Cuda { kernel: "matvec_fma_2", pipe: Pipe::FmaF32, tiles: 1 }),
    (4, Cuda { kernel: "matvec_mma_4", pipe: Pipe::MmaF16, tiles: 1 }),
    (8, Cuda { kernel: "matvec_mma_8", pipe: Pipe::MmaF16, tiles: 1 }),
    (16, Cuda { kernel: "matvec_mma_16", pipe: Pipe::MmaF16, tiles: 1 }),
    (32, Cuda { kernel: "matvec_mma_32", pipe: Pipe::MmaF16, tiles: 2 }),
    (64, Cuda { kernel: "matvec_mma_64", pipe: Pipe::MmaF16, tiles: 2 }),
];

/// The first compute capability with the tensor core products that the kernels are made of.
const MMA_CAPABILITY: (u32, u32) = (8, 0);

// The numbers of kernels/matvec.cu.
const WARPS: u64 = 8;
const VECTOR: u64 = 8;
const FMA_ROWS: u64 = 4;
const FMA_VECTORS: u64 = 4;
const MMA_ROWS: u64 = 16;
const MMA_STEPS: u64 = 2;

/// Bytes of a weight and of an element of an input.
const HALF_BYTES: u64 = 2;
/// Bytes of a result.
const RESULT_BYTES: u64 = 4;

/// Rows and columns are at most so many. The kernels count rows in 32 bits; beyond so many
/// columns a sum of products of whole numbers from -4 to 4 might not be exact in f32.
const ROWS_MOST: u64 = 1 << 31;
const COLUMNS_MOST: u64 = 1 << 20;

/// How a number of inputs is computed on CUDA.
#[derive(Debug, Clone, Copy)]
struct Cuda {
    kernel: &'static str,
    pipe: Pipe,
    /// Tiles of [`MMA_ROWS`] that a warp takes.
    tiles: u64,
}

impl Cuda {
    /// Rows of a block.
    fn rows(&self) -> u64 {
        match self.pipe {
            Pipe::FmaF32 => WARPS * FMA_ROWS,
            Pipe::MmaF16 => WARPS * self.tiles * MMA_ROWS,
        }
    }

    /// Times that a block loads the inputs of its matrix: once a warp, or once for all.
    fn loads_of_inputs(&self) -> u64 {
        match self.pipe {
            Pipe::FmaF32 => WARPS,
            Pipe::MmaF16 => 1,
        }
    }

    /// What a lane loads at a time: weights, and beside fused multiply-adds the inputs too,
    /// which on their way to tensor cores are copied to shared memory without a load.
    fn body(&self, batch: u64) -> Body {
        let vectors = match self.pipe {
            Pipe::FmaF32 => FMA_VECTORS * (FMA_ROWS + batch),
            Pipe::MmaF16 => 2 * self.tiles * MMA_STEPS,
        };
        Body { load_bytes: (vectors * VECTOR * HALF_BYTES) as u32, store_bytes: 0 }
    }
}

/// All sizes of one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Matrices, each with inputs of its own.
    pub matrices: u64,
    /// Inputs of a matrix.
    pub batch: u64,
    /// Rows of a matrix, as many as results of an input.
    pub rows: u64,
    /// Columns of a matrix, as many as elements of an input.
    pub columns: u64,
}

impl Shape {
    /// Elements of all matrices.
    pub fn weights(&self) -> u64 {
        self.matrices * self.rows * self.columns
    }

    /// Elements of all inputs.
    pub fn inputs(&self) -> u64 {
        self.matrices * self.batch * self.columns
    }

    /// All results.
    pub fn outputs(&self) -> u64 {
        self.matrices * self.batch * self.rows
    }

    /// Floating-point operations.
    fn flops(&self) -> u64 {
        2 * self.weights() * self.batch
    }

    /// Bytes of results, weights and inputs, in the order of the buffers.
    fn bytes(&self) -> [u64; 3] {
        [self.outputs() * RESULT_BYTES, self.weights() * HALF_BYTES, self.inputs() * HALF_BYTES]
    }

    fn footprint_bytes(&self) -> u64 {
        self.bytes().iter().sum()
    }

    /// Whether the kernels and 64 bits hold every count.
    fn fits(&self) -> bool {
        self.rows <= ROWS_MOST && self.columns <= COLUMNS_MOST
    }
}

/// The matvec pattern.
pub struct Matvec;

impl Pattern for Matvec {
    fn name(&self) -> &'static str {
        "matvec"
    }

    fn summary(&self) -> &'static str {
        "weights times a few vectors, as a language model decodes: what is left of the bandwidth at each batch"
    }

    fn ids(&self, profile: Profile, _kind: DeviceKind) -> Vec<String> {
        let batches: &[u64] = match profile {
            Profile::Quick => &[],
            Profile::Standard => &[1, 8, 16, 64],
            Profile::Full => &BATCHES.map(|(batch, _)| batch),
        };
        batches.iter().map(|batch| format!("matvec/f16/{batch}")).collect()
    }

    fn trials(&self) -> &'static [&'static str] {
        &[
            "matvec/f16/1@37x1304",
            "matvec/f16/2@35x520",
            "matvec/f16/4@137x520",
            "matvec/f16/8@137x328",
            "matvec/f16/16@131x200",
            "matvec/f16/32@259x72",
            "matvec/f16/64@259x40",
        ]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        let (batch, cuda) = batch(id)?;
        let too_old = facts.capability.filter(|&capability| cuda.pipe == Pipe::MmaF16 && capability < MMA_CAPABILITY);
        if let Some((major, minor)) = too_old {
            return Err(PlanError::Unsupported(format!(
                "'{id}' runs on tensor cores as of compute capability {}.{}, and this card has {major}.{minor}; matvec/f16/1 and matvec/f16/2 run on it",
                MMA_CAPABILITY.0, MMA_CAPABILITY.1
            )));
        }
        let shape = shape(id, batch, facts)?;
        let (plan, issued, pipe) = match facts.kind {
            // How often the host kernel loads an element depends on its blocks.
            DeviceKind::Host => (plan(&shape, host_launch(&shape), facts), None, Pipe::FmaF32),
            DeviceKind::Cuda => {
                let (launch, issued) = cuda_launch(&shape, &cuda)
                    .ok_or_else(|| PlanError::Invalid(format!("'{id}': so many rows are more blocks than a launch can have")))?;
                (plan(&shape, launch, facts), Some(issued), cuda.pipe)
            }
        };
        let mut parameters = Parameters::new();
        parameters.insert("batch".into(), json!(shape.batch));
        parameters.insert("rows".into(), json!(shape.rows));
        parameters.insert("columns".into(), json!(shape.columns));
        parameters.insert("matrices".into(), json!(shape.matrices));
        let [outputs, weights, inputs] = shape.bytes();
        Ok(Case {
            id: id.clone(),
            level: Level::of(plan.footprint_bytes(), facts.cache_bytes),
            parameters,
            bytes: Bytes { issued, ..Bytes::contiguous(weights + inputs, outputs) },
            flops: shape.flops(),
            compute_pipe: Some(pipe),
            accesses: None,
            report: None,
            notes: Vec::new(),
            plan,
            ways: None,
        })
    }
}

/// The number of inputs that an id names.
fn batch(id: &CaseId) -> Result<(u64, Cuda), PlanError> {
    let known = match id.parts()[..] {
        ["f16", text] => BATCHES.into_iter().find(|(batch, _)| batch.to_string() == text),
        _ => None,
    };
    known.ok_or_else(|| {
        let batches = BATCHES.map(|(batch, _)| batch.to_string()).join("|");
        PlanError::Unknown(format!("'{id}' is not matvec/f16/<{batches}>[@<rows>x<columns>]"))
    })
}

/// The sizes that an id names, or the default ones.
fn shape(id: &CaseId, batch: u64, facts: &Facts) -> Result<Shape, PlanError> {
    let sized = |rows, columns| Shape { matrices: MATRICES, batch, rows, columns };
    let fits_memory = |shape: &Shape| shape.footprint_bytes() <= room_bytes(facts);
    let Some(text) = id.size() else {
        let (mut rows, mut columns) = match facts.kind {
            DeviceKind::Cuda => (16_384, 16_384),
            // A processor takes milliseconds for what a GPU does in microseconds.
            DeviceKind::Host => (2048, 4096),
        };
        // Where memory is short, the matrices of a smaller model.
        while !fits_memory(&sized(rows, columns)) && columns > 1024 {
            (rows, columns) = (rows / 2, columns / 2);
        }
        return Some(sized(rows, columns)).filter(fits_memory).ok_or_else(|| too_large(id, &sized(rows, columns), facts));
    };
    let [rows, columns]: [u64; 2] = numbers(text)
        .and_then(|n| n.try_into().ok())
        .ok_or_else(|| PlanError::Invalid(format!("'{id}': '{text}' is not <rows>x<columns>, such as 4096x4096")))?;
    if rows == 0 || columns == 0 || !columns.is_multiple_of(VECTOR) {
        let columns = columns.checked_next_multiple_of(VECTOR).unwrap_or(VECTOR).max(VECTOR);
        return Err(PlanError::Invalid(format!(
            "'{id}': there is at least one row, and the columns are a multiple of {VECTOR}, 16 bytes; @{}x{columns} would be",
            rows.max(1)
        )));
    }
    let shape = sized(rows, columns);
    if !shape.fits() {
        return Err(PlanError::Invalid(format!("'{id}': there are at most {ROWS_MOST} rows and {COLUMNS_MOST} columns")));
    }
    if fits_memory(&shape) { Ok(shape) } else { Err(too_large(id, &shape, facts)) }
}

fn too_large(id: &CaseId, shape: &Shape, facts: &Facts) -> PlanError {
    PlanError::TooLarge(format!(
        "'{id}' needs {} MiB for {} matrices, and {} MiB are free, of which a tenth is left to others; choose fewer rows or columns after '@'",
        shape.footprint_bytes() >> 20,
        shape.matrices,
        facts.free_bytes >> 20
    ))
}

/// The arguments that say how large everything is, for the check.
fn sizes(shape: &Shape) -> [Arg; 4] {
    [shape.matrices, shape.batch, shape.rows, shape.columns].map(Arg::U64)
}

fn host_launch(shape: &Shape) -> Launch {
    Launch {
        module: "matvec",
        kernel: "matvec",
        grid: 1,
        block: 1,
        args: (0..3).map(Arg::Buffer).chain(sizes(shape)).collect(),
        body: None,
    }
}

/// The launch and the bytes that it loads and stores; none when it has more blocks than can be.
fn cuda_launch(shape: &Shape, cuda: &Cuda) -> Option<(Launch, u64)> {
    let blocks = shape.rows.div_ceil(cuda.rows()) * shape.matrices;
    let grid = u32::try_from(blocks).ok().filter(|&grid| grid <= i32::MAX as u32)?;
    // The last block of a matrix loads its last row again for each that it has not.
    let weights = blocks * cuda.rows() * shape.columns;
    let inputs = blocks * cuda.loads_of_inputs() * shape.batch * shape.columns;
    let launch = Launch {
        module: "matvec",
        kernel: cuda.kernel,
        grid,
        block: 32 * WARPS as u32,
        args: (0..3).map(Arg::Buffer).chain([shape.rows, shape.columns].map(Arg::U64)).collect(),
        body: Some(cuda.body(shape.batch)),
    };
    Some((launch, (weights + inputs) * HALF_BYTES + shape.outputs() * RESULT_BYTES))
}

fn plan(shape: &Shape, work: Launch, facts: &Facts) -> Plan {
    let [outputs, weights, inputs] = shape.bytes();
    let expected = [
        Arg::U32(SEED_WEIGHTS),
        Arg::U32(SEED_INPUTS),
        Arg::Data,
        Arg::Tolerance(sum_tolerance(shape.columns)),
        Arg::Slice,
        Arg::Slices,
        Arg::Status,
    ];
    Plan {
        compared: shape.outputs(),
        buffers: vec![Buffer::output(outputs), Buffer::halves(weights, SEED_WEIGHTS), Buffer::halves(inputs, SEED_INPUTS)],
        work: Work::Kernel(work),
        check: Launch {
            module: "matvec",
            kernel: "check_matvec",
            grid: facts.units.saturating_mul(8),
            block: 256,
            args: [Arg::Buffer(0)].into_iter().chain(sizes(shape)).chain(expected).collect(),
            body: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case_on(text: &str, facts: &Facts) -> Result<Case, PlanError> {
        Matvec.case(&CaseId::new(text), facts)
    }

    #[test]
    fn bytes_count_each_weight_input_and_result_of_all_matrices_once() {
        let c = case_on("matvec/f16/4@100x72", &Facts::H200).unwrap();
        assert_eq!(c.bytes.requested_read, 8 * (100 * 72 + 4 * 72) * 2);
        assert_eq!(c.bytes.requested_write, 8 * 4 * 100 * 4);
        assert_eq!(c.bytes.compulsory, c.bytes.requested());
        assert_eq!(c.flops, 2 * 8 * 100 * 72 * 4);
        assert_eq!(c.plan.footprint_bytes(), c.bytes.requested());
    }

    #[test]
    fn the_default_is_eight_matrices_of_half_a_gibibyte_and_exceeds_the_cache() {
        for (batch, _) in BATCHES {
            let c = case_on(&format!("matvec/f16/{batch}"), &Facts::H200).unwrap();
            assert_eq!((&c.parameters["rows"], &c.parameters["columns"]), (&json!(16_384), &json!(16_384)));
            assert_eq!(c.plan.buffers[1].bytes, 8 << 29);
            assert_eq!(c.level, Level::Dram);
        }
    }

    #[test]
    fn the_default_shrinks_with_the_memory_until_it_is_none() {
        let columns = |free_bytes| case_on("matvec/f16/64", &Facts { free_bytes, ..Facts::H200 }).map(|c| c.parameters["columns"].clone());
        assert_eq!(columns(4 << 30), Ok(json!(8192)));
        assert_eq!(columns(600 << 20), Ok(json!(4096)));
        assert!(matches!(columns(1 << 20), Err(PlanError::TooLarge(why)) if why.contains("8 matrices")));
    }

    #[test]
    fn beside_the_weights_little_is_loaded() {
        for (batch, _) in BATCHES {
            let c = case_on(&format!("matvec/f16/{batch}"), &Facts::H200).unwrap();
            let issued = c.bytes.issued.unwrap() as f64 / c.bytes.requested() as f64;
            assert!((1.0..1.51).contains(&issued), "{batch}: {issued}");
        }
    }

    #[test]
    fn a_block_at_the_end_of_a_matrix_loads_whole_tiles() {
        let c = case_on("matvec/f16/8@129x64", &Facts::H200).unwrap();
        assert_eq!(c.bytes.issued, Some(8 * (2 * 128 * 64 + 2 * 8 * 64) * 2 + 8 * 8 * 129 * 4));
        let c = case_on("matvec/f16/2@33x64", &Facts::H200).unwrap();
        assert_eq!(c.bytes.issued, Some(8 * (2 * 32 * 64 + 2 * 8 * 2 * 64) * 2 + 8 * 2 * 33 * 4));
    }

    #[test]
    fn tensor_cores_that_a_card_has_not_are_unsupported_with_the_reason() {
        let turing = Facts { capability: Some((7, 5)), ..Facts::H200 };
        assert!(case_on("matvec/f16/2", &turing).is_ok());
        let refused = case_on("matvec/f16/4", &turing).unwrap_err();
        assert!(matches!(&refused, PlanError::Unsupported(why) if why.contains("8.0") && why.contains("7.5")), "{refused}");
        assert!(case_on("matvec/f16/4", &Facts { capability: Some((8, 6)), ..Facts::H200 }).is_ok());
    }

    #[test]
    fn few_inputs_run_on_the_multiply_adders_and_many_on_tensor_cores() {
        let pipe = |batch: u64, facts| case_on(&format!("matvec/f16/{batch}"), facts).unwrap().compute_pipe;
        assert_eq!(
            [1, 2, 4, 64].map(|batch| pipe(batch, &Facts::H200)),
            [Some(Pipe::FmaF32), Some(Pipe::FmaF32), Some(Pipe::MmaF16), Some(Pipe::MmaF16)]
        );
        assert_eq!(pipe(64, &Facts::HOST), Some(Pipe::FmaF32));
    }

    #[test]
    fn what_is_no_size_or_number_of_inputs_is_refused_with_what_would_be() {
        for (id, says) in [
            ("matvec/f16/3", "matvec/f16/<1|2|4|8|16|32|64>"),
            ("matvec/f32/1", "matvec/f16/<"),
            ("matvec/f16/1@4096", "<rows>x<columns>"),
            ("matvec/f16/1@04096x8", "<rows>x<columns>"),
            ("matvec/f16/1@0x8", "@1x8 would be"),
            ("matvec/f16/1@5x12", "@5x16 would be"),
            ("matvec/f16/1@2147483649x8", "at most 2147483648 rows"),
            ("matvec/f16/1@8x1048584", "1048576 columns"),
            ("matvec/f16/1@16777216x16384", "choose fewer rows"),
            ("matvec/f16/1@99999999999999999999x8", "<rows>x<columns>"),
            ("matvec/f16/1@18446744073709551615x18446744073709551608", "at most"),
        ] {
            let refused = case_on(id, &Facts::H200).unwrap_err().to_string();
            assert!(refused.contains(says), "{id}: {refused}");
        }
    }

    #[test]
    fn rows_around_the_limits_of_32_bits_are_planned_or_refused() {
        let facts = Facts { free_bytes: 1 << 50, ..Facts::H200 };
        let grid = |id: &str| match case_on(id, &facts).map(|c| c.plan.work) {
            Ok(Work::Kernel(launch)) => Some(u64::from(launch.grid)),
            _ => None,
        };
        assert_eq!(grid("matvec/f16/1@2147483648x8"), Some(8 << 26));
        assert_eq!(grid("matvec/f16/64@2147483647x8"), Some(8 << 23));
        assert_eq!(grid("matvec/f16/1@2147483649x8"), None);
    }

    #[test]
    fn the_kernels_divide_by_the_same_numbers() {
        let source = include_str!("../../kernels/matvec.cu");
        for (name, value) in [
            ("WARPS", WARPS),
            ("VECTOR", VECTOR),
            ("FMA_ROWS", FMA_ROWS),
            ("FMA_VECTORS", FMA_VECTORS),
            ("MMA_ROWS", MMA_ROWS),
            ("MMA_STEPS", MMA_STEPS),
        ] {
            assert!(source.contains(&format!("const u32 {name} = {value};")), "{name}");
        }
        for (batch, cuda) in BATCHES.into_iter().filter(|(_, cuda)| cuda.pipe == Pipe::MmaF16) {
            assert!(source.contains(&format!("KERNEL_MMA({batch}, {})", cuda.tiles)), "{batch}");
        }
    }
}
