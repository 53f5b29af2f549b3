// drivers/veda/api.h: the catalogue of VEDA's C interface (2.3.0), declared by us: types, codes and
// functions, each listed once.
#ifndef GRAFT_DRIVERS_VEDA_API_H_
#define GRAFT_DRIVERS_VEDA_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Every result: X(code, name). The name without VEDA_ERROR_ is the error of F2.5; 0 is success.
// vedaGetErrorName gives the name of the enumerator.
#define GRAFT_VEDA_RESULTS(X)                              \
  X(0, VEDA_SUCCESS)                                       \
  X(1, VEDA_ERROR_ALREADY_INITIALIZED)                     \
  X(2, VEDA_ERROR_CANNOT_CREATE_CONTEXT)                   \
  X(3, VEDA_ERROR_CANNOT_CREATE_DEVICE)                    \
  X(4, VEDA_ERROR_CANNOT_CREATE_STREAM)                    \
  X(5, VEDA_ERROR_CANNOT_POP_CONTEXT)                      \
  X(6, VEDA_ERROR_CANT_READ_SENSOR_FILE)                   \
  X(7, VEDA_ERROR_FUNCTION_NOT_FOUND)                      \
  X(8, VEDA_ERROR_INITIALIZING_DEVICE)                     \
  X(9, VEDA_ERROR_INVALID_ARGS)                            \
  X(10, VEDA_ERROR_INVALID_CONTEXT)                        \
  X(11, VEDA_ERROR_INVALID_COREIDX)                        \
  X(12, VEDA_ERROR_INVALID_DEVICE)                         \
  X(13, VEDA_ERROR_INVALID_MODULE)                         \
  X(14, VEDA_ERROR_INVALID_REQID)                          \
  X(15, VEDA_ERROR_INVALID_STREAM)                         \
  X(16, VEDA_ERROR_INVALID_VALUE)                          \
  X(17, VEDA_ERROR_MODULE_NOT_FOUND)                       \
  X(18, VEDA_ERROR_NOT_IMPLEMENTED)                        \
  X(19, VEDA_ERROR_NOT_INITIALIZED)                        \
  X(20, VEDA_ERROR_NO_DEVICES_FOUND)                       \
  X(21, VEDA_ERROR_NO_SENSOR_FILE)                         \
  X(22, VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED)             \
  X(23, VEDA_ERROR_OUT_OF_BOUNDS)                          \
  X(24, VEDA_ERROR_OUT_OF_MEMORY)                          \
  X(25, VEDA_ERROR_SHUTTING_DOWN)                          \
  X(26, VEDA_ERROR_UNABLE_TO_DETECT_DEVICES)               \
  X(27, VEDA_ERROR_UNKNOWN_CONTEXT)                        \
  X(28, VEDA_ERROR_UNKNOWN_DEVICE)                         \
  X(29, VEDA_ERROR_UNKNOWN_KERNEL)                         \
  X(30, VEDA_ERROR_UNKNOWN_MODULE)                         \
  X(31, VEDA_ERROR_UNKNOWN_PPTR)                           \
  X(32, VEDA_ERROR_UNKNOWN_ATTRIBUTE)                      \
  X(33, VEDA_ERROR_UNKNOWN_STREAM)                         \
  X(34, VEDA_ERROR_UNKNOWN_VPTR)                           \
  X(35, VEDA_ERROR_VEDA_LD_LIBRARY_PATH_NOT_DEFINED)       \
  X(36, VEDA_ERROR_VEO_COMMAND_ERROR)                      \
  X(37, VEDA_ERROR_VEO_COMMAND_EXCEPTION)                  \
  X(38, VEDA_ERROR_VEO_COMMAND_UNFINISHED)                 \
  X(39, VEDA_ERROR_VEO_COMMAND_UNKNOWN_ERROR)              \
  X(40, VEDA_ERROR_VEO_STATE_BLOCKED)                      \
  X(41, VEDA_ERROR_VEO_STATE_RUNNING)                      \
  X(42, VEDA_ERROR_VEO_STATE_SYSCALL)                      \
  X(43, VEDA_ERROR_VEO_STATE_UNKNOWN)                      \
  X(44, VEDA_ERROR_VPTR_ALREADY_ALLOCATED)                 \
  X(45, VEDA_ERROR_TODO)                                   \
  X(46, VEDA_ERROR_ASSERT)                                 \
  X(47, VEDA_ERROR_CONTEXT_IS_DESTROYED)                   \
  X(48, VEDA_ERROR_INVALID_HANDLE)                         \
  X(49, VEDA_ERROR_UNKNOWN)                                \
  X(50, VEDA_ERROR_INVALID_DTYPE)                          \
  X(51, VEDA_ERROR_OFFSET_NOT_ALLOWED)                     \
  X(52, VEDA_ERROR_UNKNOWN_HMEM)                           \
  X(53, VEDA_ERROR_UNKNOWN_CALLBACK)                       \
  X(54, VEDA_ERROR_CALLBACK_ALREADY_REGISTERED)            \
  X(55, VEDA_ERROR_MEMORY_MISALIGNED)                      \
  X(56, VEDA_ERROR_UNKNOWN_VEDA_ARCHITECTURE)              \
  X(57, VEDA_ERROR_CANT_RELEASE_NON_DELAYED_VPTR)          \
  X(58, VEDA_ERROR_CANT_RELEASE_ALREADY_RELEASED_VPTR)     \
  X(59, VEDA_ERROR_CANT_FREE_NON_DELAYED_VPTR)             \
  X(60, VEDA_ERROR_CANT_RELEASE_NON_DEVICE_ALLOCATED_VPTR) \
  X(61, VEDA_ERROR_OVERRIDE_ALREADY_SET)

