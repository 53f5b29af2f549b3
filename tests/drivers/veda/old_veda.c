/* tests/drivers/veda/old_veda.c: a libveda that is too old: it lacks one function and does nothing.
 */
#include "drivers/veda/api.h"

/* The name of the function below, so that nobody finds it. */
#define vedaLaunchKernelEx vedaAnotherName

#define GRAFT_DEFINE(name, parameters)                                     \
  __attribute__((visibility("default"))) VEDAresult veda##name parameters; \
  VEDAresult veda##name parameters { return VEDA_ERROR_NOT_IMPLEMENTED; }
#define GRAFT_LEAVE_OUT(name, parameters)
GRAFT_VEDA_FUNCTIONS(GRAFT_DEFINE, GRAFT_LEAVE_OUT)
