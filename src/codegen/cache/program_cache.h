// src/codegen/cache/program_cache.h: compiled kernels: from the driver's pack, memory, disk or
// compiler.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/ir/ir.h"
#include "codegen/print/dialect.h"
#include "runtime/driver/export.h"
#include "runtime/driver/open_device.h"

namespace graft {

// The kernel that make() describes, ready to launch on the device; it lives as long as the process.
// key names it within the process (letters, digits, '_'): two kernels that differ have different
// keys. Asked in order: this process, the driver's pack, the disk, the driver's compiler; make is
// called at the first call only. Thread-safe: different keys compile side by side, one key once.
// A call costs a hash of the key and a lock: keep the handle.
// On a device without float64 it is what without_float64.h makes of it. Throws Error: UNSUPPORTED
// when the driver has neither the kernel nor a compiler or no dialect of ours, or the kernel needs
// float64 or more local memory than the device has; COMPILE_ERROR with the log's first lines. These
// two are remembered, other failures are tried again. What takes more than two seconds shows a line
// of compile_progress.h.
GRAFT_EXPORT graft_kernel get_kernel(OpenDevice& device, const std::string& key,
                                     const std::function<ir::Kernel()>& make);

// A kernel as its dialect has it. The name is key and a hash of the source, so what an older
// version compiled, in a pack or on disk, never matches.
struct Program {
  std::string name;
  std::string source;
};
Program make_program(const std::string& key, ir::Kernel kernel, const ir::Dialect& dialect);

// Kernels that the ahead-of-time pack contains. Registered by a static object in the file that
// launches them: const PackEntry pack([](const PackEntry::Sink& add) { add(key, make); });
class PackEntry {
 public:
  using Sink = std::function<void(const std::string& key, const std::function<ir::Kernel()>& make)>;
  using Enumerate = std::function<void(const Sink& add)>;

  explicit PackEntry(Enumerate enumerate);
  static const std::vector<Enumerate>& all();

  // Adds what knows its key() and how to build() it.
  template <class Kernel>
  static void put(const Sink& add, const Kernel& kernel) {
    add(kernel.key(), [kernel] { return kernel.build(); });
  }
};

}  // namespace graft
