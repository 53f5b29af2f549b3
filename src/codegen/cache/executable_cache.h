// src/codegen/cache/executable_cache.h: graphs that a vendor's compiler compiled: from memory, disk
// or the compiler.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "graft/extensions.h"
#include "runtime/driver/export.h"
#include "runtime/driver/open_device.h"

namespace graft {

// A graph of graft.graph_compiler, loaded on its device. Destroyed through its driver when the last
// user lets go, or when the device closes; runs that were queued go on. Thread-safe.
class GRAFT_EXPORT Executable {
 public:
  Executable(OpenDevice& device, const graft_graph_compiler_table& table, graft_executable handle)
      : device_(device), table_(table), handle_(handle) {
    device.own(handle, table.executable_destroy);
  }
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  graft_executable handle() const { return handle_; }
  const graft_graph_compiler_table& table() const { return table_; }

  // Bytes that runs with these values of the symbols need. Throws Error when the driver refuses.
  uint64_t workspace_bytes(std::span<const int64_t> symbols) const;

 private:
  OpenDevice& device_;
  const graft_graph_compiler_table& table_;
  const graft_executable handle_;
};

// Whether the device's driver has graft.graph_compiler and GRAFT_GRAPH_COMPILER is not 0.
GRAFT_EXPORT bool has_graph_compiler(OpenDevice& device);

// The executable of a text of graft-graph. Asked in order: this process while somebody holds it,
// the disk, the compiler; a kept blob that the driver does not load is compiled again. Null where
// the compiler answers UNSUPPORTED. Thread-safe: one text compiles once. Throws Error for every
// other failure, with the log's first lines. REQUIRES: has_graph_compiler(device).
GRAFT_EXPORT std::shared_ptr<const Executable> get_executable(OpenDevice& device,
                                                              const std::string& text);

}  // namespace graft
