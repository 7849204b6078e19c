// targets: compute_70
// Write of words, whatever their type.
#include "stream.cuh"

FORMS(WRITE_KERNEL, stream_write, F32, 1024)
FORMS_NARROW(WRITE_KERNEL, stream_write, F32)
