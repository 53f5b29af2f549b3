// src/torch/offload/checksum.h: the bytes of tensors in host memory as numbers.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace graft::binding {

// A number of 64 bits for each tensor (XXH3 of its elements' bytes, in parts), in their order.
// Other elements give another number but for one case in 2^64; sizes and strides do not count. Uses
// as many threads as PyTorch's operators and takes as long as reading the bytes. Tensors with gaps
// or repeated elements are copied first. REQUIRES: dense tensors on the CPU. Throws nothing of its
// own.
std::vector<uint64_t> checksums(const std::vector<at::Tensor>& tensors);

}  // namespace graft::binding
