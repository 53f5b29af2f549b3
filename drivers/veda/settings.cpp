// drivers/veda/settings.cpp: reads the driver's environment.
#include "settings.h"

#include <cstdlib>

namespace graft::veda {
namespace {

std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

Settings read() {
  Settings s;
  s.library = text("GRAFT_VEDA_LIBRARY", "");
  s.library_is_named = !s.library.empty();
  if (!s.library_is_named) s.library = "libveda.so.0";
  s.mode = text("GRAFT_VE_MODE", "omp");
  s.compiler = text("GRAFT_VE_CC", "ncc");
  // clang knows the processor but brings no linker for it.
  const bool links = s.compiler.find("--target=ve") == std::string::npos;
  s.link = text("GRAFT_VE_LINK", links ? "{cc} -shared -o {output} {inputs} -lm"
                                       : "nld -shared -o {output} {inputs} -lm -lpthread -lc");
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings* instance = new Settings(read());
  return *instance;
}

}  // namespace graft::veda
