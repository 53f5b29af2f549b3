// src/torch/dispatch/tensor_iterator.h: from PyTorch's TensorIterator to the kernel library's
// views.
#pragma once

#include <ATen/TensorIterator.h>
#include <c10/core/Scalar.h>

#include <initializer_list>

#include "codegen/ops/op_table.h"
#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft::binding {

// Operand i of a built iterator as a view: outermost dimension first, strides in elements. An
// output that is reduced over has stride 0 there. REQUIRES: it lies on the device.
TensorView operand_view(const at::TensorIteratorBase& iterator, int i);

// Operand i, or its value when it is a CPU scalar (0-dim tensors may stay on the CPU).
Operand operand(const at::TensorIteratorBase& iterator, int i);

// A number in a dtype. Throws PyTorch's error for an integer dtype that cannot hold it; a floating
// one rounds it, to infinity if need be.
graft::Scalar scalar_of(const c10::Scalar& number, graft_dtype dtype);

// The dtype that elementwise kernels compute in: float32 for the half types.
graft_dtype compute_dtype(at::ScalarType type);

// The runtime's stream behind PyTorch's current stream of the iterator's device.
Stream& stream_of(const at::TensorIteratorBase& iterator);

// An elementwise iterator that keeps its tensors; the output gets the inputs' broadcast sizes.
template <class... Inputs>
at::TensorIterator iterator_of(const at::Tensor& output, const Inputs&... inputs) {
  at::TensorIteratorConfig config;
  config.add_owned_output(output);
  (config.add_owned_const_input(inputs), ...);
  return config.build();
}

// Runs a row of the op table over the iterator's operands, in the iterator's common dtype (the
// first input's where it has none). Scalars are converted to the dtype that is computed in.
void run_pointwise(const at::TensorIteratorBase& iterator, const Op& op,
                   std::initializer_list<c10::Scalar> scalars = {});

}  // namespace graft::binding
