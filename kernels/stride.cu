// targets: compute_70
// One 4-byte element at every stride. Access i of the walk over a buffer goes to word
// (i mod lap) * stride + (i div lap) * shift, as src/pattern/stride.rs has it, which
// derives its grids from the numbers below.
#include "common.cuh"

const u32 BLOCK = 256;
// Accesses that a thread of stride_read has in flight, a block's width apart.
const u32 READ_UNROLL = 16;

// Where an access of the walk is. Tiles are runs of accesses: the shorter the laps, the
// more of them a tile spans.
struct At {
    u64 position;
    u64 lap;
};

__device__ __forceinline__ u64 lap_length_of(u64 words, u64 stride) {
    // Strides are powers of two.
    return words >> (63 - __clzll(stride));
}

__device__ __forceinline__ At at_access(u64 access, u64 lap_length) {
    const u64 lap = access < lap_length ? 0 : access / lap_length;
    return At{access - lap * lap_length, lap};
}

__device__ __forceinline__ u64 word_of(At at, u64 stride, u64 shift) {
    return at.position * stride + at.lap * shift;
}

// The words of a thread's accesses in a tile, a block's width apart, one after the other.
struct WithinLap {
    u64 word;
    u64 step;
    __device__ __forceinline__ u64 next() {
        const u64 here = word;
        word += step;
        return here;
    }
};

struct AcrossLaps {
    At at;
    At step;
    u64 lap_length;
    u64 stride;
    u64 shift;
    __device__ __forceinline__ u64 next() {
        const u64 here = word_of(at, stride, shift);
        at.position += step.position;
        at.lap += step.lap;
        if (at.position >= lap_length) {
            at.position -= lap_length;
            at.lap++;
        }
        return here;
    }
};

// Whether all of a thread's accesses in a tile lie within one lap, as most do: additions are
// then all that they need.
__device__ __forceinline__ bool within_lap(At at, u32 unroll, u64 lap_length) {
    return at.position + (unroll - 1) * BLOCK < lap_length;
}

template <class Words> __device__ __forceinline__ u64 read_tile(const u32 *__restrict__ src, Words words) {
    u32 v[READ_UNROLL];
    // All of a word's index that its weight needs: registers are few.
    u32 low[READ_UNROLL];
    BODY_BEGIN;
#pragma unroll
    for (u32 k = 0; k < READ_UNROLL; k++) {
        const u64 word = words.next();
        v[k] = src[word];
        low[k] = (u32)word;
    }
    BODY_END;
    u64 sum = 0;
#pragma unroll
    for (u32 k = 0; k < READ_UNROLL; k++) {
        sum += weighted(v[k], low[k]);
    }
    return sum;
}

// Sums each word that the walk reads, weighted by its position, into one checksum a block.
extern "C" __global__ void __launch_bounds__(256, 4) stride_read(u64 *__restrict__ sums, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    const u32 TILE = BLOCK * READ_UNROLL;
    const u64 lap_length = lap_length_of(words, stride);
    u64 sum = 0;
    for (u64 base = (u64)blockIdx.x * TILE; base < accesses; base += (u64)gridDim.x * TILE) {
        const At first = at_access(base + threadIdx.x, lap_length);
        if (base + TILE > accesses) {
            for (u64 i = base + threadIdx.x; i < accesses; i += BLOCK) {
                const u64 word = word_of(at_access(i, lap_length), stride, shift);
                sum += weighted(src[word], word);
            }
        } else if (within_lap(first, READ_UNROLL, lap_length)) {
            sum += read_tile(src, WithinLap{word_of(first, stride, shift), BLOCK * stride});
        } else {
            sum += read_tile(src, AcrossLaps{first, at_access(BLOCK, lap_length), lap_length, stride, shift});
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

template <u32 UNROLL, class Words> __device__ __forceinline__ void copy_tile(u32 *__restrict__ dst, const u32 *__restrict__ src, Words words) {
    u64 word[UNROLL];
    u32 v[UNROLL];
    BODY_BEGIN;
#pragma unroll
    for (u32 k = 0; k < UNROLL; k++) {
        word[k] = words.next();
        v[k] = src[word[k]];
    }
#pragma unroll
    for (u32 k = 0; k < UNROLL; k++) {
        dst[word[k]] = v[k];
    }
    BODY_END;
}

// One tile a block, in order, as in stream_copy.
template <u32 UNROLL> __device__ __forceinline__ void copy(u32 *__restrict__ dst, const u32 *__restrict__ src, u64 words, u64 accesses, u64 stride, u64 shift) {
    const u32 TILE = BLOCK * UNROLL;
    const u64 lap_length = lap_length_of(words, stride);
    const u64 base = (u64)blockIdx.x * TILE;
    const At first = at_access(base + threadIdx.x, lap_length);
    if (base + TILE > accesses) {
        for (u64 i = base + threadIdx.x; i < accesses; i += BLOCK) {
            const u64 word = word_of(at_access(i, lap_length), stride, shift);
            dst[word] = src[word];
        }
    } else if (within_lap(first, UNROLL, lap_length)) {
        copy_tile<UNROLL>(dst, src, WithinLap{word_of(first, stride, shift), BLOCK * stride});
    } else {
        copy_tile<UNROLL>(dst, src, AcrossLaps{first, at_access(BLOCK, lap_length), lap_length, stride, shift});
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

// The checks know which words the walk goes to, and of tiles only which block of
// stride_read was answerable for what.

// Words between two that the walk goes to, whatever its order.
__device__ __forceinline__ u64 step_of(u64 words, u64 accesses) {
    return words / accesses;
}

// Launched with the grid of stride_read.
extern "C" __global__ void __launch_bounds__(256) check_stride_read(const u64 *sums, u64 words, u64 accesses, u64 stride, u64 shift, u32 seed, u32 data, Status *status) {
    const u32 TILE = BLOCK * READ_UNROLL;
    const u64 lap_length = words / stride;
    u64 expected = 0;
    for (u64 begin = (u64)blockIdx.x * TILE; begin < accesses; begin += (u64)gridDim.x * TILE) {
        for (u64 i = begin + threadIdx.x; i < min(accesses, begin + TILE); i += blockDim.x) {
            const u64 word = i % lap_length * stride + i / lap_length * shift;
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
