// targets: compute_70
// Contiguous passes in vectors of 16 bytes. A warp's accesses cover 512 contiguous bytes.
#include "common.cuh"

const u32 BLOCK = 256;
// Vectors that a thread of stream_read has in flight, a block's width apart.
// src/pattern/stream.rs derives its grid from this; the other kernels move one
// vector a thread and one tile of 4 KiB a block.
const u32 READ_UNROLL = 16;

__device__ __forceinline__ u64 weighted4(uint4 v, u64 vector) {
    u64 word = 4 * vector;
    return weighted(v.x, word) + weighted(v.y, word + 1) + weighted(v.z, word + 2) + weighted(v.w, word + 3);
}

__device__ __forceinline__ uint4 ramp4(u32 seed, u64 vector) {
    u64 word = 4 * vector;
    return make_uint4(ramp_word(seed, word), ramp_word(seed, word + 1), ramp_word(seed, word + 2), ramp_word(seed, word + 3));
}

__device__ __forceinline__ float triad(float b, float c, float s) {
    return fmaf(s, c, b);
}

// Words past the last whole vector, at most three: one thread each.
__device__ __forceinline__ bool tail_word(u64 words, u64 *word) {
    *word = words / 4 * 4 + threadIdx.x;
    return blockIdx.x == gridDim.x - 1 && *word < words;
}

// Sums each word, weighted by its position, into one 64-bit checksum a block. Blocks
// take tiles in turn until the array is done. The second bound grants 80 registers a
// thread: sixteen vectors are 64, and with fewer the compiler splits the loads.
extern "C" __global__ void __launch_bounds__(256, 3) stream_read(const u32 *__restrict__ src, u64 *__restrict__ sums, u64 words) {
    const uint4 *in = (const uint4 *)src;
    const u64 vectors = words / 4;
    u64 sum = 0;
    for (u64 base = (u64)blockIdx.x * BLOCK * READ_UNROLL; base < vectors; base += (u64)gridDim.x * BLOCK * READ_UNROLL) {
        const u64 first = base + threadIdx.x;
        if (base + BLOCK * READ_UNROLL <= vectors) {
            uint4 v[READ_UNROLL];
            BODY_BEGIN;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                v[k] = in[first + k * BLOCK];
            }
            BODY_END;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                sum += weighted4(v[k], first + k * BLOCK);
            }
        } else {
            for (u64 i = first; i < vectors; i += BLOCK) {
                sum += weighted4(in[i], i);
            }
        }
    }
    u64 word;
    if (tail_word(words, &word)) {
        sum += weighted(src[word], word);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256) stream_write(u32 *__restrict__ dst, u64 words, u32 seed) {
    const u64 i = global_thread();
    if (i < words / 4) {
        BODY_BEGIN;
        ((uint4 *)dst)[i] = ramp4(seed, i);
        BODY_END;
    }
    u64 word;
    if (tail_word(words, &word)) {
        dst[word] = ramp_word(seed, word);
    }
}

extern "C" __global__ void __launch_bounds__(256) stream_copy(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words) {
    const u64 i = global_thread();
    if (i < words / 4) {
        BODY_BEGIN;
        ((uint4 *)dst)[i] = ((const uint4 *)src)[i];
        BODY_END;
    }
    u64 word;
    if (tail_word(words, &word)) {
        dst[word] = src[word];
    }
}

extern "C" __global__ void __launch_bounds__(256) stream_triad(float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ c, u64 words, float s) {
    const u64 i = global_thread();
    if (i < words / 4) {
        BODY_BEGIN;
        const float4 x = ((const float4 *)b)[i], y = ((const float4 *)c)[i];
        ((float4 *)a)[i] = make_float4(triad(x.x, y.x, s), triad(x.y, y.y, s), triad(x.z, y.z, s), triad(x.w, y.w, s));
        BODY_END;
    }
    u64 word;
    if (tail_word(words, &word)) {
        a[word] = triad(b[word], c[word], s);
    }
}

// The checks walk word by word: none of the index arithmetic above.

// Launched with the grid of stream_read: block b is answerable for every word of
// the tiles b, b + grid, ..., and the last block for the words past the last vector.
extern "C" __global__ void __launch_bounds__(256) check_stream_read(const u64 *sums, u64 words, u32 seed, u32 data, Status *status) {
    const u64 tile_words = 4ull * BLOCK * READ_UNROLL;
    const u64 whole = words / 4 * 4;
    u64 expected = 0;
    for (u64 tile = blockIdx.x; tile * tile_words < whole; tile += gridDim.x) {
        const u64 end = min(whole, (tile + 1) * tile_words);
        for (u64 i = tile * tile_words + threadIdx.x; i < end; i += blockDim.x) {
            expected += weighted(data_word(data, seed, i), i);
        }
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        for (u64 i = whole; i < words; i++) {
            expected += weighted(data_word(data, seed, i), i);
        }
    }
    expected = block_sum(expected);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, sums[blockIdx.x] != expected, blockIdx.x);
    }
    // All sums together, against every word once in plain order: no tiles, no blocks.
    u64 balance = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        balance += weighted(data_word(data, seed, i), i);
    }
    if (threadIdx.x == 0) {
        balance -= sums[blockIdx.x];
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}

extern "C" __global__ void check_stream_write(const u32 *dst, u64 words, u32 seed, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        report(status, &compared, dst[i] != ramp_word(seed, i), i);
    }
    finish(status, compared);
}

extern "C" __global__ void check_words(const u32 *dst, u64 words, u32 seed, u32 data, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        report(status, &compared, dst[i] != data_word(data, seed, i), i);
    }
    finish(status, compared);
}

// Exact in f64. `tolerance` is of the sum of both terms' magnitudes.
extern "C" __global__ void check_stream_triad(const float *a, u64 words, u32 seed_b, u32 seed_c, float s, u32 data, float tolerance, Status *status) {
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        const double b = data_f32(data, seed_b, i);
        const double product = (double)s * data_f32(data, seed_c, i);
        // Written so that a NaN fails.
        report(status, &compared, !(fabs(a[i] - (b + product)) <= tolerance * (fabs(b) + fabs(product))), i);
    }
    finish(status, compared);
}
