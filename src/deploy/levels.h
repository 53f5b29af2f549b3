// src/deploy/levels.h: levels of x86-64 processors, for which a deployed model has kernels.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/driver/export.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// Their names, such as "x86-64-v3", the lowest first.
GRAFT_EXPORT std::vector<std::string> processor_levels();

// What a process does that compiles kernels for others: the host driver's devices are of one level
// (GRAFT_HOST_ISA), have oneDNN or not (GRAFT_HOST_LIBRARY), and compile for a level, the same or
// one below (GRAFT_HOST_TARGET), such as "v3".
struct LevelStep {
  std::string device, code;
  bool library;
};

// The processes by which a model has kernels for every processor from the lowest given level on:
// two for each kind of processor, with oneDNN and without, which compile for the best given level
// that the kind runs. A level that is not given has its own, too, for its processors ask for other
// kernels than those below.
// levels: of processor_levels(). Throws Error INVALID_ARGUMENT for one that does not exist.
GRAFT_EXPORT std::vector<LevelStep> level_steps(std::span<const std::string> levels);

// The level that the device compiles for, such as "x86-64-v3"; "" for itself. Throws Error
// INVALID_ARGUMENT if this process compiles for a level, and the device is not the host driver's.
std::string level_of_code(const Device& device);

}  // namespace graft::deploy
