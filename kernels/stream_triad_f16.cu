// targets: compute_70
#include "stream.cuh"

FORMS(TRIAD_KERNEL, stream_triad_f16, F16, 512)
FORMS_NARROW(TRIAD_KERNEL, stream_triad_f16, F16)
