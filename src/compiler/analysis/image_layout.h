// src/compiler/analysis/image_layout.h: images whose channels lie side by side.
#pragma once

#include <vector>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// REQUIRES: four sizes.
std::vector<Size> channels_last_strides(const std::vector<Size>& sizes);

// Of four dimensions, with exactly these strides.
GRAFT_EXPORT bool is_channels_last(const TensorType& type);

}  // namespace graft::compiler
