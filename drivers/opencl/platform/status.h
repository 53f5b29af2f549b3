// drivers/opencl/platform/status.h: OpenCL's error codes in Graft's words.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_STATUS_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_STATUS_H_

#include <string>

#include "api.h"
#include "graft/driver.h"

namespace graft::opencl {

// "CL_OUT_OF_RESOURCES (-5)"; a code of an extension keeps its number only.
std::string code_name(cl_int code);

// The status that stands for code; otherwise for codes that say nothing more exact.
graft_status status_of(cl_int code, graft_status otherwise);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_STATUS_H_
