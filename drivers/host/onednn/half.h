// drivers/host/onednn/half.h: float16 numbers to float32 and back, in blocks.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_HALF_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_HALF_H_

#include <cstddef>
#include <cstdint>

namespace graft::host {

// Whether float32 copies make float16 faster: oneDNN has no fast kernels for it on this processor,
// and the processor converts by itself.
bool computes_half_as_float();

// Convert count numbers, rounding to nearest even, on all threads.
// REQUIRES: computes_half_as_float().
void widen(const uint16_t* from, float* to, size_t count);
void narrow(const float* from, uint16_t* to, size_t count);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_HALF_H_