#define GRAFT_VEDA_ENUMERATOR(code, name) name = code,
typedef enum { GRAFT_VEDA_RESULTS(GRAFT_VEDA_ENUMERATOR) } VEDAresult;
#undef GRAFT_VEDA_ENUMERATOR

// Clocks in MHz, caches in KiB (VEDA gives what the device's files give). VEDA spells FIREWARE.
typedef enum {
  VEDA_DEVICE_ATTRIBUTE_CLOCK_RATE,
  VEDA_DEVICE_ATTRIBUTE_CLOCK_BASE,
  VEDA_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
  VEDA_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
  VEDA_DEVICE_ATTRIBUTE_L1D_CACHE_SIZE,
  VEDA_DEVICE_ATTRIBUTE_L1I_CACHE_SIZE,
  VEDA_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
  VEDA_DEVICE_ATTRIBUTE_LLC_CACHE_SIZE,
  VEDA_DEVICE_ATTRIBUTE_ABI_VERSION,
  VEDA_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
  VEDA_DEVICE_ATTRIBUTE_FIREWARE_VERSION,
  VEDA_DEVICE_ATTRIBUTE_MODEL
} VEDAdevice_attribute;

typedef enum {
  VEDA_ARGS_INTENT_IN = 0,
  VEDA_ARGS_INTENT_INOUT = 1,
  VEDA_ARGS_INTENT_OUT = 2
} VEDAargs_intent;

typedef enum {
  VEDA_CONTEXT_MODE_OMP = 0,    // one stream, which uses all cores
  VEDA_CONTEXT_MODE_SCALAR = 1  // one stream for each core
} VEDAcontext_mode;

// The low byte counts the kinds; bits 24 to 26 say which arguments of the request are kept.
// Facts F2 do not give the values of SYNC and of the events: both are our reading.
typedef enum {
  VEDA_PROFILER_MEM_ALLOC = 0x1000000,
  VEDA_PROFILER_MEM_FREE = 0x1000001,
  VEDA_PROFILER_MEM_CPY_HTOD = 0x7000002,
  VEDA_PROFILER_MEM_CPY_DTOH = 0x7000003,
  VEDA_PROFILER_LAUNCH_KERNEL = 0x5000004,
  VEDA_PROFILER_LAUNCH_HOST = 0x1000005,
  VEDA_PROFILER_HMEM_CPY = 0x7000006,
  VEDA_PROFILER_HMEM_ALLOC = 0x4000007,
  VEDA_PROFILER_HMEM_FREE = 0x1000008,
  VEDA_PROFILER_SYNC = 9
} VEDAprofiler_type;

typedef enum {
  VEDA_PROFILER_EVENT_ISSUE,  // the request is given
  VEDA_PROFILER_EVENT_BEGIN,  // it starts, in stream order
  VEDA_PROFILER_EVENT_END     // it is done
} VEDAprofiler_event;

