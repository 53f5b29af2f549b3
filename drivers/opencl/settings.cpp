// drivers/opencl/settings.cpp: reads the driver's environment.
#include "settings.h"

#include <cstdlib>

namespace graft::opencl {
namespace {

std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

Settings read() {
  Settings s;
  s.devices = text("GRAFT_OPENCL_DEVICES", "");
  s.memory = text("GRAFT_OPENCL_MEMORY", "");
  s.device_class = text("GRAFT_OPENCL_CLASS", "");
  s.standard = text("GRAFT_OPENCL_STD", "");
  s.library = text("GRAFT_OPENCL_LIBRARY", "libOpenCL.so.1");
  s.profiling = text("GRAFT_OPENCL_PROFILING", "1") != "0";
  s.thread = text("GRAFT_OPENCL_THREAD", "1") != "0";
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings* instance = new Settings(read());
  return *instance;
}

}  // namespace graft::opencl
