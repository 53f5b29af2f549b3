// drivers/host/settings.cpp: reads the driver's environment and the limits of the process.
#include "settings.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

namespace graft::host {
namespace {

std::string text(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

uint64_t number(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value < '0' || *value > '9') return otherwise;
  return std::strtoull(value, nullptr, 10);
}

uint64_t machine_memory() {
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
}

uint64_t container_memory() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  uint64_t bytes = 0;
  return file >> bytes ? bytes : ~uint64_t{0};
}

uint32_t container_processors() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return ~0u;
  return std::max(1u, uint32_t(std::ceil(quota / period)));
}

uint32_t usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  uint32_t count = sched_getaffinity(0, sizeof set, &set) == 0 ? uint32_t(CPU_COUNT(&set)) : 1u;
  return std::max(1u, std::min(count, container_processors()));
}

Mode mode() {
  std::string name = text("GRAFT_HOST_MODE", "");
  if (name == "async") return Mode::kAsync;
  return name == "inline" ? Mode::kInline : Mode::kDefault;
}

Settings read() {
  Settings s;
  // Graft counts fewer, and says so.
  s.devices = uint32_t(std::min<uint64_t>(number("GRAFT_HOST_DEVICES", 1), 1 << 16));
  s.memory_bytes = number("GRAFT_HOST_MEMORY", std::min(machine_memory(), container_memory()));
  s.mode = mode();
  s.protect = number("GRAFT_HOST_PROTECT", 1) != 0;
  uint64_t threads = number("GRAFT_HOST_THREADS", number("OMP_NUM_THREADS", usable_processors()));
  s.threads = uint32_t(std::clamp<uint64_t>(threads, 1, 1024));
  s.view = number("GRAFT_HOST_VIEW", 1) != 0;
  s.library = number("GRAFT_HOST_LIBRARY", 1) != 0;
  s.share = number("GRAFT_HOST_SHARE", 1) != 0;
  s.isa = text("GRAFT_HOST_ISA", "");
  s.target = text("GRAFT_HOST_TARGET", "");
  s.compiler = text("GRAFT_CC", "");
  s.zig = text("GRAFT_ZIG", "");
  s.patience = uint32_t(std::min<uint64_t>(number("GRAFT_CC_TIMEOUT", 120), 1u << 20));
  s.faults = text("GRAFT_HOST_FAULTS", "");
  s.simulate = text("GRAFT_HOST_SIMULATE", "");
  return s;
}

}  // namespace

const Settings& settings() {
  static const Settings* instance = new Settings(read());
  return *instance;
}

const std::string& driver_folder() {
  static const std::string* folder = [] {
    Dl_info info = {};
    std::string path;
    if (dladdr(reinterpret_cast<void*>(&driver_folder), &info) != 0) path = info.dli_fname;
    return new std::string(path.substr(0, path.rfind('/') + 1));
  }();
  return *folder;
}

std::string processor_line(const std::string& key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    size_t colon = line.find(':');
    return colon + 2 <= line.size() ? line.substr(colon + 2) : "";
  }
  return "";
}

}  // namespace graft::host
