// drivers/veda/program/program.h: compiled programs, and the kernels inside them.
#ifndef GRAFT_DRIVERS_VEDA_PROGRAM_PROGRAM_H_
#define GRAFT_DRIVERS_VEDA_PROGRAM_PROGRAM_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "api.h"
#include "graft/driver.h"
#include "program/kernel.h"

// A module that the device has loaded; its kernels live as long as it does.
struct graft_program_s {
  const graft_device device;
  const VEDAmodule module_;
  VEDAfunction entry = {};
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<graft_kernel_s>> kernels;  // guarded by mutex
};

namespace graft::veda {

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

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_PROGRAM_PROGRAM_H_
