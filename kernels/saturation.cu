// targets: compute_70
// A contiguous read by as many multiprocessors as there are blocks.
#include "reading.cuh"

// The second figure of each record is the multiprocessor that the warp ran on.
extern "C" __global__ void __launch_bounds__(1024, 1) saturation_read(Record *__restrict__ records, const u32 *__restrict__ src, u64 words) {
    const u64 tiles = words / TILE_WORDS;
    const u32 warp = (u32)(global_thread() / 32);
    u64 sum = 0;
    for (u64 tile = warp; tile < tiles; tile += global_threads() / 32) {
        sum += read_tile((const uint4 *)src, tile);
    }
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) {
        u32 multiprocessor;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        records[warp] = Record{sum, multiprocessor};
    }
}

// A block of 256 threads for each warp of the read.
extern "C" __global__ void __launch_bounds__(256) check_saturation_read(const Record *records, u64 words, u32 seed, u32 data, Status *status) {
    const u64 tiles = words / TILE_WORDS, warps = gridDim.x, warp = blockIdx.x;
    const u64 count = warp < tiles ? (tiles - warp + warps - 1) / warps : 0;
    const u64 expected = expected_sum(warp, warps, count, tiles, seed, data);
    u64 compared = 0;
    if (threadIdx.x == 0) {
        report(status, &compared, records[warp].sum != expected, warp);
    }
    // All sums together, against every word once in plain order: no tiles, no warps.
    u64 balance = 0;
    for (u64 i = global_thread(); i < words; i += global_threads()) {
        balance += weighted(data_word(data, seed, i), i);
    }
    if (threadIdx.x == 0) {
        balance -= records[warp].sum;
    }
    atomicAdd(&status->balance, balance);
    finish(status, compared);
}
