// targets: compute_70
#include "stream.cuh"

FORMS(DOT_KERNEL, stream_dot_f64, F64, 512)
