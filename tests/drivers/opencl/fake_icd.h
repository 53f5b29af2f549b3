// tests/drivers/opencl/fake_icd.h: an OpenCL platform over PoCL that hides features and fails.
//
// It is loaded in two ways: in place of the ICD loader (GRAFT_OPENCL_LIBRARY names it; a second
// build, graft_fake_cl_old.so, exports OpenCL 1.2 alone, as old loaders do), or by a real ICD
// loader (OCL_ICD_VENDORS names it). Handles are PoCL's own, not wrappers: as an ICD the fake
// writes its functions into PoCL's dispatch table, which all of PoCL's handles point to, so that
// nothing has to be translated and what is not under test stays PoCL's.
//
// GRAFT_FAKE_CL holds words with commas between them:
//   version:1.2            platform, device and language say so; younger functions abort
//   no_svm | coarse_svm    no shared virtual memory (its functions abort) | no fine-grained one
//   usm | address          cl_intel_unified_shared_memory | cl_ext_buffer_device_address is there
//   no_fp64 | no_fp16 | no_int64_atomics | no_compiler
//   gpu:INDEX              this device of the platform says that it is a GPU with its own memory
//   no_devices | broken_platform   clGetDeviceIDs finds none | fails on one platform more
//   alloc_limit:BYTES      CL_DEVICE_MAX_MEM_ALLOC_SIZE, which is enforced
//   memory:BYTES           CL_DEVICE_GLOBAL_MEM_SIZE
//   sub_groups:N           sub-groups of N work-items (2^n) that exchange values, through local
//                          memory
//   parameters:BYTES       CL_DEVICE_MAX_PARAMETER_SIZE; launches with more of them fail
//   nvidia                 as an H200's runtime: launches with an argument that is not set, or
//                          with a null buffer, pointer or address, fail, kernels without local
//                          memory have 1 byte of it, groups have 256 work-items at most; an H200
//                          is coarse_svm,nvidia
//   out_of_memory:BYTES    allocations fail when more would be held, which no query tells
//   fail:FUNCTION:N:CODE   the N-th call (0: each one) returns CODE and does nothing
//   late:FUNCTION:N:CODE   the event of the N-th call (0: each one) ends with CODE
//   lost_after:N[:CODE]    after N commands the device is lost: calls return CODE, else -2
//   slow_build:MS          each build takes so much longer
//   long_log:BYTES         build logs are so long
// GRAFT_FAKE_CL_BASE names PoCL's library; libpocl.so.2 otherwise.
#ifndef GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_H_
#define GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_H_

// As api.h has them, which the ICD's header would otherwise choose for both.
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl_icd.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>

#include "drivers/opencl/platform/api.h"

namespace graft::fake_cl {

using graft::opencl::Api;

// One fail or late word, and how many calls it has seen.
struct Injection {
  std::string function;
  uint64_t call = 0;
  cl_int code = 0;
  std::atomic<uint64_t> seen{0};

