// drivers/opencl/platform/query.cpp: asks devices and platforms what they are.
#include "query.h"

namespace graft::opencl {
namespace {

template <class Question>
std::string read_text(Question question) {
  size_t bytes = 0;
  if (question(size_t{0}, nullptr, &bytes) != CL_SUCCESS || bytes == 0) return "";
  std::string text(bytes, '\0');
  if (question(bytes, text.data(), nullptr) != CL_SUCCESS) return "";
  text.resize(text.find('\0') == std::string::npos ? bytes : text.find('\0'));
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

std::string ask_text(cl_device_id device, cl_device_info what) {
  return read_text([&](size_t room, void* to, size_t* bytes) {
    return cl().GetDeviceInfo(device, what, room, to, bytes);
  });
}

std::string ask_text(cl_platform_id platform, cl_platform_info what) {
  return read_text([&](size_t room, void* to, size_t* bytes) {
    return cl().GetPlatformInfo(platform, what, room, to, bytes);
  });
}

bool lists(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

}  // namespace graft::opencl
