// drivers/host/kernel/processor.cpp: what differs between kinds of processors.
#include "processor.h"

#include <algorithm>

#include "settings.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace graft::host {
namespace {

constexpr const char* kLevels[] = {"v4", "v3", "v2"};  // best first
[[maybe_unused]] constexpr char kWide[] = "-mprefer-vector-width=512";

#if defined(__x86_64__)

// What v3 has beside AVX2, FMA, BMI1 and BMI2, and clang has no name for.
bool has_small_parts_of_v3() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kMovbe = 1u << 22, kF16c = 1u << 29, kLzcnt = 1u << 5;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kMovbe) == 0 || (c & kF16c) == 0) return false;
  return __get_cpuid(0x80000001, &a, &b, &c, &d) != 0 && (c & kLzcnt) != 0;
}

// Feature by feature: clang knows no names of levels.
std::string find_level() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) return "";
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
      !has_small_parts_of_v3()) {
    return "v2";
  }
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? "v4" : "v3";
}

std::vector<std::string> options_of_this_processor() { return {"-march=native", kWide}; }

#else

std::string find_level() { return ""; }

// A cross compiler knows no "native", and under emulation the compiler is one.
std::vector<std::string> options_of_this_processor() {
#if defined(__aarch64__)
  const unsigned long has = getauxval(AT_HWCAP);
  if ((has & HWCAP_FPHP) != 0 && (has & HWCAP_ASIMDHP) != 0 && (has & HWCAP_ATOMICS) != 0) {
    return {"-march=armv8.2-a+fp16"};
  }
#endif
  return {};
}

#endif

bool is_level(const std::string& text) {
  return std::find(std::begin(kLevels), std::end(kLevels), text) != std::end(kLevels);
}

bool is_above(const std::string& level, const std::string& other) {
  const std::vector<std::string> reached = levels_up_to(other);
  return !level.empty() && std::find(reached.begin(), reached.end(), level) == reached.end();
}

}  // namespace

const std::string& processor_level() {
  static const std::string* level = new std::string(find_level());
  return *level;
}

const std::string& device_level() {
  const Settings& s = settings();
  if (is_level(s.isa)) return s.isa;
  return is_level(s.target) ? s.target : processor_level();
}

const std::string& code_level() {
  static const std::string* own = new std::string();
  const Settings& s = settings();
  if (!s.target.empty()) return s.target;
  return is_level(s.isa) ? s.isa : *own;
}

std::vector<std::string> levels_up_to(const std::string& level) {
  const auto* first = std::find(std::begin(kLevels), std::end(kLevels), level);
  return {first, std::end(kLevels)};
}

std::string full_name(const std::string& level) { return "x86-64-" + level; }

std::string level_problem() {
  const Settings& s = settings();
  if (!s.isa.empty() && s.isa != kNoPack && !is_level(s.isa)) {
    return "GRAFT_HOST_ISA is '" + s.isa + "', expected v2, v3, v4 or " + kNoPack;
  }
  if (!s.target.empty() && !is_level(s.target)) {
    return "GRAFT_HOST_TARGET is '" + s.target + "', expected v2, v3 or v4";
  }
  if (is_above(s.target, device_level())) {
    return "GRAFT_HOST_TARGET is " + s.target + ", above GRAFT_HOST_ISA's " + device_level() +
           ": kernels for it run on no such device";
  }
  if (s.target.empty() && is_above(device_level(), processor_level())) {
    return "GRAFT_HOST_ISA is " + s.isa + ", but this processor runs " +
           (processor_level().empty() ? "no level from x86-64-v2 on"
                                      : full_name(processor_level()) + " at most") +
           ": unset it, or set GRAFT_HOST_TARGET, which runs no kernel";
  }
  return "";
}

uint32_t vector_width() { return device_level() == "v4" ? 16 : device_level() == "v3" ? 8 : 4; }

std::vector<std::string> target_options() {
  const std::string& level = code_level();
  if (level.empty()) return options_of_this_processor();
  // As the pack; tuning for no processor in particular was slower.
  return {"-march=" + full_name(level), "-mtune=skylake-avx512", kWide};
}

}  // namespace graft::host
