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

// Levels of x86-64 go by "v2", "v3" and "v4"; "" is a processor below v2, or of another kind. All
// functions here are thread-safe.

// The best level that this processor runs.
const std::string& processor_level();

// The level that the devices are of: GRAFT_HOST_ISA's, GRAFT_HOST_TARGET's, this processor's.
const std::string& device_level();

// The level that kernels are compiled for; "" for this very processor.
const std::string& code_level();

// A level and those below it, best first.
std::vector<std::string> levels_up_to(const std::string& level);

// A level as messages have it: "x86-64-v3".
std::string full_name(const std::string& level);

// Why the settings give no devices; "" if they do.
std::string level_problem();

// The float32 numbers that a vector register of the devices holds.
uint32_t vector_width();

// The C compiler's options for code_level().
std::vector<std::string> target_options();

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_KERNEL_PROCESSOR_H_
