// targets: compute_70
// Chunks read from random places, and the pages of a key-value cache through their block
// table. src/pattern/gather.rs derives grids from the numbers below.
#include "common.cuh"

const u32 BLOCK = 256;
// Accesses that a thread of gather_read has in flight, a block's width apart.
const u32 READ_UNROLL = 8;
// Pages consist of slabs, each a block's width of vectors of 16 bytes. A thread of gather_kv
// has a vector of each of so many slabs in flight, of keys and of values.
const u32 SLAB_WORDS = BLOCK * 4;
const u32 KV_UNROLL = 8;

__device__ __forceinline__ u64 weigh(u32 v, u64 access) {
    return weighted(v, access);
}

__device__ __forceinline__ u64 weigh(uint2 v, u64 access) {
    const u64 word = 2 * access;
    return weighted(v.x, word) + weighted(v.y, word + 1);
}

__device__ __forceinline__ u64 weigh(uint4 v, u64 access) {
    const u64 word = 4 * access;
    return weighted(v.x, word) + weighted(v.y, word + 1) + weighted(v.z, word + 2) + weighted(v.w, word + 3);
}

__device__ __forceinline__ u32 log2_of(u64 power_of_two) {
    return 63 - __clzll(power_of_two);
}

// Has the compiler load all places before it uses the first: one after the other, each chunk
// would wait for its own place.
__device__ __forceinline__ void all_loaded(u32 (&place)[8]) {
    asm volatile(""
                 : "+r"(place[0]), "+r"(place[1]), "+r"(place[2]), "+r"(place[3]), "+r"(place[4]), "+r"(place[5]), "+r"(place[6]), "+r"(place[7]));
}

// Sums each word of the chunks, weighted by its position in the order of the index, into
// one checksum a block. Chunks of more than 16 bytes are read by neighbouring threads.
template <class V> __device__ __forceinline__ void read(u64 *__restrict__ sums, const u32 *__restrict__ src, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words) {
    const u32 WORDS = sizeof(V) / 4;
    const u32 TILE = BLOCK * READ_UNROLL;
    const V *__restrict__ in = (const V *)src;
    const u32 shift = log2_of(chunk_words / WORDS);
    const u32 pitch = (u32)(pitch_words / WORDS);
    const u64 accesses = chunks << shift;
    const u32 last_part = (1u << shift) - 1;
    u64 sum = 0;
    for (u64 base = (u64)blockIdx.x * TILE; base < accesses; base += (u64)gridDim.x * TILE) {
        const u64 first = base + threadIdx.x;
        if (base + TILE <= accesses) {
            u32 place[READ_UNROLL];
            V v[READ_UNROLL];
            BODY_BEGIN;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                place[k] = index[(first + k * BLOCK) >> shift];
            }
            all_loaded(place);
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                v[k] = in[(u64)place[k] * pitch + (((u32)first + k * BLOCK) & last_part)];
            }
            BODY_END;
#pragma unroll
            for (u32 k = 0; k < READ_UNROLL; k++) {
                sum += weigh(v[k], first + k * BLOCK);
            }
        } else {
            for (u64 i = first; i < accesses; i += BLOCK) {
                sum += weigh(in[(u64)index[i >> shift] * pitch + ((u32)i & last_part)], i);
            }
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256, 4) gather_read_4(u64 *__restrict__ sums, const u32 *__restrict__ src, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words) {
    read<u32>(sums, src, index, chunks, chunk_words, pitch_words);
}

extern "C" __global__ void __launch_bounds__(256, 4) gather_read_8(u64 *__restrict__ sums, const u32 *__restrict__ src, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words) {
    read<uint2>(sums, src, index, chunks, chunk_words, pitch_words);
}

extern "C" __global__ void __launch_bounds__(256, 4) gather_read_16(u64 *__restrict__ sums, const u32 *__restrict__ src, const u32 *__restrict__ index, u64 chunks, u64 chunk_words, u64 pitch_words) {
    read<uint4>(sums, src, index, chunks, chunk_words, pitch_words);
}

