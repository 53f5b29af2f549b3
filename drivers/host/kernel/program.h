// drivers/host/kernel/program.h: compiled programs, and the kernels inside them and inside the
// pack.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_PROGRAM_H_
#define GRAFT_DRIVERS_HOST_KERNEL_PROGRAM_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "graft/driver.h"
#include "kernel.h"

// A loaded shared object; its kernels live as long as it does. handle: of dlopen; null for one that
// is compiled but not loaded, which has a kernel of every name, without a function.
struct graft_program_s {
  explicit graft_program_s(void* handle) : handle(handle) {}
  ~graft_program_s();

  // The kernel of that name; NULL when there is none. Thread-safe.
  graft_kernel find(const char* name);

 private:
  void* handle;
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<graft_kernel_s>> kernels;  // guarded by mutex
};

namespace graft::host {

// Slots of the table, see driver.h.
struct ProgramSlots {
  static graft_status program_compile(graft_device device, const char* source, size_t source_bytes,
                                      const char* options, graft_sink blob);
  static graft_status program_load(graft_device device, const void* blob, size_t bytes,
                                   graft_program* out_program);
  static graft_status program_unload(graft_program program);
  static graft_status toolchain_fingerprint(graft_device device, graft_sink text);
  static graft_status kernel_find(graft_device device, graft_program program, const char* name,
                                  graft_kernel* out);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_PROGRAM_H_
