// targets: compute_70
// The time of one access that waits for the one before it: alone, and beside multiprocessors that
// read. See src/pattern/latency.rs for the chosen numbers.
#include "reading.cuh"

const u32 LINE_BYTES = 128;

// What a chase leaves: the line that it reached, and the sum of the lower halves of all addresses
// before it, each weighted by twice its step and one.
struct Reached {
    u64 line;
    u64 sum;
};

// A whole address is loaded and used as it is: no arithmetic lies between two accesses. What is summed
// is the address that each access comes from, which is known when it is under way: the assembler puts
// the sums of four steps, an instruction or two each, into the time that the last load of the four
// takes, even from L1. A chase goes on where the one before it ended, so that it comes to lines that no
// cache has seen; the first begins at line `first`.
template <bool MARKED> __device__ __forceinline__ void chase(Reached *reached, const u32 *links, u64 lines, u64 first, u32 steps) {
    const u64 begun = reached->line;
    u64 at = (u64)links + (begun < lines ? begun : first) * LINE_BYTES;
    u64 sum = 0;
#pragma unroll 4
    for (u32 step = 0; step < steps; step++) {
        const u64 from = at;
        if (MARKED) {
            BODY_BEGIN;
        }
        asm volatile("ld.global.u64 %0, [%1];" : "=l"(at) : "l"(from));
        if (MARKED) {
            BODY_END;
        }
        asm("mad.wide.u32 %0, %1, %2, %0;" : "+l"(sum) : "r"((u32)from), "r"(2 * step + 1));
    }
    *reached = Reached{(at - (u64)links) / LINE_BYTES, sum};
}

extern "C" __global__ void __launch_bounds__(1) latency_chase(Reached *reached, const u32 *links, u64 lines, u64 first, u32 steps) {
    chase<true>(reached, links, lines, first, steps);
}

// Whether the chase has ended, and how many blocks have seen it: both are POISON before, and the last
// block makes them so again for the next launch.
struct Control {
    u32 ended;
    u32 seen;
};

__device__ __forceinline__ void see(Control *control) {
    __threadfence();
    if (atomicAdd(&control->seen, 1u) == POISON + gridDim.x - 1) {
        control->seen = POISON;
        control->ended = POISON;
    }
}

// Waits until the chase has ended or, should its block not run at the same time, until the warps of
// this block have read all that they may. A rare look disturbs neither.
__device__ __forceinline__ void watch(Control *control, u32 *stop, u32 *reading) {
    while (*(volatile u32 *)&control->ended == POISON && atomicOr(reading, 0u) > 0) {
        __nanosleep(2000);
    }
    atomicExch(stop, 1u);
    see(control);
}

// Whether a warp is to stop; asked by one lane, for all.
__device__ __forceinline__ bool stopped(u32 *stop) {
    return __any_sync(0xFFFFFFFFu, threadIdx.x % 32 == 0 && atomicOr(stop, 0u) != 0);
}

// Block 0 chases with one thread. In every other block one warp watches it, and 31 read tile after tile,
// round and round, each beginning one every `pause` clocks (0: without a pause) until the chase has
// ended. Each reads at least one, and none more tiles than the chase makes steps: one takes at least as
// long as one access. The second figure of each record is how many tiles the warp read.
extern "C" __global__ void __launch_bounds__(1024, 1)
    latency_loaded(Record *records, const u32 *__restrict__ src, u64 words, Reached *reached, const u32 *links, u64 lines, u64 first, u32 steps, u64 pause, Control *control) {
    const u32 READERS = READING_BLOCK / 32 - 1;
    __shared__ u32 stop;
    __shared__ u32 reading;
    if (threadIdx.x == 0) {
        stop = 0;
        reading = READERS;
    }
    __syncthreads();
    const u32 warp = threadIdx.x / 32;
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) {
            chase<false>(reached, links, lines, first, steps);
            __threadfence();
            *(volatile u32 *)&control->ended = 1;
            see(control);
        }
        return;
    }
    if (warp == READERS) {
        if (threadIdx.x % 32 == 0) {
            watch(control, &stop, &reading);
        }
        return;
    }
    const u64 tiles = words / TILE_WORDS, readers = (u64)(gridDim.x - 1) * READERS;
    const u64 reader = (u64)(blockIdx.x - 1) * READERS + warp;
    const u64 step = readers % tiles;
    u64 sum = 0, tile = reader % tiles;
    u32 count = 0;
    // Readers begin one after another, so that their pauses do not coincide.
    s64 next = clock64() + (s64)(pause * reader / readers);
    do {
        // All lanes of a warp go on together.
        while (__any_sync(0xFFFFFFFFu, clock64() < next) && !stopped(&stop)) {
        }
        sum += read_tile((const uint4 *)src, tile);
        tile += step;
        tile -= tile < tiles ? 0 : tiles;
        count++;
        next += pause;
    } while (!stopped(&stop) && count < steps);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        records[reader] = Record{sum, count};
        atomicSub(&reading, 1u);
    }
}

// Where the chase must be after its steps is known in closed form; by all threads together, its sum.
__device__ __forceinline__ u64 check_reached(const Reached *reached, const u32 *links, u64 lines, u32 steps, u32 seed, Status *status) {
    const Permutation order = permutation(lines, seed);
    u64 balance = 0, compared = 0;
    for (u64 step = global_thread(); step < steps; step += global_threads()) {
        const u64 line = place_of(order, step % lines);
        balance += (u64)(u32)((u64)links + line * LINE_BYTES) * (2 * step + 1);
    }
    if (global_thread() == 0) {
        balance -= reached->sum;
        report(status, &compared, reached->line != place_of(order, steps % lines), 0);
    }
    atomicAdd(&status->balance, balance);
    return compared;
}

extern "C" __global__ void check_latency_chase(const Reached *reached, const u32 *links, u64 lines, u32 steps, u32 seed, Status *status) {
    finish(status, check_reached(reached, links, lines, steps, seed, status));
}

// The chase is result 0; after it comes one for each of the `readers` warps that read.
extern "C" __global__ void __launch_bounds__(256)
    check_latency_loaded(const Record *records, u64 readers, u64 words, u32 seed_words, u32 data, const Reached *reached, const u32 *links, u64 lines, u32 steps, u32 seed_links, Status *status) {
    u64 compared = check_reached(reached, links, lines, steps, seed_links, status);
    for (u64 reader = blockIdx.x; reader < readers; reader += gridDim.x) {
        const Record record = records[reader];
        const bool possible = record.figure <= steps;
        const u64 expected = expected_sum(reader, readers, possible ? record.figure : 0, words / TILE_WORDS, seed_words, data);
        if (threadIdx.x == 0) {
            report(status, &compared, !possible || record.sum != expected, reader + 1);
        }
        // The sums of the warps are shared memory: none may begin the next before all have read them.
        __syncthreads();
    }
    finish(status, compared);
}