typedef int VEDAmallopt;  // a parameter of the device's mallopt
typedef int VEDAdevice;   // 0 .. count - 1
typedef int VEDAstream;   // 0 .. vedaCtxStreamCnt - 1; -1: stream 0, then wait for it
typedef struct veda_context* VEDAcontext;
typedef struct veda_module* VEDAmodule;
typedef struct veo_args* VEDAargs;

// Their pointees have one byte, so that adding counts bytes; two types that do not mix.
typedef struct {
  int8_t byte;
} VEDAdevice_byte;
typedef struct {
  int8_t byte;
} VEDAhmem_byte;
typedef VEDAdevice_byte* VEDAdeviceptr;
typedef VEDAhmem_byte* VEDAhmemptr;

// Given by value.
typedef struct {
  uint64_t ptr;
  const char* kernel;
} VEDAfunction;

typedef uint64_t (*VEDAhost_function)(void* user_data);
typedef void (*VEDAstream_callback)(VEDAstream stream, VEDAresult status, void* user_data);

// The head of every record of the profiler; the kinds below add what their name says.
typedef struct {
  VEDAprofiler_type type;
  int device_id;
  int stream_id;
  uint64_t req_id;
  void* user_data;
} VEDAprofiler_data;
typedef struct {
  VEDAprofiler_data head;
  void* dst;
  void* src;
  size_t bytes;
} VEDAprofiler_vedaMemcpy;
typedef struct {
  VEDAprofiler_data head;
  void* func;
  const char* kernel;
} VEDAprofiler_vedaLaunchKernel;
typedef struct {
  VEDAprofiler_data head;
  void* func;
} VEDAprofiler_vedaLaunchHostFunc;
typedef struct {
  VEDAprofiler_data head;
  size_t bytes;
} VEDAprofiler_vedaMemAlloc;
typedef struct {
  VEDAprofiler_data head;
  void* ptr;
} VEDAprofiler_vedaMemFree;
typedef void (*VEDAprofiler_callback)(VEDAprofiler_data* data, VEDAprofiler_event event);

// A device pointer: 5 bits device | 22 bits index (0 is none) | 37 bits offset.
#define VEDA_MAX_DEVICES 16
#define VEDA_OFFSET_BITS 37
#define VEDA_INDEX_BITS 22
#define VEDA_MAX_INDEX ((UINT64_C(1) << VEDA_INDEX_BITS) - 1)
#define VEDA_MAX_OFFSET ((UINT64_C(1) << VEDA_OFFSET_BITS) - 1)
#define VEDA_GET_DEVICE(pointer) \
  ((int)((uint64_t)(pointer) >> (VEDA_OFFSET_BITS + VEDA_INDEX_BITS)))
#define VEDA_GET_IDX(pointer) ((uint32_t)((uint64_t)(pointer) >> VEDA_OFFSET_BITS & VEDA_MAX_INDEX))
#define VEDA_GET_OFFSET(pointer) ((uint64_t)(pointer)&VEDA_MAX_OFFSET)
#define VEDA_SET_PTR(device, index, offset)                                     \
  ((VEDAdeviceptr)((uint64_t)(device) << (VEDA_OFFSET_BITS + VEDA_INDEX_BITS) | \
                   (uint64_t)(index) << VEDA_OFFSET_BITS | (uint64_t)(offset)))

