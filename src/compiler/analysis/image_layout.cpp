// src/compiler/analysis/image_layout.cpp: images whose channels lie side by side.
#include "compiler/analysis/image_layout.h"

namespace graft::compiler {

std::vector<Size> channels_last_strides(const std::vector<Size>& s) {
  return {s[1] * s[2] * s[3], 1, s[3] * s[1], s[1]};
}

bool is_channels_last(const TensorType& type) {
  return type.sizes.size() == 4 && type.strides == channels_last_strides(type.sizes);
}

}  // namespace graft::compiler
