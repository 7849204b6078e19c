// targets: compute_70
#include "stream.cuh"

FORMS(TRIAD_KERNEL, stream_triad_f64, F64, 512)