// The forms of one memset: flat and with a pitch, each with its Async twin. The arguments after
// width are the value's; a flat one sets count elements, a pitched one columns times rows.
#define GRAFT_VEDA_MEMSETS(X, prefix, pointer, width, ...)                                 \
  X(prefix##D##width, (pointer, __VA_ARGS__, size_t count))                                \
  X(prefix##D##width##Async, (pointer, __VA_ARGS__, size_t count, VEDAstream stream))      \
  X(prefix##D2D##width, (pointer, size_t pitch, __VA_ARGS__, size_t columns, size_t rows)) \
  X(prefix##D2D##width##Async,                                                             \
    (pointer, size_t pitch, __VA_ARGS__, size_t columns, size_t rows, VEDAstream stream))

// Every function, without its veda: X(name, (parameters)); each returns VEDAresult. A libveda may
// lack the OPTIONAL ones, which are younger than VEDA 1.5 or changed after it; all others it has.
#define GRAFT_VEDA_FUNCTIONS(REQUIRED, OPTIONAL)                                                   \
  REQUIRED(Init, (uint32_t flags))                                                                 \
  REQUIRED(Exit, (void))                                                                           \
  REQUIRED(GetErrorName, (VEDAresult result, const char** name))                                   \
  REQUIRED(GetErrorString, (VEDAresult result, const char** text))                                 \
  REQUIRED(GetVersion, (const char** version))                                                     \
  REQUIRED(DriverGetVersion, (const char** version))                                               \
  OPTIONAL(GetArchitecture, (int* architecture))                                                   \
  REQUIRED(DeviceGetCount, (int* count))                                                           \
  REQUIRED(DeviceGet, (VEDAdevice * device, int ordinal))                                          \
  REQUIRED(DeviceGetName, (char* name, int length, VEDAdevice device))                             \
  REQUIRED(DeviceTotalMem, (size_t * bytes, VEDAdevice device))                                    \
  REQUIRED(DeviceGetAttribute, (int* value, VEDAdevice_attribute attribute, VEDAdevice device))    \
  REQUIRED(DeviceGetPhysicalId, (int* id, VEDAdevice device))                                      \
  REQUIRED(DeviceGetAVEOId, (int* id, VEDAdevice device))                                          \
  REQUIRED(DeviceGetNUMAId, (int* id, VEDAdevice device))                                          \
  REQUIRED(DeviceDistance, (float* distance, VEDAdevice first, VEDAdevice second))                 \
  REQUIRED(DeviceGetPower, (float* watts, VEDAdevice device))                                      \
  REQUIRED(DeviceGetCurrent, (float* current, VEDAdevice device))                                  \
  REQUIRED(DeviceGetCurrentEdge, (float* current, VEDAdevice device))                              \
  REQUIRED(DeviceGetVoltage, (float* volts, VEDAdevice device))                                    \
  REQUIRED(DeviceGetVoltageEdge, (float* volts, VEDAdevice device))                                \
  REQUIRED(DeviceGetTemp, (float* celsius, const int core, VEDAdevice device))                     \
  REQUIRED(DevicePrimaryCtxRetain, (VEDAcontext * context, VEDAdevice device))                     \
  REQUIRED(DevicePrimaryCtxRelease, (VEDAdevice device))                                           \
  REQUIRED(DevicePrimaryCtxReset, (VEDAdevice device))                                             \
  REQUIRED(DevicePrimaryCtxGetState, (VEDAdevice device, uint32_t * flags, int* active))           \
  REQUIRED(DevicePrimaryCtxSetFlags, (VEDAdevice device, uint32_t flags))                          \
  REQUIRED(CtxCreate, (VEDAcontext * context, int mode, VEDAdevice device))                        \
  REQUIRED(CtxDestroy, (VEDAcontext context))                                                      \
  REQUIRED(CtxGet, (VEDAcontext * context, const VEDAdevice device))                               \
  REQUIRED(CtxGetCurrent, (VEDAcontext * context))                                                 \
  REQUIRED(CtxSetCurrent, (VEDAcontext context))                                                   \
  REQUIRED(CtxPushCurrent, (VEDAcontext context))                                                  \
  REQUIRED(CtxPopCurrent, (VEDAcontext * context))                                                 \
  REQUIRED(CtxGetDevice, (VEDAdevice * device))                                                    \
  REQUIRED(CtxStreamCnt, (int* count))                                                             \
  REQUIRED(CtxSynchronize, (void))                                                                 \
  REQUIRED(CtxGetApiVersion, (VEDAcontext context, uint32_t * version))                            \
  REQUIRED(StreamSynchronize, (VEDAstream stream))                                                 \
  REQUIRED(StreamQuery, (VEDAstream stream))                                                       \
  REQUIRED(StreamGetFlags, (VEDAstream stream, uint32_t * flags))                                  \
  REQUIRED(StreamAddCallback,                                                                      \
           (VEDAstream stream, VEDAstream_callback callback, void* user_data, unsigned int flags)) \
  REQUIRED(MemAlloc, (VEDAdeviceptr * pointer, size_t size))                                       \
  REQUIRED(MemAllocAsync, (VEDAdeviceptr * pointer, size_t size, VEDAstream stream))               \
  REQUIRED(MemAllocPitch, (VEDAdeviceptr * pointer, size_t * pitch, size_t width, size_t height,   \
                           uint32_t element_size))                                                 \
  REQUIRED(MemAllocPitchAsync, (VEDAdeviceptr * pointer, size_t * pitch, size_t width,             \
                                size_t height, uint32_t element_size, VEDAstream stream))          \
  REQUIRED(MemFree, (VEDAdeviceptr pointer))                                                       \
  REQUIRED(MemFreeAsync, (VEDAdeviceptr pointer, VEDAstream stream))                               \
  OPTIONAL(MemRelease, (VEDAdeviceptr pointer))                                                    \
  OPTIONAL(MemAssign, (VEDAdeviceptr * pointer, void* raw, size_t size, VEDAstream stream))        \
  OPTIONAL(MemAllocOverrideOnce, (VEDAdeviceptr pointer))                                          \
  REQUIRED(MemSwap, (VEDAdeviceptr first, VEDAdeviceptr second))                                   \
  REQUIRED(MemSwapAsync, (VEDAdeviceptr first, VEDAdeviceptr second, VEDAstream stream))           \
  REQUIRED(MemAllocHost, (void** pointer, size_t size))                                            \
  REQUIRED(MemFreeHost, (void* pointer))                                                           \
  REQUIRED(MemGetInfo, (size_t * free_bytes, size_t * total))                                      \
  REQUIRED(MemReport, (void))                                                                      \
  REQUIRED(MemPtr, (void** raw, VEDAdeviceptr pointer))                                            \
  REQUIRED(MemPtrSize, (void** raw, size_t* size, VEDAdeviceptr pointer))                          \
  REQUIRED(MemSize, (size_t * size, VEDAdeviceptr pointer))                                        \
  REQUIRED(MemGetAddressRange, (VEDAdeviceptr * base, size_t * size, VEDAdeviceptr pointer))       \
  REQUIRED(MemGetDevice, (VEDAdevice * device, VEDAdeviceptr pointer))                             \
  OPTIONAL(MemOpt, (VEDAmallopt option, int value))                                                \
  OPTIONAL(MemOptAsync, (VEDAmallopt option, int value, VEDAstream stream))                        \
  REQUIRED(MemcpyHtoD, (VEDAdeviceptr to, const void* from, size_t size))                          \
  REQUIRED(MemcpyHtoDAsync, (VEDAdeviceptr to, const void* from, size_t size, VEDAstream stream))  \
  REQUIRED(MemcpyDtoH, (void* to, VEDAdeviceptr from, size_t size))                                \
  REQUIRED(MemcpyDtoHAsync, (void* to, VEDAdeviceptr from, size_t size, VEDAstream stream))        \
  REQUIRED(MemcpyDtoD, (VEDAdeviceptr to, VEDAdeviceptr from, size_t size))                        \
  REQUIRED(MemcpyDtoDAsync,                                                                        \
           (VEDAdeviceptr to, VEDAdeviceptr from, size_t size, VEDAstream stream))                 \
  REQUIRED(Memcpy, (VEDAdeviceptr to, VEDAdeviceptr from, size_t size))                            \
  REQUIRED(MemcpyAsync, (VEDAdeviceptr to, VEDAdeviceptr from, size_t size, VEDAstream stream))    \
  GRAFT_VEDA_MEMSETS(REQUIRED, Memset, VEDAdeviceptr pointer, 8, uint8_t value)                    \
  GRAFT_VEDA_MEMSETS(REQUIRED, Memset, VEDAdeviceptr pointer, 16, uint16_t value)                  \
  GRAFT_VEDA_MEMSETS(REQUIRED, Memset, VEDAdeviceptr pointer, 32, uint32_t value)                  \
  GRAFT_VEDA_MEMSETS(REQUIRED, Memset, VEDAdeviceptr pointer, 64, uint64_t value)                  \
  GRAFT_VEDA_MEMSETS(REQUIRED, Memset, VEDAdeviceptr pointer, 128, uint64_t x, uint64_t y)         \
  REQUIRED(ModuleLoad, (VEDAmodule * module_, const char* file))                                   \
  REQUIRED(ModuleUnload, (VEDAmodule module_))                                                     \
  REQUIRED(ModuleGetFunction, (VEDAfunction * function, VEDAmodule module_, const char* name))     \
  REQUIRED(ArgsCreate, (VEDAargs * args))                                                          \
  REQUIRED(ArgsDestroy, (VEDAargs args))                                                           \
  REQUIRED(ArgsSetI8, (VEDAargs args, const int index, const int8_t value))                        \
  REQUIRED(ArgsSetI16, (VEDAargs args, const int index, const int16_t value))                      \
  REQUIRED(ArgsSetI32, (VEDAargs args, const int index, const int32_t value))                      \
  REQUIRED(ArgsSetI64, (VEDAargs args, const int index, const int64_t value))                      \
  REQUIRED(ArgsSetU8, (VEDAargs args, const int index, const uint8_t value))                       \
  REQUIRED(ArgsSetU16, (VEDAargs args, const int index, const uint16_t value))                     \
  REQUIRED(ArgsSetU32, (VEDAargs args, const int index, const uint32_t value))                     \
  REQUIRED(ArgsSetU64, (VEDAargs args, const int index, const uint64_t value))                     \
  REQUIRED(ArgsSetF32, (VEDAargs args, const int index, const float value))                        \
  REQUIRED(ArgsSetF64, (VEDAargs args, const int index, const double value))                       \
  REQUIRED(ArgsSetVPtr, (VEDAargs args, const int index, const VEDAdeviceptr value))               \
  REQUIRED(ArgsSetPtr, (VEDAargs args, const int index, const VEDAdeviceptr value))                \
  REQUIRED(ArgsSetHMEM, (VEDAargs args, const int index, const VEDAhmemptr value))                 \
  REQUIRED(ArgsSetStack, (VEDAargs args, const int index, void* pointer, VEDAargs_intent intent,   \
                          const size_t size))                                                      \
  REQUIRED(LaunchKernel, (VEDAfunction function, VEDAstream stream, VEDAargs args))                \
  REQUIRED(LaunchKernelEx, (VEDAfunction function, VEDAstream stream, VEDAargs args,               \
                            const int destroy_args, uint64_t* result))                             \
  REQUIRED(LaunchHostFunc, (VEDAstream stream, VEDAhost_function function, void* user_data))       \
  REQUIRED(LaunchHostFuncEx,                                                                       \
           (VEDAstream stream, VEDAhost_function function, void* user_data, uint64_t* result))     \
  OPTIONAL(HMemAlloc, (VEDAhmemptr * pointer, size_t size))                                        \
  OPTIONAL(HMemFree, (VEDAhmemptr pointer))                                                        \
  OPTIONAL(HMemPtr, (void** raw, VEDAhmemptr pointer))                                             \
  OPTIONAL(HMemcpy, (void* to, void* from, size_t size))                                           \
  OPTIONAL(HMemcpyXtoD, (VEDAdeviceptr to, void* from, size_t size))                               \
  OPTIONAL(HMemcpyXtoDAsync, (VEDAdeviceptr to, void* from, size_t size, VEDAstream stream))       \
  OPTIONAL(HMemcpyDtoX, (void* to, VEDAdeviceptr from, size_t size))                               \
  OPTIONAL(HMemcpyDtoXAsync, (void* to, VEDAdeviceptr from, size_t size, VEDAstream stream))       \
  GRAFT_VEDA_MEMSETS(OPTIONAL, HMemset, VEDAhmemptr pointer, 8, uint8_t value)                     \
  GRAFT_VEDA_MEMSETS(OPTIONAL, HMemset, VEDAhmemptr pointer, 16, uint16_t value)                   \
  GRAFT_VEDA_MEMSETS(OPTIONAL, HMemset, VEDAhmemptr pointer, 32, uint32_t value)                   \
  GRAFT_VEDA_MEMSETS(OPTIONAL, HMemset, VEDAhmemptr pointer, 64, uint64_t value)                   \
  GRAFT_VEDA_MEMSETS(OPTIONAL, HMemset, VEDAhmemptr pointer, 128, uint64_t x, uint64_t y)          \
  OPTIONAL(MemToHMEM, (VEDAhmemptr * hmem, VEDAdeviceptr pointer))                                 \
  OPTIONAL(ProfilerSetCallback, (VEDAprofiler_callback callback))                                  \
  OPTIONAL(ProfilerGetCallback, (VEDAprofiler_callback * callback))                                \
  OPTIONAL(ProfilerTypeName, (VEDAprofiler_type type, const char** name, const VEDAstream stream))

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GRAFT_DRIVERS_VEDA_API_H_
