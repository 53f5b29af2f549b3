// drivers/opencl/platform/api.h: OpenCL's functions, found in the ICD loader at run time.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_API_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_API_H_

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>

// Of cl_ext_buffer_device_address, which is younger than some headers.
#ifndef CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT
#define CL_MEM_DEVICE_PRIVATE_ADDRESS_EXT 0x5000
#define CL_MEM_DEVICE_ADDRESS_EXT 0x5001
#define CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT 0x5002
#endif

namespace graft::opencl {

// Every function that the driver calls, without its cl. OPTIONAL ones may be null; those after
// SetEventCallback are younger than OpenCL 1.2, and a device must say that it has them.
#define GRAFT_CL_FUNCTIONS(REQUIRED, OPTIONAL)     \
  REQUIRED(GetPlatformIDs)                         \
  REQUIRED(GetPlatformInfo)                        \
  REQUIRED(GetDeviceIDs)                           \
  REQUIRED(GetDeviceInfo)                          \
  REQUIRED(GetExtensionFunctionAddressForPlatform) \
  REQUIRED(CreateContext)                          \
  REQUIRED(ReleaseContext)                         \
  REQUIRED(CreateCommandQueue)                     \
  REQUIRED(RetainCommandQueue)                     \
  REQUIRED(ReleaseCommandQueue)                    \
  REQUIRED(GetCommandQueueInfo)                    \
  REQUIRED(Flush)                                  \
  REQUIRED(Finish)                                 \
  REQUIRED(CreateBuffer)                           \
  REQUIRED(ReleaseMemObject)                       \
  REQUIRED(GetMemObjectInfo)                       \
  REQUIRED(EnqueueReadBuffer)                      \
  REQUIRED(EnqueueWriteBuffer)                     \
  REQUIRED(EnqueueCopyBuffer)                      \
  REQUIRED(EnqueueFillBuffer)                      \
  REQUIRED(EnqueueMapBuffer)                       \
  REQUIRED(EnqueueUnmapMemObject)                  \
  REQUIRED(EnqueueMarkerWithWaitList)              \
  REQUIRED(EnqueueBarrierWithWaitList)             \
  REQUIRED(EnqueueNDRangeKernel)                   \
  REQUIRED(CreateUserEvent)                        \
  REQUIRED(SetUserEventStatus)                     \
  REQUIRED(RetainEvent)                            \
  REQUIRED(ReleaseEvent)                           \
  REQUIRED(WaitForEvents)                          \
  REQUIRED(GetEventInfo)                           \
  REQUIRED(GetEventProfilingInfo)                  \
  REQUIRED(CreateProgramWithSource)                \
  REQUIRED(CreateProgramWithBinary)                \
  REQUIRED(BuildProgram)                           \
  REQUIRED(ReleaseProgram)                         \
  REQUIRED(GetProgramInfo)                         \
  REQUIRED(GetProgramBuildInfo)                    \
  REQUIRED(CreateKernel)                           \
  REQUIRED(ReleaseKernel)                          \
  REQUIRED(GetKernelInfo)                          \
  REQUIRED(GetKernelWorkGroupInfo)                 \
  REQUIRED(SetKernelArg)                           \
  OPTIONAL(SetEventCallback)                       \
  OPTIONAL(CreateCommandQueueWithProperties)       \
  OPTIONAL(CreateBufferWithProperties)             \
  OPTIONAL(SVMAlloc)                               \
  OPTIONAL(SVMFree)                                \
  OPTIONAL(EnqueueSVMMemcpy)                       \
  OPTIONAL(EnqueueSVMMemFill)                      \
  OPTIONAL(SetKernelArgSVMPointer)                 \
  OPTIONAL(SetKernelExecInfo)

struct Api {
#define GRAFT_CL_FIELD(name) decltype(&::cl##name) name;
  GRAFT_CL_FUNCTIONS(GRAFT_CL_FIELD, GRAFT_CL_FIELD)
#undef GRAFT_CL_FIELD
};

extern Api loaded_api;

// The functions. REQUIRES: load_api() returned true.
inline const Api& cl() { return loaded_api; }

// Loads the ICD loader (GRAFT_OPENCL_LIBRARY, else libOpenCL.so.1) at the first call; false where
// there is none, or none that is whole: then problem says why. Thread-safe.
bool load_api(std::string* problem);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_API_H_
