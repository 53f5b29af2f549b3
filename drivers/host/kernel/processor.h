// drivers/host/kernel/processor.h: what differs between kinds of processors.
#ifndef GRAFT_DRIVERS_HOST_KERNEL_PROCESSOR_H_
#define GRAFT_DRIVERS_HOST_KERNEL_PROCESSOR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace graft::host {

// Tells the core that its thread waits in a loop.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The float32 numbers that a vector register holds. Thread-safe.
uint32_t vector_width();

// The levels of the kernel pack that this processor runs, best first: "v4", "v3", "v2" on x86-64,
// none elsewhere.
std::vector<std::string> pack_levels();

// The C compiler's options for this processor.
std::vector<std::string> target_options();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_PROCESSOR_H_
