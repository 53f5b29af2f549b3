// drivers/opencl/kernel/program.h: compiled programs and the kernels inside them.
#ifndef GRAFT_DRIVERS_OPENCL_KERNEL_PROGRAM_H_
#define GRAFT_DRIVERS_OPENCL_KERNEL_PROGRAM_H_

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graft/driver.h"
#include "graft/extensions.h"
#include "kernel.h"
#include "platform/api.h"

// A built program; its kernels live as long as it does.
struct graft_program_s {
  // source: what it was built from; empty for one that was loaded.
  graft_program_s(graft_device device, cl_program handle, std::string source = "",
                  std::string options = "")
      : device(device), handle(handle), source(std::move(source)), options(std::move(options)) {}
  ~graft_program_s();

  // Thread-safe.
  graft_status find(const char* name, graft_kernel* out);

  const graft_device device;
  const cl_program handle;
  const std::string source, options;
  std::vector<unsigned char> binary;  // where it was read at once

 private:
  std::mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<graft_kernel_s>> kernels;  // guarded by mutex
};

namespace graft::opencl {

// Slots of the table and of graft.programs, see driver.h and extensions.h.
struct ProgramSlots {
  static graft_status program_compile(graft_device device, const char* source, size_t source_bytes,
                                      const char* options, graft_sink blob);
  static graft_status program_load(graft_device device, const void* blob, size_t bytes,
                                   graft_program* out_program);
  static graft_status program_unload(graft_program program);
  static graft_status program_build(graft_device device, const char* source, size_t source_bytes,
                                    const char* options, graft_program* out_program);
  static graft_status program_save(graft_program program, graft_sink blob);
  static graft_status toolchain_fingerprint(graft_device device, graft_sink text);
  static graft_status kernel_find(graft_device device, graft_program program, const char* name,
                                  graft_kernel* out);
};

}  // namespace graft::opencl

#endif  // GRAFT_DRIVERS_OPENCL_KERNEL_PROGRAM_H_
