// driver/kernel.h: the slots of programs and kernels, and what stands behind their handles.
#ifndef ACME_DRIVER_KERNEL_H_
#define ACME_DRIVER_KERNEL_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "chip/compiler.h"
#include "graft/driver.h"

struct graft_kernel_s {
  chip_kernel entry;
};

struct graft_program_s {
  struct Unload {
    void operator()(chip_program* self) const { chip_program_unload(self); }
  };
  std::unique_ptr<chip_program, Unload> program;
  std::mutex mutex;
  std::map<std::string, graft_kernel_s> kernels;  // guarded by mutex
};

namespace acme_driver {

// program.cpp
struct ProgramSlots {
  static graft_status program_compile(graft_device device, const char* source, size_t source_bytes,
                                      const char* options, graft_sink blob);
  static graft_status program_load(graft_device device, const void* blob, size_t bytes,
                                   graft_program* out_program);
  static graft_status program_unload(graft_program program);
  static graft_status toolchain_fingerprint(graft_device device, graft_sink text);
};

// kernel.cpp
struct KernelSlots {
  static graft_status kernel_find(graft_device device, graft_program program, const char* name,
                                  graft_kernel* out);
  static graft_status kernel_launch(graft_stream stream, graft_kernel kernel,
                                    const graft_launch* launch);
};

}  // namespace acme_driver

#endif  // ACME_DRIVER_KERNEL_H_
