// drivers/host/kernel/pack.cpp: the kernels that were compiled with Graft itself.
#include "pack.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "processor.h"
#include "program.h"
#include "settings.h"

namespace graft::host {
namespace {

graft_program load() {
  const std::string& forced = settings().isa;
  if (forced == kNoPack || !settings().target.empty()) return nullptr;
  const std::vector<std::string> levels =
      forced.empty() ? levels_up_to(processor_level()) : std::vector<std::string>{forced};
  for (const std::string& level : levels) {
    std::string path = driver_folder() + "graft_pack_" + level + ".so";
    if (void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      return new graft_program_s(handle);
    }
  }
  return nullptr;
}

}  // namespace

graft_program kernel_pack() {
  static graft_program pack = load();
  return pack;
}

}  // namespace graft::host
