// drivers/host/kernel/processor.cpp: what differs between kinds of processors.
#include "processor.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace graft::host {

#if defined(__x86_64__)

uint32_t vector_width() {
  return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
}

std::vector<std::string> pack_levels() {
  __builtin_cpu_init();
  // Feature by feature: clang knows no names of levels.
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  std::vector<std::string> levels;
  if (v4) levels.push_back("v4");
  if (v3) levels.push_back("v3");
  if (v2) levels.push_back("v2");
  return levels;
}

std::vector<std::string> target_options() { return {"-march=native", "-mprefer-vector-width=512"}; }

#else

uint32_t vector_width() { return 4; }

std::vector<std::string> pack_levels() { return {}; }

// A cross compiler knows no "native", and under emulation the compiler is one.
std::vector<std::string> target_options() {
#if defined(__aarch64__)
  const unsigned long has = getauxval(AT_HWCAP);
  if ((has & HWCAP_FPHP) != 0 && (has & HWCAP_ASIMDHP) != 0 && (has & HWCAP_ATOMICS) != 0) {
    return {"-march=armv8.2-a+fp16"};
  }
#endif
  return {};
}

#endif

}  // namespace graft::host
