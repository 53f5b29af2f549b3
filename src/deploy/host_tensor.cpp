// src/deploy/host_tensor.cpp: tensors in host memory: places of elements, and words for messages.
#include "deploy/host_tensor.h"

#include <fmt/format.h>

#include <cstring>

#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft::deploy {
namespace {

void copy_from(int dim, char* to, const char* from, const TensorView& wanted,
               const TensorView& given) {
  const uint64_t bytes = size_of(wanted.dtype);
  const int64_t to_step = wanted.strides[dim] * static_cast<int64_t>(bytes);
  const int64_t from_step = given.strides[dim] * static_cast<int64_t>(bytes);
  const int64_t count = wanted.sizes[dim];
  const bool last = dim == wanted.rank - 1;
  if (last && wanted.strides[dim] == 1 && given.strides[dim] == 1) {
    std::memcpy(to, from, static_cast<uint64_t>(count) * bytes);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (last)
      std::memcpy(to + i * to_step, from + i * from_step, bytes);
    else
      copy_from(dim + 1, to + i * to_step, from + i * from_step, wanted, given);
  }
}

}  // namespace

void copy_elements(const TensorView& to, const TensorView& from) {
  if (to.count() == 0) return;
  auto* const into = reinterpret_cast<char*>(to.address);
  const auto* const out_of = reinterpret_cast<const char*>(from.address);
  if (to.contiguous() && from.contiguous()) {
    std::memcpy(into, out_of, static_cast<uint64_t>(to.count()) * size_of(to.dtype));
    return;
  }
  copy_from(0, into, out_of, to, from);
}

TensorView row_major(const TensorView& view) {
  TensorView plain = view;
  make_contiguous(plain);
  return plain;
}

std::string told(graft_dtype dtype, const int64_t* sizes, size_t rank) {
  std::string text = fmt::format("{}[", name_of(dtype));
  for (size_t d = 0; d < rank; ++d) {
    text += d == 0 ? "" : ", ";
    text += sizes[d] < 0 ? "?" : std::to_string(sizes[d]);
  }
  return text + "]";
}

}  // namespace graft::deploy
