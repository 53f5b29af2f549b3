// drivers/opencl/platform/status.cpp: OpenCL's error codes in Graft's words.
#include "status.h"

namespace graft::opencl {
namespace {

#define GRAFT_CL_CODES(CODE)                      \
  CODE(DEVICE_NOT_FOUND)                          \
  CODE(DEVICE_NOT_AVAILABLE)                      \
  CODE(COMPILER_NOT_AVAILABLE)                    \
  CODE(MEM_OBJECT_ALLOCATION_FAILURE)             \
  CODE(OUT_OF_RESOURCES)                          \
  CODE(OUT_OF_HOST_MEMORY)                        \
  CODE(PROFILING_INFO_NOT_AVAILABLE)              \
  CODE(MEM_COPY_OVERLAP)                          \
  CODE(BUILD_PROGRAM_FAILURE)                     \
  CODE(MAP_FAILURE)                               \
  CODE(MISALIGNED_SUB_BUFFER_OFFSET)              \
  CODE(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) \
  CODE(INVALID_VALUE)                             \
  CODE(INVALID_DEVICE_TYPE)                       \
  CODE(INVALID_PLATFORM)                          \
  CODE(INVALID_DEVICE)                            \
  CODE(INVALID_CONTEXT)                           \
  CODE(INVALID_QUEUE_PROPERTIES)                  \
  CODE(INVALID_COMMAND_QUEUE)                     \
  CODE(INVALID_HOST_PTR)                          \
  CODE(INVALID_MEM_OBJECT)                        \
  CODE(INVALID_BINARY)                            \
  CODE(INVALID_BUILD_OPTIONS)                     \
  CODE(INVALID_PROGRAM)                           \
  CODE(INVALID_PROGRAM_EXECUTABLE)                \
  CODE(INVALID_KERNEL_NAME)                       \
  CODE(INVALID_KERNEL)                            \
  CODE(INVALID_ARG_INDEX)                         \
  CODE(INVALID_ARG_VALUE)                         \
  CODE(INVALID_ARG_SIZE)                          \
  CODE(INVALID_KERNEL_ARGS)                       \
  CODE(INVALID_WORK_DIMENSION)                    \
  CODE(INVALID_WORK_GROUP_SIZE)                   \
  CODE(INVALID_WORK_ITEM_SIZE)                    \
  CODE(INVALID_GLOBAL_OFFSET)                     \
  CODE(INVALID_EVENT_WAIT_LIST)                   \
  CODE(INVALID_EVENT)                             \
  CODE(INVALID_OPERATION)                         \
  CODE(INVALID_BUFFER_SIZE)                       \
  CODE(INVALID_GLOBAL_WORK_SIZE)                  \
  CODE(INVALID_PROPERTY)

const char* name_of(cl_int code) {
  switch (code) {
#define GRAFT_CL_NAME(name) \
  case CL_##name:           \
    return "CL_" #name;
    GRAFT_CL_CODES(GRAFT_CL_NAME)
#undef GRAFT_CL_NAME
    case CL_PLATFORM_NOT_FOUND_KHR:
      return "CL_PLATFORM_NOT_FOUND_KHR";
    default:
      return "OpenCL error";
  }
}

}  // namespace

std::string code_name(cl_int code) {
  return std::string(name_of(code)) + " (" + std::to_string(code) + ")";
}

graft_status status_of(cl_int code, graft_status otherwise) {
  switch (code) {
    case CL_SUCCESS:
      return GRAFT_OK;
    case CL_DEVICE_NOT_AVAILABLE:
      return GRAFT_DEVICE_LOST;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return GRAFT_OUT_OF_MEMORY;
    case CL_INVALID_KERNEL_NAME:
      return GRAFT_NOT_FOUND;
    case CL_COMPILER_NOT_AVAILABLE:
      return GRAFT_UNSUPPORTED;
    case CL_INVALID_VALUE:
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_KERNEL_ARGS:
    case CL_INVALID_WORK_GROUP_SIZE:
    case CL_INVALID_WORK_ITEM_SIZE:
    case CL_INVALID_GLOBAL_WORK_SIZE:
      return GRAFT_INVALID_ARGUMENT;
    default:
      return otherwise;
  }
}

}  // namespace graft::opencl
