// drivers/opencl/platform/query.h: asks devices and platforms what they are.
#ifndef GRAFT_DRIVERS_OPENCL_PLATFORM_QUERY_H_
#define GRAFT_DRIVERS_OPENCL_PLATFORM_QUERY_H_

#include <string>
#include <vector>

#include "api.h"

namespace graft::opencl {

// A value of a device; otherwise where the device does not know the question, as older ones do.
template <class T>
T ask(cl_device_id device, cl_device_info what, T otherwise) {
  T value = otherwise;
  size_t bytes = 0;
  const cl_int code = cl().GetDeviceInfo(device, what, sizeof value, &value, &bytes);
  return code == CL_SUCCESS && bytes == sizeof value ? value : otherwise;
}

// A list of values of a device; empty where the device does not know the question.
template <class T>
std::vector<T> ask_list(cl_device_id device, cl_device_info what) {
  size_t bytes = 0;
  if (cl().GetDeviceInfo(device, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::vector<T> values(bytes / sizeof(T));
  bytes = values.size() * sizeof(T);
  if (bytes == 0 || cl().GetDeviceInfo(device, what, bytes, values.data(), nullptr) != CL_SUCCESS) {
    return {};
  }
  return values;
}

// A text without blanks around it; "" where there is none.
std::string ask_text(cl_device_id device, cl_device_info what);
std::string ask_text(cl_platform_id platform, cl_platform_info what);

// Whether word stands in a list of words with blanks between them.
bool lists(const std::string& words, const std::string& word);

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_PLATFORM_QUERY_H_
