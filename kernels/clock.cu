// targets: compute_70
// The multiprocessor clock of a sample, with no privilege: one stamp before the
// sample, one after, and cycles over time between them.
#include "common.cuh"

// Time (ns) and cycle count of a multiprocessor; both 0 where no block ran.
struct Stamp {
    u64 time;
    u64 cycles;
};

// Cycle counters belong to a multiprocessor, so each one that runs a block stamps its own place.
extern "C" __global__ void clock_stamp(Stamp *stamps, u32 places) {
    if (threadIdx.x == 0) {
        u32 multiprocessor;
        u64 time;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
        if (multiprocessor < places) {
            stamps[multiprocessor] = Stamp{time, (u64)clock64()};
        }
    }
}
