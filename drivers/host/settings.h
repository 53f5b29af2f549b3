// drivers/host/settings.h: what the environment asks of the host driver, read once.
#ifndef GRAFT_DRIVERS_HOST_SETTINGS_H_
#define GRAFT_DRIVERS_HOST_SETTINGS_H_

#include <cstdint>
#include <string>

namespace graft::host {

// When a command runs on the calling thread.
enum class Mode {
  kDefault,  // small work on an idle stream
  kAsync,    // never
  kInline,   // everything but callbacks, on an idle stream
};

// GRAFT_HOST_ISA of a device that has no kernel pack.
inline constexpr char kNoPack[] = "none";

// One variable of the environment each; docs/use/settings.md describes them.
struct Settings {
  uint32_t devices;       // GRAFT_HOST_DEVICES
  uint64_t memory_bytes;  // GRAFT_HOST_MEMORY, of each device
  Mode mode;              // GRAFT_HOST_MODE
  bool protect;           // GRAFT_HOST_PROTECT
  uint32_t threads;       // GRAFT_HOST_THREADS, else the processors this process may use
  bool view;              // GRAFT_HOST_VIEW=0 leaves memory_host_view out
  bool library;           // GRAFT_HOST_LIBRARY=0 leaves oneDNN out
  bool share;             // GRAFT_HOST_SHARE=0 leaves memory_export and its like out
  std::string isa;        // GRAFT_HOST_ISA: a level, or kNoPack
  std::string target;     // GRAFT_HOST_TARGET: a level; launches then write nothing
  std::string compiler;   // GRAFT_CC; "" if it is not set
  std::string zig;        // GRAFT_ZIG: the path of a zig, which compiles C if there is no cc
  uint32_t patience;      // GRAFT_CC_TIMEOUT, in seconds
  std::string faults;     // GRAFT_HOST_FAULTS
  std::string simulate;   // GRAFT_HOST_SIMULATE
};

// The settings of this process. Thread-safe.
const Settings& settings();

// The folder that holds graft_host.so, with a slash at its end.
const std::string& driver_folder();

// First line of /proc/cpuinfo that begins with key, after its colon; "" when there is none.
std::string processor_line(const std::string& key);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_SETTINGS_H_
