// targets: compute_70
#include "stream.cuh"

FORMS(SCALE_KERNEL, stream_scale_f64, F64, 1024)
