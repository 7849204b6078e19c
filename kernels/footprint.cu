// targets: compute_70
// Passes over a footprint, many in one launch where it is small. Loads and stores go to L2 and
// past L1: a plain load would find in L1 what the same multiprocessor read in an earlier pass.
#include "common.cuh"

const u32 BLOCK = 256;
// Vectors that a thread has in flight, a block's width apart; src/pattern/footprint.rs derives its
// grids from these.
const u32 READ_UNROLL = 16;
const u32 READ_RANDOM_UNROLL = 8;
const u32 COPY_UNROLL = 1;
const u32 COPY_RANDOM_UNROLL = 4;

// What is read or copied in random order: lines of 128 bytes.
const u32 LINE_VECTORS = 8;
const u32 LINE_WORDS = 32;

// Volatile: no pass is taken for the one before it.
__device__ __forceinline__ uint4 load(const uint4 *from) {
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

__device__ __forceinline__ void store(uint4 *to, uint4 v) {
    asm volatile("st.global.cg.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ __forceinline__ u64 weighted4(uint4 v, u64 vector) {
    u64 word = 4 * vector;
    return weighted(v.x, word) + weighted(v.y, word + 1) + weighted(v.z, word + 2) + weighted(v.w, word + 3);
}

// Lines in random order, each once: a mixing of k bits that can be undone, where 2^k is the next
// power of two, repeated until it gives a line that there is. As `Order` in src/pattern/footprint.rs.
struct Order {
    u32 lines;
    u32 mask;
    u32 shift;

    __device__ __forceinline__ explicit Order(u64 words) {
        lines = (u32)(words / LINE_WORDS);
        const u32 bits = 32 - __clz(lines - 1);
        mask = 0xFFFFFFFFu >> (32 - bits);
        shift = (bits + 1) / 2;
    }

    __device__ __forceinline__ u32 line(u32 position) const {
        u32 x = position;
        do {
            x = (x * 0x9E3779B1u) & mask;
            x ^= x >> shift;
            x = (x * 0x21F0AAADu) & mask;
            x ^= x >> shift;
        } while (x >= lines);
        return x;
    }
};

// The tiles of all passes are numbered through. Each pass begins at another tile, so that what a
// block reads is not what it read in the pass before.
__device__ __forceinline__ u32 tile_of(u32 turn, u32 tiles) {
    const u32 tile = turn % tiles + __umulhi(mix(turn / tiles), tiles);
    return tile < tiles ? tile : tile - tiles;
}

// Sums each word of each pass, weighted by its position, into one checksum a block. The second
// bound grants 80 registers a thread: sixteen vectors are 64.
extern "C" __global__ void __launch_bounds__(256, 3) footprint_read(u64 *__restrict__ sums, const u32 *__restrict__ src, u64 words, u32 passes) {
    const uint4 *in = (const uint4 *)src;
    const u32 TILE = BLOCK * READ_UNROLL;
    const u32 tiles = (u32)(words / (4 * TILE));
    u64 sum = 0;
    for (u32 turn = blockIdx.x; turn < tiles * passes; turn += gridDim.x) {
        const u64 first = (u64)tile_of(turn, tiles) * TILE + threadIdx.x;
        uint4 v[READ_UNROLL];
        BODY_BEGIN;
#pragma unroll
        for (u32 k = 0; k < READ_UNROLL; k++) {
            v[k] = load(in + first + k * BLOCK);
        }
        BODY_END;
#pragma unroll
        for (u32 k = 0; k < READ_UNROLL; k++) {
            sum += weighted4(v[k], first + k * BLOCK);
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// A warp reads 32 lines in one turn, four at a time; each lane finds the place of one of them.
extern "C" __global__ void __launch_bounds__(256, 4) footprint_read_random(u64 *__restrict__ sums, const u32 *__restrict__ src, u64 words, u32 passes) {
    const uint4 *in = (const uint4 *)src;
    const u32 TILE = BLOCK * READ_RANDOM_UNROLL;
    const u32 tiles = (u32)(words / (4 * TILE));
    const Order order(words);
    const u32 lane = threadIdx.x % 32;
    u64 sum = 0;
    for (u32 turn = blockIdx.x; turn < tiles * passes; turn += gridDim.x) {
        const u32 mine = order.line(tile_of(turn, tiles) * BLOCK + threadIdx.x);
        u32 lines[READ_RANDOM_UNROLL];
#pragma unroll
        for (u32 k = 0; k < READ_RANDOM_UNROLL; k++) {
            lines[k] = __shfl_sync(0xFFFFFFFFu, mine, k * 32 / LINE_VECTORS + lane / LINE_VECTORS);
        }
        uint4 v[READ_RANDOM_UNROLL];
        BODY_BEGIN;
#pragma unroll
        for (u32 k = 0; k < READ_RANDOM_UNROLL; k++) {
            v[k] = load(in + (u64)lines[k] * LINE_VECTORS + lane % LINE_VECTORS);
        }
        BODY_END;
#pragma unroll
        for (u32 k = 0; k < READ_RANDOM_UNROLL; k++) {
            sum += weighted4(v[k], (u64)lines[k] * LINE_VECTORS + lane % LINE_VECTORS);
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// One tile of one pass a block, in order, as in stream_copy.
template <u32 UNROLL, bool RANDOM> __device__ __forceinline__ void copy(u32 *dst, const u32 *src, u64 words, u32 passes) {
    const u32 TILE = BLOCK * UNROLL;
    const u32 tiles = (u32)(words / (4 * TILE));
    if (blockIdx.x >= tiles * passes) {
        return;
    }
    const u64 first = (u64)tile_of(blockIdx.x, tiles) * TILE + threadIdx.x;
    u64 at[UNROLL];
#pragma unroll
    for (u32 k = 0; k < UNROLL; k++) {
        at[k] = first + k * BLOCK;
        if (RANDOM) {
            at[k] = (u64)Order(words).line((u32)(at[k] / LINE_VECTORS)) * LINE_VECTORS + at[k] % LINE_VECTORS;
        }
    }
    uint4 v[UNROLL];
    BODY_BEGIN;
#pragma unroll
    for (u32 k = 0; k < UNROLL; k++) {
        v[k] = load((const uint4 *)src + at[k]);
    }
#pragma unroll
    for (u32 k = 0; k < UNROLL; k++) {
        store((uint4 *)dst + at[k], v[k]);
    }
    BODY_END;
}

extern "C" __global__ void __launch_bounds__(256) footprint_copy(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u32 passes) {
    copy<COPY_UNROLL, false>(dst, src, words, passes);
}

extern "C" __global__ void __launch_bounds__(256) footprint_copy_random(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u32 passes) {
    copy<COPY_RANDOM_UNROLL, true>(dst, src, words, passes);
}

// The checks walk word by word. Copies are checked by check_words of stream_check.cu, which knows
// neither tiles nor orders.

// Launched with the grid of the kernel that it checks: block b is answerable for the turns b,
// b + grid, ...
template <bool RANDOM> __device__ __forceinline__ void check_read(const u64 *sums, u64 words, u32 passes, u32 seed, u32 data, Status *status) {
    const u64 tile_words = 4ull * BLOCK * (RANDOM ? READ_RANDOM_UNROLL : READ_UNROLL);
    const u64 tiles = words / tile_words;
    u64 expected = 0;
    for (u64 turn = blockIdx.x; turn < tiles * passes; turn += gridDim.x) {
        const u64 begins = (mix((u32)(turn / tiles)) * tiles) >> 32;
        const u64 first = (turn + begins) % tiles * tile_words;
        for (u64 i = first + threadIdx.x; i < first + tile_words; i += blockDim.x) {
            const u64 word = RANDOM ? (u64)Order(words).line((u32)(i / LINE_WORDS)) * LINE_WORDS + i % LINE_WORDS : i;
            expected += weighted(data_word(data, seed, word), word);
        }
    }
    expected = block_sum(expected);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, sums[blockIdx.x] != expected, blockIdx.x);
    }
    // All sums together, against as many passes over every word in plain order: no tiles, no turns,
    // no order. A line that the order had twice, and another not at all, would show here.
    u64 balance = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        balance += passes * weighted(data_word(data, seed, i), i);
    }
    if (threadIdx.x == 0) {
        balance -= sums[blockIdx.x];
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}

extern "C" __global__ void __launch_bounds__(256) check_footprint_read(const u64 *sums, u64 words, u32 passes, u32 seed, u32 data, Status *status) {
    check_read<false>(sums, words, passes, seed, data, status);
}

extern "C" __global__ void __launch_bounds__(256) check_footprint_read_random(const u64 *sums, u64 words, u32 passes, u32 seed, u32 data, Status *status) {
    check_read<true>(sums, words, passes, seed, data, status);
}
