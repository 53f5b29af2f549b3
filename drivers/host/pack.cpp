// drivers/host/pack.cpp: the kernels that were compiled with Graft itself.
#include "pack.h"

#include <dlfcn.h>

#include <string>

#include "program.h"
#include "settings.h"

namespace graft::host {
namespace {

struct Level {
  const char* name;
  bool runs;  // on this processor
};

graft_program load() {
  __builtin_cpu_init();
  // Feature by feature: clang knows no names of levels.
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  const Level levels[] = {{"v4", v4}, {"v3", v3}, {"v2", v2}};
  const std::string& forced = settings().isa;
  for (const Level& level : levels) {
    if (forced.empty() ? !level.runs : forced != level.name) continue;
    std::string path = driver_folder() + "graft_pack_" + level.name + ".so";
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
