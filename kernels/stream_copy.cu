// targets: compute_70
// Copy of words, whatever their type.
#include "stream.cuh"

FORMS(COPY_KERNEL, stream_copy, F32, 1024)
FORMS_NARROW(COPY_KERNEL, stream_copy, F32)
