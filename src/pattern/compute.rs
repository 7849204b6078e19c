//! `compute`: the sustained arithmetic peaks that compute utilization refers to.
//!
//! Every chain computes `x = fma(x, a, b)` with `a` just above -1: the values keep
//! alternating around b/2 and stay bounded, so that neither a fixed point nor an infinity
//! makes the arithmetic cheaper, and most chains (some reach a cycle of two) show how
//! often the loop ran. A fused multiply-add rounds once: the result is exact to the bit.

use serde_json::json;

use super::plan::{Arg, Body, Buffer, Launch, Plan, Work};
use super::{Bytes, Case, CaseId, DeviceKind, Facts, Level, Parameters, Pattern, Pipe, PlanError, Profile};

/// The multiplier: the single-precision number next to -1 on the side of 0.
pub const MULTIPLIER: f32 = -(1.0 - 1.0 / 16_777_216.0);
/// The addend, about which nothing is special but that it is not a round number.
pub const ADDEND: f32 = 1.234_567_9;

/// Chains that a CUDA thread carries: enough to hide the latency of 4 clocks even
/// with few resident warps, few enough to keep all 2048 threads of a multiprocessor.
const CHAINS_PER_THREAD: u32 = 8;
const BLOCK: u32 = 256;
/// About a millisecond on a large GPU, so that the start of the grid is under 1 %.
const ITERATIONS_CUDA: u32 = 16_384;
/// Rounds that the CUDA kernel's loop is unrolled by.
const ROUNDS: u32 = 16;
const _: () = assert!(ITERATIONS_CUDA.is_multiple_of(ROUNDS));

/// Chains of one host worker: 12 vectors of 16 lanes, which covers a latency of 4
/// clocks at two operations a clock with some to spare.
pub const CHAINS_PER_WORKER: u32 = 192;
/// About 3 ms on one core.
const ITERATIONS_HOST: u32 = 1 << 20;

const SEED: u32 = 0x5EED_00FA;

/// Arithmetic alone.
const BODY: Body = Body { load_bytes: 0, store_bytes: 0 };

/// The compute pattern.
pub struct Compute;

impl Pattern for Compute {
    fn name(&self) -> &'static str {
        "compute"
    }

    fn summary(&self) -> &'static str {
        "sustained arithmetic peaks, the reference of compute utilization"
    }

    fn ids(&self, _profile: Profile, _kind: DeviceKind) -> Vec<String> {
        vec!["compute/fma/f32".into()]
    }

    fn trials(&self) -> &'static [&'static str] {
        &["compute/fma/f32"]
    }

    fn case(&self, id: &CaseId, facts: &Facts) -> Result<Case, PlanError> {
        if id.name() != "compute/fma/f32" {
            return Err(PlanError::Unknown(format!("'{id}' is not compute/fma/f32")));
        }
        if id.size().is_some() {
            return Err(PlanError::Invalid(format!("'{id}': a compute case has no size; drop the '@'")));
        }
        let (grid, chains, iterations) = match facts.kind {
            DeviceKind::Cuda => {
                let grid = facts.units * (facts.threads_per_unit / BLOCK);
                (grid, u64::from(grid) * u64::from(BLOCK * CHAINS_PER_THREAD), ITERATIONS_CUDA)
            }
            DeviceKind::Host => (facts.units, u64::from(facts.units) * u64::from(CHAINS_PER_WORKER), ITERATIONS_HOST),
        };
        let bytes = chains * 4;
        let mut parameters = Parameters::new();
        parameters.insert("chains".into(), json!(chains));
        parameters.insert("iterations".into(), json!(iterations));

        let body = (facts.kind == DeviceKind::Cuda).then_some(BODY);
        let launch = |kernel, args, body| Launch { module: "compute", kernel, grid, block: BLOCK, args, body };
        let constants = [Arg::U32(iterations), Arg::F32(MULTIPLIER), Arg::F32(ADDEND)];
        let args = |last: Option<Arg>| [Arg::Buffer(0), Arg::Buffer(1)].into_iter().chain(constants).chain(last).collect();
        Ok(Case {
            id: id.clone(),
            level: Level::Cache,
            parameters,
            bytes: Bytes::contiguous(bytes, bytes),
            flops: chains * u64::from(iterations) * 2,
            compute_pipe: Some(Pipe::FmaF32),
            notes: Vec::new(),
            plan: Plan {
                compared: chains,
                buffers: vec![Buffer::output(bytes), Buffer::numbers(bytes, SEED)],
                work: Work::Kernel(launch("compute_fma_f32", args(None), body)),
                check: launch("check_compute_fma_f32", args(Some(Arg::Status)), None),
            },
            ways: None,
        })
    }
}

/// What a chain that starts at `x` holds after `iterations`: the rule that tests hold kernels to.
#[cfg(test)]
pub fn reference(x: f32, iterations: u32) -> f32 {
    (0..iterations).fold(x, |x, _| x.mul_add(MULTIPLIER, ADDEND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_round_shows_in_all_chains_and_lost_pairs_of_rounds_in_most() {
        let starts: Vec<f32> = (0..500).map(|i| crate::pattern::data::random_f32(SEED, i)).collect();
        let differing = |lost| starts.iter().filter(|&&x| reference(x, ITERATIONS_CUDA) != reference(x, ITERATIONS_CUDA - lost)).count();
        assert!(starts.iter().all(|&x| reference(x, ITERATIONS_CUDA).abs() < 4.0));
        assert!(differing(1) >= 490, "{}", differing(1));
        assert!(differing(2) > 250 && differing(16) > 250, "{} {}", differing(2), differing(16));
    }

    #[test]
    fn flops_count_two_for_each_fused_multiply_add() {
        let case = Compute.case(&CaseId::new("compute/fma/f32"), &Facts::H200).unwrap();
        assert_eq!(case.flops, 132 * 2048 * 8 * 16_384 * 2);
    }
}
