// targets: compute_70
// Chunks written to random places. src/pattern/scatter.rs derives its grid from the numbers below.
#include "common.cuh"

const u32 BLOCK = 256;
// Accesses of a thread, a block's width apart.
const u32 UNROLL = 4;

__device__ __forceinline__ void ramp(u32 *v, u32 seed, u64 access) {
    *v = ramp_word(seed, access);
}

__device__ __forceinline__ void ramp(uint2 *v, u32 seed, u64 access) {
    const u64 word = 2 * access;
    *v = make_uint2(ramp_word(seed, word), ramp_word(seed, word + 1));
}

__device__ __forceinline__ void ramp(uint4 *v, u32 seed, u64 access) {
    const u64 word = 4 * access;
    *v = make_uint4(ramp_word(seed, word), ramp_word(seed, word + 1), ramp_word(seed, word + 2), ramp_word(seed, word + 3));
}

// Stores a function of each word's position in the order of the index. One tile a block, in
// order; chunks of more than 16 bytes are written by neighbouring threads.
template <class V> __device__ __forceinline__ void write(u32 *__restrict__ dst, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words, u32 seed) {
    const u32 WORDS = sizeof(V) / 4;
    const u32 TILE = BLOCK * UNROLL;
    V *__restrict__ out = (V *)dst;
    const u32 shift = 63 - __clzll(chunk_words / WORDS);
    const u32 pitch = (u32)(pitch_words / WORDS);
    const u64 accesses = chunks << shift;
    const u32 last_part = (1u << shift) - 1;
    const u64 base = (u64)blockIdx.x * TILE;
    const u64 first = base + threadIdx.x;
    if (base + TILE <= accesses) {
        u32 place[UNROLL];
        BODY_BEGIN;
#pragma unroll
        for (u32 k = 0; k < UNROLL; k++) {
            place[k] = index[(first + k * BLOCK) >> shift];
        }
#pragma unroll
        for (u32 k = 0; k < UNROLL; k++) {
            V v;
            ramp(&v, seed, first + k * BLOCK);
            out[(u64)place[k] * pitch + (((u32)first + k * BLOCK) & last_part)] = v;
        }
        BODY_END;
    } else {
        for (u64 i = first; i < accesses; i += BLOCK) {
            V v;
            ramp(&v, seed, i);
            out[(u64)index[i >> shift] * pitch + ((u32)i & last_part)] = v;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) scatter_write_4(u32 *__restrict__ dst, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words, u32 seed) {
    write<u32>(dst, index, chunks, chunk_words, pitch_words, seed);
}

extern "C" __global__ void __launch_bounds__(256) scatter_write_8(u32 *__restrict__ dst, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words, u32 seed) {
    write<uint2>(dst, index, chunks, chunk_words, pitch_words, seed);
}

extern "C" __global__ void __launch_bounds__(256) scatter_write_16(u32 *__restrict__ dst, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words, u32 seed) {
    write<uint4>(dst, index, chunks, chunk_words, pitch_words, seed);
}

// Asks the order itself where a chunk is, not the index. Two chunks at one place cannot both
// be right there, and what lies between the chunks must hold what it held before.
extern "C" __global__ void check_scatter(const u32 *dst, u64 chunks, u64 chunk_words, u64 pitch_words, u32 order_seed, u32 seed, Status *status) {
    const Permutation order = permutation(chunks, order_seed);
    u64 compared = 0;
    for (u64 i = global_thread(); i < chunks * chunk_words; i += global_threads()) {
        const u64 word = place_of(order, i / chunk_words) * pitch_words + i % chunk_words;
        report(status, &compared, dst[word] != ramp_word(seed, i), word);
    }
    const u64 gap_words = pitch_words - chunk_words;
    for (u64 i = global_thread(); i < chunks * gap_words; i += global_threads()) {
        const u64 word = i / gap_words * pitch_words + chunk_words + i % gap_words;
        report(status, &compared, dst[word] != POISON, word);
    }
    finish(status, compared);
}
