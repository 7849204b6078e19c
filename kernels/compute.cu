// targets: compute_70
// Sustained arithmetic peaks. See src/pattern/compute.rs for the chosen numbers.
#include "common.cuh"

const u32 CHAINS = 8;

extern "C" __global__ void __launch_bounds__(256) compute_fma_f32(float *__restrict__ out, const float *__restrict__ in, u32 iterations, float a, float b) {
    const u64 thread = global_thread(), threads = global_threads();
    float x[CHAINS];
#pragma unroll
    for (u32 k = 0; k < CHAINS; k++) {
        x[k] = in[thread + k * threads];
    }
    BODY_BEGIN;
    // 16 rounds an iteration, which divide the count: the loop's own instructions are 1 in 64.
#pragma unroll 1
    for (u32 i = 0; i < iterations; i += 16) {
#pragma unroll
        for (u32 round = 0; round < 16; round++) {
#pragma unroll
            for (u32 k = 0; k < CHAINS; k++) {
                x[k] = fmaf(x[k], a, b);
            }
        }
    }
    BODY_END;
#pragma unroll
    for (u32 k = 0; k < CHAINS; k++) {
        out[thread + k * threads] = x[k];
    }
}

// One chain a step, in a plain loop.
extern "C" __global__ void check_compute_fma_f32(const float *out, const float *in, u32 iterations, float a, float b, Status *status) {
    const u64 chains = global_threads() * CHAINS;
    u64 compared = 0;
    for (u64 chain = global_thread(); chain < chains; chain += global_threads()) {
        float x = in[chain];
#pragma unroll 1
        for (u32 i = 0; i < iterations; i++) {
            x = fmaf(x, a, b);
        }
        report(status, &compared, !(out[chain] == x), chain);
    }
    finish(status, compared);
}
