// src/torch/distributed/group_options.h: what a group was made with.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "torch/version/c10d.h"

namespace graft::binding {

// Shared by the group, PyTorch and Python; changed only between collectives.
struct GroupOptions final : c10d::Backend::Options {
  GroupOptions(std::string name, std::chrono::milliseconds timeout, std::string chosen_engine)
      : Options(std::move(name), timeout), engine(std::move(chosen_engine)) {}

  // "native": the driver's collectives; "staged": Gloo on host memory; "auto": native where every
  // rank's driver has them and all ranks are on one machine. All ranks give the same. "mirrored":
  // this rank is the only one, and the host driver simulates the others: nobody is asked.
  std::string engine;

  bool mirrored() const { return engine == "mirrored"; }
};

}  // namespace graft::binding
