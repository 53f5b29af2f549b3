// tests/drivers/opencl/fake_icd_exports.cpp: the functions by name, in place of an ICD loader.
#include <cstring>

#include "fake_icd_call.h"

using graft::fake_cl::Api;
using graft::fake_cl::Call;

namespace {

template <class Type>
struct ResultOf;
template <class Result, class... Arguments>
struct ResultOf<Result(CL_API_CALL*)(Arguments...)> {
  using type = Result;
};

using ContextCallback = void(CL_CALLBACK*)(const char*, const void*, size_t, void*);
using ProgramCallback = void(CL_CALLBACK*)(cl_program, void*);

}  // namespace

#define EXPORT(name, parameters, arguments)                             \
  extern "C" __attribute__((visibility("default")))                     \
  ResultOf<decltype(Api::name)>::type CL_API_CALL cl##name parameters { \
    return Call<&Api::name>::run arguments;                             \
  }

EXPORT(GetPlatformIDs, (cl_uint a, cl_platform_id* b, cl_uint* c), (a, b, c))
EXPORT(GetPlatformInfo, (cl_platform_id a, cl_platform_info b, size_t c, void* d, size_t* e),
       (a, b, c, d, e))
EXPORT(GetDeviceIDs, (cl_platform_id a, cl_device_type b, cl_uint c, cl_device_id* d, cl_uint* e),
       (a, b, c, d, e))
EXPORT(GetDeviceInfo, (cl_device_id a, cl_device_info b, size_t c, void* d, size_t* e),
       (a, b, c, d, e))
EXPORT(GetExtensionFunctionAddressForPlatform, (cl_platform_id a, const char* b), (a, b))
EXPORT(CreateContext,
       (const cl_context_properties* a, cl_uint b, const cl_device_id* c, ContextCallback d,
        void* e, cl_int* f),
       (a, b, c, d, e, f))
EXPORT(ReleaseContext, (cl_context a), (a))
EXPORT(CreateCommandQueue, (cl_context a, cl_device_id b, cl_command_queue_properties c, cl_int* d),
       (a, b, c, d))
