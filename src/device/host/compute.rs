//! Arithmetic alone, and the check of its results.

use super::isa::{Kernel, Simd};
use super::share::{Findings, Share, compare};
use super::{Loaded, Task, Timed};
use crate::device::DeviceError;
use crate::pattern::{Arg, Launch};

/// Chains that share no cache line with those of another worker.
const GRAIN: u64 = 16;

/// `iterations` of `x = x a + b` in every chain.
struct Chains<'a> {
    output: &'a mut [f32],
    input: &'a [f32],
    iterations: u32,
    a: f32,
    b: f32,
}

impl Kernel for Chains<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // As many chains at a time as the instruction set names: a length must be a constant.
        match S::CHAINS {
            12 => self.groups::<S, 12>(simd),
            _ => self.groups::<S, 24>(simd),
        }
    }
}

impl Chains<'_> {
    #[inline(always)]
    fn groups<S: Simd, const VECTORS: usize>(self, simd: S) {
        const LONGEST: usize = 24 * 16;
        let length = VECTORS * S::LANES;
        let (a, b) = (simd.splat(self.a), simd.splat(self.b));
        for (output, input) in self.output.chunks_mut(length).zip(self.input.chunks(length)) {
            let mut group = [0.0f32; LONGEST];
            group[..input.len()].copy_from_slice(input);
            // SAFETY: VECTORS vectors are `length` numbers, and `length` is at most LONGEST.
            let mut x: [S::Vector; VECTORS] = std::array::from_fn(|k| unsafe { simd.load(group.as_ptr().add(k * S::LANES)) });
            for _ in 0..self.iterations {
                for x in &mut x {
                    *x = simd.multiply_add(*x, a, b);
                }
            }
            for (k, &x) in x.iter().enumerate() {
                // SAFETY: as above.
                unsafe { simd.store(group.as_mut_ptr().add(k * S::LANES), x) };
            }
            output.copy_from_slice(&group[..input.len()]);
        }
    }
}

/// The task that carries out a launch of this module.
pub(super) fn kernel(launch: &Launch, loaded: &Loaded) -> Result<Timed, DeviceError> {
    let isa = loaded.isa;
    match (launch.kernel, &launch.args[..]) {
        ("compute_fma_f32", &[Arg::Buffer(output), Arg::Buffer(input), Arg::U32(iterations), Arg::F32(a), Arg::F32(b)]) => {
            if !isa.fused() {
                return Err(DeviceError::Unsupported("this processor has no fused multiply-add, so there is no such peak to measure".into()));
            }
            let output = loaded.whole(output)?;
            let chains = output.words();
            let input = loaded.region(input, chains)?;
            let task = move |share: Share| {
                let part = share.of(chains, GRAIN);
                // SAFETY: shares do not overlap, the input is another region, and nothing else runs.
                let (output, input) = unsafe { (output.slice_mut(part.clone()), input.slice(part)) };
                isa.run(Chains { output, input, iterations, a, b });
            };
            Ok(Timed { task: Box::new(task), stores: None })
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// The task that checks the result of a launch of this module.
pub(super) fn check(launch: &Launch, loaded: &Loaded) -> Result<Task<Findings>, DeviceError> {
    let isa = loaded.isa;
    match (launch.kernel, &launch.args[..]) {
        (
            "check_compute_fma_f32",
            &[Arg::Buffer(output), Arg::Buffer(input), Arg::U32(iterations), Arg::F32(a), Arg::F32(b), Arg::Status],
        ) => {
            let output = loaded.whole(output)?;
            let chains = output.words();
            let input = loaded.region(input, chains)?;
            Ok(Box::new(move |share| {
                let part = share.of(chains, GRAIN);
                // SAFETY: nothing writes while a check runs.
                let (output, input) = unsafe { (output.slice(part.clone()), input.slice(part.clone())) };
                isa.run(CheckChains { first: part.start, output, input, iterations, a, b })
            }))
        }
        _ => Err(loaded.unknown(launch)),
    }
}

/// [`crate::pattern::compute::reference`], many chains side by side: one chain
/// waits 4 clocks for each of its multiply-adds.
struct CheckChains<'a> {
    first: u64,
    output: &'a [f32],
    input: &'a [f32],
    iterations: u32,
    a: f32,
    b: f32,
}

impl Kernel for CheckChains<'_> {
    type Output = Findings;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Findings {
        const SIDE_BY_SIDE: usize = 64;
        let mut findings = Findings::NONE;
        let groups = self.output.chunks(SIDE_BY_SIDE).zip(self.input.chunks(SIDE_BY_SIDE));
        for ((output, input), first) in groups.zip((self.first..).step_by(SIDE_BY_SIDE)) {
            let mut x = [0.0f32; SIDE_BY_SIDE];
            x[..input.len()].copy_from_slice(input);
            for _ in 0..self.iterations {
                x = x.map(|x| x.mul_add(self.a, self.b));
            }
            findings = findings.merge(compare(first, output, |i, got| got.to_bits() == x[(i - first) as usize].to_bits()));
        }
        findings
    }
}
