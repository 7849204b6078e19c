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

// The smallest step that the time stamps of this device take, in nanoseconds; 0 when none was seen.
extern "C" __global__ void clock_step(u64 *step, u64 reads) {
    u64 smallest = 0, last, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(last));
    for (u64 i = 0; i < reads; i++) {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (now > last) {
            smallest = smallest == 0 ? now - last : min(smallest, now - last);
            last = now;
        }
    }
    *step = smallest;
}
