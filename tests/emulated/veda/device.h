// tests/emulated/veda/device.h: what device code may call on the emulated VE; C and C++, no other
// header of the project.
#ifndef GRAFT_TESTS_EMULATED_VEDA_DEVICE_H_
#define GRAFT_TESTS_EMULATED_VEDA_DEVICE_H_

#include "drivers/veda/api.h"

#ifdef __cplusplus
extern "C" {
#endif

// A kernel is a plain C function of up to 48 integers, floats and doubles; it returns nothing or an
// integer. Raw addresses are those of the device: no pointer of the host works here.

VEDAresult vedaMemPtr(void** raw, VEDAdeviceptr pointer);
VEDAresult vedaMemPtrSize(void** raw, size_t* size, VEDAdeviceptr pointer);
VEDAresult vedaMemSize(size_t* size, VEDAdeviceptr pointer);

// The delayed allocation of a pointer that the host reserved with size 0.
// VPTR_ALREADY_ALLOCATED: it has this size already. INVALID_VALUE: it has another one.
VEDAresult vedaMemAlloc(VEDAdeviceptr pointer, size_t size);
VEDAresult vedaMemAllocPtr(void** raw, VEDAdeviceptr pointer, size_t size);
// CANT_FREE_NON_DELAYED_VPTR: the host allocated it.
VEDAresult vedaMemFree(VEDAdeviceptr pointer);
VEDAresult vedaMemSwap(VEDAdeviceptr first, VEDAdeviceptr second);
VEDAresult vedaHMemPtr(void** raw, VEDAhmemptr pointer);

VEDAresult vedaMemcpy(void* to, const void* from, size_t size);
VEDAresult vedaMemsetD8(void* to, uint8_t value, size_t count);
VEDAresult vedaMemsetD16(void* to, uint16_t value, size_t count);
VEDAresult vedaMemsetD32(void* to, uint32_t value, size_t count);
VEDAresult vedaMemsetD64(void* to, uint64_t value, size_t count);
VEDAresult vedaMemsetD128(void* to, uint64_t x, uint64_t y, size_t count);

// The emulator's own. The cores that a kernel may use: all in OMP mode, one in SCALAR mode.
int emulated_ve_cores(void);
// Runs body(context, core, cores) on every core and returns once all are done. Not from a body.
void emulated_ve_parallel(void (*body)(void* context, int core, int cores), void* context);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRAFT_TESTS_EMULATED_VEDA_DEVICE_H_
