// src/kernels/linalg/matrix_batch.cpp: a batch of matrices as the kernels of linear algebra take
// it.
#include "kernels/linalg/matrix_batch.h"

#include <utility>

#include "runtime/driver/error.h"

namespace graft {

void require_matrices(const TensorView& view, const char* what) {
  if (view.rank != 3) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                std::string(what) + ": expected views [batch, rows, columns], got a rank of " +
                    std::to_string(view.rank));
  }
  const graft_dtype part = part_of(view.dtype);
  if (part != GRAFT_FLOAT32 && part != GRAFT_FLOAT64) {
    throw Error(GRAFT_UNSUPPORTED,
                std::string(what) + ": no kernel for matrices of " + name_of(view.dtype));
  }
}

TensorView transposed(const TensorView& matrices) {
  TensorView view = matrices;
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  return view;
}

std::string batch_key(const char* what, const TensorView& matrices) {
  return std::string(what) + "_" + name_of(matrices.dtype) +
         (has_dense_rows(matrices) ? "_dense" : "");
}

void append_strides(Arguments& arguments, const TensorView& matrices) {
  for (int i = 0; i < 3; ++i) arguments.index(matrices.strides[i]);
}

void append_updated(Arguments& arguments, const TensorView& matrices) {
  arguments.update(matrices);
  append_strides(arguments, matrices);
}

}  // namespace graft