// Sums each word of all pages, keys and values, in the order of the block table. As in
// stream_read, the second bound grants 80 registers: sixteen vectors are 64.
extern "C" __global__ void __launch_bounds__(256, 3) gather_kv(u64 *__restrict__ sums, const u32 *__restrict__ keys, const u32 *__restrict__ values, const u32 *__restrict__ table, u64 pages, u64 page_words) {
    const uint4 *__restrict__ k_in = (const uint4 *)keys, *__restrict__ v_in = (const uint4 *)values;
    const u32 shift = log2_of(page_words / SLAB_WORDS);
    const u32 last_slab = (1u << shift) - 1;
    const u64 slabs = pages << shift;
    // The vectors of values come after all those of keys.
    const u64 vectors = slabs * BLOCK;
    u64 sum = 0;
    for (u64 base = (u64)blockIdx.x * KV_UNROLL; base < slabs; base += (u64)gridDim.x * KV_UNROLL) {
        const u64 first = base * BLOCK + threadIdx.x;
        if (base + KV_UNROLL <= slabs) {
            u32 page[KV_UNROLL];
            uint4 key[KV_UNROLL], value[KV_UNROLL];
            BODY_BEGIN;
#pragma unroll
            for (u32 k = 0; k < KV_UNROLL; k++) {
                page[k] = table[(base + k) >> shift];
            }
            all_loaded(page);
#pragma unroll
            for (u32 k = 0; k < KV_UNROLL; k++) {
                const u64 at = (((u64)page[k] << shift) + (((u32)base + k) & last_slab)) * BLOCK + threadIdx.x;
                key[k] = k_in[at];
                value[k] = v_in[at];
            }
            BODY_END;
#pragma unroll
            for (u32 k = 0; k < KV_UNROLL; k++) {
                sum += weigh(key[k], first + k * BLOCK) + weigh(value[k], vectors + first + k * BLOCK);
            }
        } else {
            for (u64 slab = base; slab < slabs; slab++) {
                const u64 at = (((u64)table[slab >> shift] << shift) + ((u32)slab & last_slab)) * BLOCK + threadIdx.x;
                const u64 i = slab * BLOCK + threadIdx.x;
                sum += weigh(k_in[at], i) + weigh(v_in[at], vectors + i);
            }
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// The check asks the order itself where a chunk is, not the index, and goes word by word.

// The word `i` of all chunks in the order of the index.
__device__ __forceinline__ u32 gathered(const Permutation &order, u64 i, u64 chunk_words, u64 pitch_words, u32 data, u32 seed) {
    return data_word(data, seed, place_of(order, i / chunk_words) * pitch_words + i % chunk_words);
}

// Launched with the grid of the kernel: of each array block b is answerable for the tiles b,
// b + grid, ... of `tile_words` words. Array a holds the sequence seed + a.
extern "C" __global__ void __launch_bounds__(256) check_gather(const u64 *sums, u64 chunks, u64 chunk_words, u64 pitch_words, u64 tile_words, u32 arrays, u32 order_seed, u32 seed, u32 data, Status *status) {
    const Permutation order = permutation(chunks, order_seed);
    const u64 words = chunks * chunk_words;
    u64 expected = 0, balance = 0;
    for (u32 a = 0; a < arrays; a++) {
        for (u64 begin = blockIdx.x * tile_words; begin < words; begin += gridDim.x * tile_words) {
            for (u64 i = begin + threadIdx.x; i < min(words, begin + tile_words); i += blockDim.x) {
                expected += weighted(gathered(order, i, chunk_words, pitch_words, data, seed + a), a * words + i);
            }
        }
        // All sums together, against every word in plain order: no tiles, no blocks.
        for (u64 i = global_thread(); i < words; i += global_threads()) {
            balance += weighted(gathered(order, i, chunk_words, pitch_words, data, seed + a), a * words + i);
        }
    }
    expected = block_sum(expected);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, sums[blockIdx.x] != expected, blockIdx.x);
        balance -= sums[blockIdx.x];
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}
