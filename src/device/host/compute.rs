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
            _ => self.groups::<S, 16>(simd),
        }
    }
}

impl Chains<'_> {
    #[inline(always)]
    fn groups<S: Simd, const VECTORS: usize>(self, simd: S) {
        const LONGEST: usize = 16 * 16;
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
                return Err(DeviceError::Unsupported(
                    "this processor has no fused multiply-add, so there is no such peak to measure".into(),
                ));
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

/// `pattern::compute::reference` of many chains side by side: one chain waits 4 clocks
/// for each of its multiply-adds.
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

#[cfg(test)]
mod tests {
    use super::super::isa::Isa;
    use super::super::testing::*;
    use super::*;
    use crate::pattern::compute::{ADDEND, MULTIPLIER, reference};
    use crate::pattern::{Data, Plan, Work};

    /// The case with few iterations, so that tests are quick.
    fn short(workers: usize) -> Plan {
        let mut plan = plan("compute/fma/f32", workers);
        let Work::Kernel(work) = &mut plan.work else { unreachable!() };
        for launch in [work, &mut plan.check] {
            for arg in &mut launch.args {
                if let Arg::U32(iterations) = arg {
                    *iterations = 501;
                }
            }
        }
        plan
    }

    #[test]
    fn every_instruction_set_that_fuses_gives_the_exact_result() {
        for isa in Isa::all().into_iter().filter(|isa| isa.fused()) {
            for workers in [1, 2, 3] {
                assert!(with_plan(isa, workers, &short(workers), |program| verify(program, Data::Random)).passed());
            }
        }
    }

    #[test]
    fn a_number_of_chains_that_no_group_divides_is_exact() {
        let input: Vec<f32> = (0..401).map(|i| i as f32 / 500.0).collect();
        let expected: Vec<f32> = input.iter().map(|&x| reference(x, 33)).collect();
        for isa in Isa::all().into_iter().filter(|isa| isa.fused()) {
            for n in [1, 15, 192, 193, 401] {
                let mut output = vec![0.0; n];
                isa.run(Chains { output: &mut output, input: &input[..n], iterations: 33, a: MULTIPLIER, b: ADDEND });
                assert_eq!(output, expected[..n], "{}", isa.name());
            }
        }
    }

    #[test]
    fn without_a_fused_multiply_add_there_is_no_peak() {
        for isa in Isa::all().into_iter().filter(|isa| !isa.fused()) {
            let mut device = super::super::HostDevice::with(isa, 1).unwrap();
            assert!(matches!(device.program(&short(1)), Err(DeviceError::Unsupported(_))));
        }
    }

    #[test]
    fn a_last_bit_a_lost_iteration_and_two_exchanged_chains_are_found() {
        if !Isa::best().fused() {
            return;
        }
        let plan = short(2);
        assert!(found(&plan, nothing, nothing).passed());
        let flipped = found(&plan, nothing, |regions| words(regions, 0)[300] ^= 1);
        assert_eq!((flipped.mismatches, flipped.first_bad), (1, Some(300)));
        let swapped = found(&plan, nothing, |regions| words(regions, 0).swap(1, 2));
        assert_eq!((swapped.mismatches, swapped.first_bad), (2, Some(1)));
        let mut fewer = plan;
        let Work::Kernel(work) = &mut fewer.work else { unreachable!() };
        work.args[2] = Arg::U32(500);
        assert_eq!(found(&fewer, nothing, nothing).mismatches, 384);
    }
}
