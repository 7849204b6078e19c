// targets: compute_70
#include "stream.cuh"

FORMS(ADD_KERNEL, stream_add_f64, F64, 512)
