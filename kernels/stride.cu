// targets: compute_70
// One 4-byte element at every stride. Access i of the walk over a buffer goes to word
// (i mod lap) * stride + (i div lap) * shift, as src/pattern/stride.rs has it, which
// derives its grids from the numbers below.
#include "common.cuh"

const u32 BLOCK = 256;
// Accesses that a thread of stride_read has in flight, a block's width apart.
const u32 READ_UNROLL = 16;

// Blocks take tiles of this many accesses; no tile spans two laps.
struct Tiles {
    u64 lap;
    u32 a_lap;
    u32 all;
};

__device__ __forceinline__ Tiles tiles_of(u64 words, u64 accesses, u64 stride, u32 tile) {
    // Strides are powers of two.
    const u64 lap = words >> (63 - __clzll(stride));
    const u32 a_lap = (u32)((lap + tile - 1) / tile);
    return Tiles{lap, a_lap, (u32)(accesses / lap) * a_lap};
}

__device__ __forceinline__ u64 word_of(u64 position, u32 lap, u64 stride, u64 shift) {
    return position * stride + lap * shift;
}

// Sums each word that the walk reads, weighted by its position, into one checksum a block.
extern "C" __global__ void __launch_bounds__(256, 4) stride_read(u64 *__restrict__ sums, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    const u32 TILE = BLOCK * READ_UNROLL;
    const Tiles tiles = tiles_of(words, accesses, stride, TILE);
    u64 sum = 0;
    for (u32 tile = blockIdx.x; tile < tiles.all; tile += gridDim.x) {
        const u32 lap = tile / tiles.a_lap;
        const u64 begin = (u64)(tile - lap * tiles.a_lap) * TILE;
        const u64 first = begin + threadIdx.x;
        if (begin + TILE <= tiles.lap) {
            u32 v[READ_UNROLL];
            BODY_BEGIN;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                v[k] = src[word_of(first + k * BLOCK, lap, stride, shift)];
            }
            BODY_END;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                sum += weighted(v[k], word_of(first + k * BLOCK, lap, stride, shift));
            }
        } else {
            for (u64 i = first; i < tiles.lap; i += BLOCK) {
                const u64 word = word_of(i, lap, stride, shift);
                sum += weighted(src[word], word);
            }
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// One tile a block, in order, as in stream_copy.
template <u32 UNROLL> __device__ __forceinline__ void copy(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    const u32 TILE = BLOCK * UNROLL;
    const Tiles tiles = tiles_of(words, accesses, stride, TILE);
    const u32 lap = blockIdx.x / tiles.a_lap;
    const u64 begin = (u64)(blockIdx.x - lap * tiles.a_lap) * TILE;
    const u64 first = begin + threadIdx.x;
    if (begin + TILE <= tiles.lap) {
        u32 v[UNROLL];
        BODY_BEGIN;
#pragma unroll
        for (u32 k = 0; k < UNROLL; k++) {
            v[k] = src[word_of(first + k * BLOCK, lap, stride, shift)];
        }
#pragma unroll
        for (u32 k = 0; k < UNROLL; k++) {
            dst[word_of(first + k * BLOCK, lap, stride, shift)] = v[k];
        }
        BODY_END;
    } else {
        for (u64 i = first; i < tiles.lap; i += BLOCK) {
            const u64 word = word_of(i, lap, stride, shift);
            dst[word] = src[word];
        }
    }
}

// Accesses that a thread has in flight: four where several fall into one sector, one where
// each has its own.
extern "C" __global__ void __launch_bounds__(256) stride_copy_x4(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    copy<4>(dst, src, words, accesses, stride, shift);
}

extern "C" __global__ void __launch_bounds__(256) stride_copy_x1(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    copy<1>(dst, src, words, accesses, stride, shift);
}

// The checks know which words the walk goes to, and nothing of laps' order or tiles
// but which block of stride_read was answerable for what.

// Words between two that the walk goes to, whatever its order.
__device__ __forceinline__ u64 step_of(u64 words, u64 accesses) {
    return words / accesses;
}

// Launched with the grid of stride_read.
extern "C" __global__ void __launch_bounds__(256) check_stride_read(const u64 *sums, u64 words, u64 accesses, u64 stride, u64 shift, u32 seed, u32 data, Status *status) {
    const u32 TILE = BLOCK * READ_UNROLL;
    const u64 lap_length = words / stride;
    const u64 tiles_a_lap = (lap_length + TILE - 1) / TILE;
    u64 expected = 0;
    for (u64 tile = blockIdx.x; tile < accesses / lap_length * tiles_a_lap; tile += gridDim.x) {
        const u64 lap = tile / tiles_a_lap, begin = tile % tiles_a_lap * TILE;
        for (u64 i = begin + threadIdx.x; i < min(lap_length, begin + TILE); i += blockDim.x) {
            const u64 word = i * stride + lap * shift;
            expected += weighted(data_word(data, seed, word), word);
        }
    }
    expected = block_sum(expected);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, sums[blockIdx.x] != expected, blockIdx.x);
    }
    // All sums together, against every word of the walk in the order of memory.
    u64 balance = 0;
    for (u64 i = global_thread(); i < accesses; i += global_threads()) {
        const u64 word = i * step_of(words, accesses);
        balance += weighted(data_word(data, seed, word), word);
    }
    if (threadIdx.x == 0) {
        balance -= sums[blockIdx.x];
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}

// Words that the walk goes to hold the source's, and all others what they held before.
extern "C" __global__ void check_stride_copy(const u32 *dst, u64 words, u64 accesses, u64 stride, u64 shift, u32 seed, u32 data, Status *status) {
    const u64 step = step_of(words, accesses);
    u64 compared = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        report(status, &compared, dst[i] != (i % step == 0 ? data_word(data, seed, i) : POISON), i);
    }
    finish(status, compared);
}
