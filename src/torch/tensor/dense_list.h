// src/torch/tensor/dense_list.h: tensors of an elementwise list operator as flat views in one
// order.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "torch/tensor/view.h"

namespace graft::binding {

// All elements of a tensor that is dense in any order of its dimensions, as rank 1. Shares memory.
TensorView flat_view(const at::Tensor& tensor);

// Gathers the flat views of tensors that are worked on element by element. Where the members of one
// add() are dense in one common order they are taken as they are; otherwise row-major copies stand
// for them, and finish() copies back those that were written. Owns the copies; use once, on one
// thread, with finish() after the kernels that write were queued.
class DenseList {
 public:
  struct Member {
    const at::Tensor& tensor;
    TensorView* view;  // out
    bool written;
  };

  // Throws RuntimeError when the members differ in size, dtype or device; name is the operator's.
  void add(const char* name, const std::vector<Member>& members);

  // The tensor as float32 on its device, for as long as the list lives.
  const at::Tensor& keep(const at::Tensor& tensor);

  void finish();

 private:
  struct Copy {
    at::Tensor original, copy;
  };
  std::vector<Copy> copies_;
  std::vector<at::Tensor> kept_;
};

}  // namespace graft::binding
