// src/deploy/levels.cpp: levels of x86-64 processors, for which a deployed model has kernels.
#include "deploy/levels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "runtime/driver/error.h"

namespace graft::deploy {
namespace {

constexpr const char* kFamily = "x86-64-";
constexpr const char* kLevels[] = {"v2", "v3", "v4"};  // lowest first

std::string name_of(const char* level) { return std::string(kFamily) + level; }

void check(const std::string& level) {
  const std::vector<std::string> known = processor_levels();
  if (std::ranges::find(known, level) != known.end()) return;
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("there is no level of processors '{}': expected one of {}", level,
                          fmt::join(known, ", ")));
}

}  // namespace

std::vector<std::string> processor_levels() {
  std::vector<std::string> names;
  std::ranges::transform(kLevels, std::back_inserter(names), name_of);
  return names;
}

std::vector<LevelStep> level_steps(std::span<const std::string> levels) {
  std::ranges::for_each(levels, check);
  std::vector<LevelStep> steps;
  std::string code;
  for (const char* const one : kLevels) {
    if (std::ranges::find(levels, name_of(one)) != levels.end()) code = one;
    if (code.empty()) continue;
    for (const bool library : {true, false}) steps.push_back({one, code, library});
  }
  return steps;
}

std::string level_of_code(const Device& device) {
  const char* const target = std::getenv("GRAFT_HOST_TARGET");
  if (target == nullptr || *target == '\0') return "";
  if (device.driver().name() == "host") return name_of(target);
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("GRAFT_HOST_TARGET is {}, but {} is of the driver '{}': levels of "
                          "processors are the host driver's; choose its device by "
                          "GRAFT_DEVICES=host",
                          target, device.label(), device.driver().name()));
}

}  // namespace graft::deploy
