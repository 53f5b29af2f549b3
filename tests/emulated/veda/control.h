// tests/emulated/veda/control.h: what a test may ask of the emulated library beside VEDA's
// functions; found by dlsym too.
#ifndef GRAFT_TESTS_EMULATED_VEDA_CONTROL_H_
#define GRAFT_TESTS_EMULATED_VEDA_CONTROL_H_

#include "drivers/veda/api.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EMULATED_VEDA_EXPORT __attribute__((visibility("default")))

// The process of an active context's device, to be killed; -1 if there is none.
EMULATED_VEDA_EXPORT int emulated_veda_process(VEDAdevice device);

// Replaces the planted faults: calls as EMULATED_VEDA_FAIL, device as EMULATED_VEDA_FAULT.
// INVALID_VALUE for a rule that cannot be read; NOT_INITIALIZED before vedaInit.
EMULATED_VEDA_EXPORT VEDAresult emulated_veda_plant(const char* calls, const char* device);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRAFT_TESTS_EMULATED_VEDA_CONTROL_H_
