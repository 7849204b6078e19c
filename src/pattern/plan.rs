//! How a case is carried out: buffers, one piece of timed work, and the kernels
//! that check its result. Names and numbers only, so that plans are tested with no device.

/// Distance between two links of a cycle, in bytes: the line of an NVIDIA GPU, and the pair of lines that
/// prefetchers of processors fetch together. No access to one link brings another nearer.
pub const LINE_BYTES: u64 = 128;

/// What a buffer holds before the work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Word `i` is [`super::Data::word`]`(seed, i)` of the data that the case runs on.
    Words {
        /// Chooses the sequence.
        seed: u32,
    },
    /// Element `i`, an f32, is [`super::Data::number`]`(seed, i)` of the data that the case runs on.
    Numbers {
        /// Chooses the sequence.
        seed: u32,
    },
    /// Element `i`, an f64, is [`super::Data::double`]`(seed, i)` of the data that the case runs on.
    Doubles {
        /// Chooses the sequence.
        seed: u32,
    },
    /// Element `i`, an f16, is [`super::Data::half`]`(seed, i)` of the data that the case runs on.
    Halves {
        /// Chooses the sequence.
        seed: u32,
    },
    /// Word `i` is the place that comes at index `i` in the order that `permutation::Permutation` gives to as
    /// many places as the buffer has words, whatever data the case runs on.
    Permutation {
        /// Chooses the order.
        seed: u32,
    },
    /// One cycle through all lines of [`LINE_BYTES`]: each begins with the address, in the device's own
    /// memory, of the line that `permutation::Permutation` has after it; the rest is words.
    Cycle {
        /// Chooses the order, and the words.
        seed: u32,
    },
    /// [`super::data::POISON`] in every word: an output that stays so was not written.
    Poison,
}

/// In whose memory a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The device's own.
    Device,
    /// Main memory of the machine that the system never moves, so that a card reads and writes it by itself.
    Pinned,
    /// Main memory of the machine as every program has it.
    Pageable,
}

/// One region of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffer {
    /// Its length; a multiple of four.
    pub bytes: u64,
    /// What it holds before the work runs.
    pub content: Content,
    /// Where it lies.
    pub place: Place,
}

impl Buffer {
    /// An input of words.
    pub const fn words(bytes: u64, seed: u32) -> Self {
        Self::of(bytes, Content::Words { seed })
    }

    /// An input of single-precision numbers.
    pub const fn numbers(bytes: u64, seed: u32) -> Self {
        Self::of(bytes, Content::Numbers { seed })
    }

    /// An input of double-precision numbers.
    pub const fn doubles(bytes: u64, seed: u32) -> Self {
        Self::of(bytes, Content::Doubles { seed })
    }

    /// An input of half-precision numbers.
    pub const fn halves(bytes: u64, seed: u32) -> Self {
        Self::of(bytes, Content::Halves { seed })
    }

    /// An index of so many places in a random order.
    pub const fn permutation(places: u64, seed: u32) -> Self {
        Self::of(places * 4, Content::Permutation { seed })
    }

    /// Links to follow.
    pub const fn cycle(bytes: u64, seed: u32) -> Self {
        Self::of(bytes, Content::Cycle { seed })
    }

    /// An output.
    pub const fn output(bytes: u64) -> Self {
        Self::of(bytes, Content::Poison)
    }

    /// In the device's own memory.
    const fn of(bytes: u64, content: Content) -> Self {
        Self { bytes, content, place: Place::Device }
    }

    /// The same in other memory.
    #[must_use]
    pub const fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }
}

/// One argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg {
    /// The address of the plan's buffer with this index.
    Buffer(usize),
    /// A 64-bit count or size.
    U64(u64),
    /// A 32-bit count or seed.
    U32(u32),
    /// A single-precision number.
    F32(f32),
    /// The code of what the inputs hold, 32 bits: see [`super::Data::code`].
    Data,
    /// How far a result may lie from its reference, as a fraction of the magnitudes that
    /// the pattern says; 0 where the inputs make every result exact.
    Tolerance(f32),
    /// Which part of the results this launch of a check compares, of as many as [`Arg::Slices`]
    /// says, 32 bits: a long check goes in several launches where the driver limits them.
    Slice,
    /// In how many launches a check compares the results, 32 bits.
    Slices,
    /// The address of the four 64-bit words that a check adds to: how many results
    /// were wrong, the lowest wrong index, the balance of all results, and how many
    /// were compared.
    Status,
}

/// The loads and stores of a kernel's hot body, as its source declares them and a
/// test counts them in the PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    /// Bytes that one thread loads from memory in one pass through the body.
    pub load_bytes: u32,
    /// Bytes that one thread stores to memory in one pass through the body.
    pub store_bytes: u32,
}

/// A kernel by name, with its geometry.
///
/// Only this crate makes launches and plans: a device trusts that the arguments fit
/// the kernel and that sizes fit the buffers.
#[derive(Debug, Clone, PartialEq)]
pub struct Launch {
    /// The module that holds it: a file of `kernels/` on CUDA.
    pub(crate) module: &'static str,
    /// The entry's name.
    pub(crate) kernel: &'static str,
    /// Blocks; the host device runs one share on each worker, and of some kernels only on as many as there are blocks.
    pub(crate) grid: u32,
    /// Threads in a block; ignored by the host device.
    pub(crate) block: u32,
    /// Arguments in the kernel's order.
    pub(crate) args: Vec<Arg>,
    /// What its hot body loads and stores; none for kernels that are not timed, and
    /// on the host device, whose kernels are not PTX.
    pub(crate) body: Option<Body>,
}

/// The timed part of a case.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// A kernel.
    Kernel(Launch),
    /// Copies by the device's own engines, at least one; several run at the same time, each in a stream of its own.
    Copies(Vec<BufferCopy>),
}

/// A copy from one buffer to another of the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferCopy {
    /// Index of the source buffer.
    pub from: usize,
    /// Index of the destination buffer.
    pub to: usize,
}

/// Everything a device needs to run and check one case.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Buffers, named by index in [`Arg::Buffer`].
    pub(crate) buffers: Vec<Buffer>,
    /// What is timed.
    pub(crate) work: Work,
    /// What compares the outputs with their expected values afterwards.
    pub(crate) check: Launch,
    /// How many results the check compares.
    pub(crate) compared: u64,
}

impl Plan {
    /// Memory that all buffers take together, in bytes.
    pub fn footprint_bytes(&self) -> u64 {
        self.buffers.iter().fold(0, |sum, b| sum.saturating_add(b.bytes))
    }

    /// Whether results are rounded, so that only small integers are compared exactly.
    pub fn rounds(&self) -> bool {
        self.check.args.iter().any(|arg| matches!(arg, Arg::Tolerance(_)))
    }
}

/// How far an f32 sum of `products` products may lie from its f64 reference, over the sum of
/// the magnitudes of the products.
///
/// Each of the n products and additions rounds once, by 2^-24 at most; n roundings that
/// lean to neither side add up to a few sqrt(n) (Higham and Mary, "A New Approach to
/// Probabilistic Rounding Error Analysis", 2019, with a factor of 4). The certain bound
/// of n would hide a lost product where there are many.
pub(super) fn sum_tolerance(products: u64) -> f32 {
    (4.0 * (products as f64).sqrt() / 16_777_216.0) as f32
}
