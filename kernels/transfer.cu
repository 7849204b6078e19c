// targets: compute_70
// The results of copies in both directions at once. The copies are made by the card's engines, not by kernels.
#include "common.cuh"

// `words` counts both destinations, which hold half of them each; a wrong index of the second follows those of the first.
extern "C" __global__ void check_both(const u32 *first, u64 words, const u32 *second, u32 first_seed, u32 second_seed, u32 data, Status *status) {
    const u64 each = words / 2;
    u64 compared = 0;
    for (u64 i = global_thread(); i < each; i += global_threads()) {
        report(status, &compared, first[i] != data_word(data, first_seed, i), i);
        report(status, &compared, second[i] != data_word(data, second_seed, i), each + i);
    }
    finish(status, compared);
}