  bool hits(const char* name);
};

// GRAFT_FAKE_CL. A word that it does not know ends the process with a message.
struct Plan {
  int major = 3, minor = 0;  // version
  bool old = false;          // version was given
  bool no_svm = false, coarse_svm = false, usm = false, address = false;
  bool no_fp64 = false, no_fp16 = false, no_int64_atomics = false, no_compiler = false;
  bool no_devices = false, broken_platform = false, nvidia = false;
  int64_t gpu = -1;
  uint64_t alloc_limit = 0, memory = 0, out_of_memory = 0, parameters = 0, sub_groups = 0;
  uint64_t slow_build_ms = 0, long_log = 0;
  uint64_t lost_after = UINT64_MAX;
  cl_int lost_code = CL_DEVICE_NOT_AVAILABLE;
  std::deque<Injection> fails, lates;
};
Plan& plan();

// PoCL's functions and its platform; ends the process with a message where there is no PoCL.
const Api& real();
cl_platform_id base_platform();
// A platform whose handle is ours.
cl_platform_id broken_platform();

// CL_SUCCESS, or what the plan lets this call return instead.
cl_int refused(const char* function);
// Counts a command; marks its event when the plan lets it end badly. event may be null.
void count_command(const char* function, cl_event* event);
// Ends the process: the driver called what the device says it does not have.
[[noreturn]] void forbidden(const char* function);
bool hides_svm();
// An argument that is set without SetKernelArg.
void note_address(cl_kernel kernel, cl_uint index, const void* address);

// Functions of extensions, by name; null for others.
void* extension_function(const char* name);

template <auto Slot>
struct Tag {};

// What the fake does in place of PoCL's function.
cl_int behave(Tag<&Api::GetPlatformIDs>, cl_uint room, cl_platform_id* out, cl_uint* count);
cl_int behave(Tag<&Api::GetPlatformInfo>, cl_platform_id platform, cl_platform_info what,
              size_t room, void* out, size_t* bytes);
cl_int behave(Tag<&Api::GetDeviceIDs>, cl_platform_id platform, cl_device_type type, cl_uint room,
              cl_device_id* out, cl_uint* count);
cl_int behave(Tag<&Api::GetDeviceInfo>, cl_device_id device, cl_device_info what, size_t room,
              void* out, size_t* bytes);
void* behave(Tag<&Api::GetExtensionFunctionAddressForPlatform>, cl_platform_id platform,
             const char* name);
cl_mem behave(Tag<&Api::CreateBuffer>, cl_context context, cl_mem_flags flags, size_t bytes,
              void* host, cl_int* code);
cl_mem behave(Tag<&Api::CreateBufferWithProperties>, cl_context context,
              const cl_mem_properties* properties, cl_mem_flags flags, size_t bytes, void* host,
              cl_int* code);
cl_int behave(Tag<&Api::ReleaseMemObject>, cl_mem buffer);
cl_int behave(Tag<&Api::GetMemObjectInfo>, cl_mem buffer, cl_mem_info what, size_t room, void* out,
              size_t* bytes);
void* behave(Tag<&Api::SVMAlloc>, cl_context context, cl_svm_mem_flags flags, size_t bytes,
             cl_uint alignment);
void behave(Tag<&Api::SVMFree>, cl_context context, void* pointer);
cl_int behave(Tag<&Api::EnqueueSVMMemcpy>, cl_command_queue queue, cl_bool blocking, void* to,
              const void* from, size_t bytes, cl_uint count, const cl_event* list, cl_event* event);
cl_int behave(Tag<&Api::EnqueueSVMMemFill>, cl_command_queue queue, void* to, const void* pattern,
              size_t width, size_t bytes, cl_uint count, const cl_event* list, cl_event* event);
cl_int behave(Tag<&Api::SetKernelArg>, cl_kernel kernel, cl_uint index, size_t bytes,
              const void* value);
cl_int behave(Tag<&Api::ReleaseKernel>, cl_kernel kernel);
cl_int behave(Tag<&Api::GetKernelWorkGroupInfo>, cl_kernel kernel, cl_device_id device,
              cl_kernel_work_group_info what, size_t room, void* out, size_t* bytes);
cl_int behave(Tag<&Api::EnqueueNDRangeKernel>, cl_command_queue queue, cl_kernel kernel,
              cl_uint dimensions, const size_t* offset, const size_t* global, const size_t* local,
              cl_uint count, const cl_event* list, cl_event* event);
cl_int behave(Tag<&Api::SetKernelArgSVMPointer>, cl_kernel kernel, cl_uint index,
              const void* pointer);
cl_int behave(Tag<&Api::SetKernelExecInfo>, cl_kernel kernel, cl_kernel_exec_info what,
              size_t bytes, const void* value);
cl_program behave(Tag<&Api::CreateProgramWithSource>, cl_context context, cl_uint count,
                  const char** texts, const size_t* bytes, cl_int* code);
cl_int behave(Tag<&Api::BuildProgram>, cl_program program, cl_uint count,
              const cl_device_id* devices, const char* options,
              void(CL_CALLBACK* done)(cl_program, void*), void* context);
cl_int behave(Tag<&Api::GetProgramBuildInfo>, cl_program program, cl_device_id device,
              cl_program_build_info what, size_t room, void* out, size_t* bytes);
cl_int behave(Tag<&Api::WaitForEvents>, cl_uint count, const cl_event* events);
cl_int behave(Tag<&Api::GetEventInfo>, cl_event event, cl_event_info what, size_t room, void* out,
              size_t* bytes);

template <auto Slot, class... Arguments>
auto behave(Tag<Slot>, Arguments... arguments) {
  return (real().*Slot)(arguments...);
}

// Writes an answer of a query function as OpenCL does.
cl_int answer(const void* value, size_t size, size_t room, void* out, size_t* bytes);
cl_int answer(const std::string& text, size_t room, void* out, size_t* bytes);

}  // namespace graft::fake_cl

#endif  // GRAFT_TESTS_DRIVERS_OPENCL_FAKE_ICD_H_