EXPORT(RetainCommandQueue, (cl_command_queue a), (a))
EXPORT(ReleaseCommandQueue, (cl_command_queue a), (a))
EXPORT(GetCommandQueueInfo,
       (cl_command_queue a, cl_command_queue_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
EXPORT(Flush, (cl_command_queue a), (a))
EXPORT(Finish, (cl_command_queue a), (a))
EXPORT(CreateBuffer, (cl_context a, cl_mem_flags b, size_t c, void* d, cl_int* e), (a, b, c, d, e))
EXPORT(ReleaseMemObject, (cl_mem a), (a))
EXPORT(GetMemObjectInfo, (cl_mem a, cl_mem_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
EXPORT(EnqueueReadBuffer,
       (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, void* f, cl_uint g,
        const cl_event* h, cl_event* i),
       (a, b, c, d, e, f, g, h, i))
EXPORT(EnqueueWriteBuffer,
       (cl_command_queue a, cl_mem b, cl_bool c, size_t d, size_t e, const void* f, cl_uint g,
        const cl_event* h, cl_event* i),
       (a, b, c, d, e, f, g, h, i))
EXPORT(EnqueueCopyBuffer,
       (cl_command_queue a, cl_mem b, cl_mem c, size_t d, size_t e, size_t f, cl_uint g,
        const cl_event* h, cl_event* i),
       (a, b, c, d, e, f, g, h, i))
EXPORT(EnqueueFillBuffer,
       (cl_command_queue a, cl_mem b, const void* c, size_t d, size_t e, size_t f, cl_uint g,
        const cl_event* h, cl_event* i),
       (a, b, c, d, e, f, g, h, i))
EXPORT(EnqueueMapBuffer,
       (cl_command_queue a, cl_mem b, cl_bool c, cl_map_flags d, size_t e, size_t f, cl_uint g,
        const cl_event* h, cl_event* i, cl_int* j),
       (a, b, c, d, e, f, g, h, i, j))
EXPORT(EnqueueUnmapMemObject,
       (cl_command_queue a, cl_mem b, void* c, cl_uint d, const cl_event* e, cl_event* f),
       (a, b, c, d, e, f))
EXPORT(EnqueueMarkerWithWaitList, (cl_command_queue a, cl_uint b, const cl_event* c, cl_event* d),
       (a, b, c, d))
EXPORT(EnqueueBarrierWithWaitList, (cl_command_queue a, cl_uint b, const cl_event* c, cl_event* d),
       (a, b, c, d))
EXPORT(EnqueueNDRangeKernel,
       (cl_command_queue a, cl_kernel b, cl_uint c, const size_t* d, const size_t* e,
        const size_t* f, cl_uint g, const cl_event* h, cl_event* i),
       (a, b, c, d, e, f, g, h, i))
EXPORT(CreateUserEvent, (cl_context a, cl_int* b), (a, b))
EXPORT(SetUserEventStatus, (cl_event a, cl_int b), (a, b))
EXPORT(RetainEvent, (cl_event a), (a))
EXPORT(ReleaseEvent, (cl_event a), (a))
EXPORT(WaitForEvents, (cl_uint a, const cl_event* b), (a, b))
EXPORT(GetEventInfo, (cl_event a, cl_event_info b, size_t c, void* d, size_t* e), (a, b, c, d, e))
EXPORT(GetEventProfilingInfo, (cl_event a, cl_profiling_info b, size_t c, void* d, size_t* e),
       (a, b, c, d, e))
EXPORT(CreateProgramWithSource,
       (cl_context a, cl_uint b, const char** c, const size_t* d, cl_int* e), (a, b, c, d, e))
EXPORT(CreateProgramWithBinary,
       (cl_context a, cl_uint b, const cl_device_id* c, const size_t* d, const unsigned char** e,
        cl_int* f, cl_int* g),
       (a, b, c, d, e, f, g))
EXPORT(BuildProgram,
       (cl_program a, cl_uint b, const cl_device_id* c, const char* d, ProgramCallback e, void* f),
       (a, b, c, d, e, f))
EXPORT(ReleaseProgram, (cl_program a), (a))
EXPORT(GetProgramInfo, (cl_program a, cl_program_info b, size_t c, void* d, size_t* e),
       (a, b, c, d, e))
EXPORT(GetProgramBuildInfo,
       (cl_program a, cl_device_id b, cl_program_build_info c, size_t d, void* e, size_t* f),
       (a, b, c, d, e, f))
EXPORT(CreateKernel, (cl_program a, const char* b, cl_int* c), (a, b, c))
EXPORT(ReleaseKernel, (cl_kernel a), (a))
EXPORT(GetKernelInfo, (cl_kernel a, cl_kernel_info b, size_t c, void* d, size_t* e),
       (a, b, c, d, e))
EXPORT(GetKernelWorkGroupInfo,
       (cl_kernel a, cl_device_id b, cl_kernel_work_group_info c, size_t d, void* e, size_t* f),
       (a, b, c, d, e, f))
EXPORT(SetKernelArg, (cl_kernel a, cl_uint b, size_t c, const void* d), (a, b, c, d))

#ifndef GRAFT_FAKE_CL_OLD
EXPORT(CreateCommandQueueWithProperties,
       (cl_context a, cl_device_id b, const cl_queue_properties* c, cl_int* d), (a, b, c, d))
EXPORT(CreateBufferWithProperties,
       (cl_context a, const cl_mem_properties* b, cl_mem_flags c, size_t d, void* e, cl_int* f),
       (a, b, c, d, e, f))
EXPORT(SVMAlloc, (cl_context a, cl_svm_mem_flags b, size_t c, unsigned int d), (a, b, c, d))
EXPORT(SVMFree, (cl_context a, void* b), (a, b))
EXPORT(EnqueueSVMMemcpy,
       (cl_command_queue a, cl_bool b, void* c, const void* d, size_t e, cl_uint f,
        const cl_event* g, cl_event* h),
       (a, b, c, d, e, f, g, h))
EXPORT(EnqueueSVMMemFill,
       (cl_command_queue a, void* b, const void* c, size_t d, size_t e, cl_uint f,
        const cl_event* g, cl_event* h),
       (a, b, c, d, e, f, g, h))
EXPORT(SetKernelArgSVMPointer, (cl_kernel a, cl_uint b, const void* c), (a, b, c))
EXPORT(SetKernelExecInfo, (cl_kernel a, cl_kernel_exec_info b, size_t c, const void* d),
       (a, b, c, d))
#endif
