// src/kernels/pointwise/list.h: runs rows of the op table over lists of tensors, a launch for
// several.
#pragma once

#include <span>

#include "codegen/ops/op_table.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// An input of a row, or one of its scalars, for a whole list. Borrows what it is given.
struct ListOperand {
  enum class Kind : uint8_t {
    kTensors,   // a tensor for every output
    kElement,   // one element on the device, the same for all
    kElements,  // an element on the device for every output
    kNumber,    // a number, the same for all
    kNumbers    // a number for every output
  };

  Kind kind = Kind::kTensors;
  std::span<const TensorView> views;  // kTensors, kElement, kElements
  std::span<const Scalar> numbers;    // kNumber, kNumbers

  static ListOperand tensors(std::span<const TensorView> list) {
    return {Kind::kTensors, list, {}};
  }
  static ListOperand element(const TensorView& view) { return {Kind::kElement, {&view, 1}, {}}; }
  static ListOperand elements(std::span<const TensorView> list) {
    return {Kind::kElements, list, {}};
  }
  static ListOperand number(const Scalar& scalar) { return {Kind::kNumber, {}, {&scalar, 1}}; }
  static ListOperand each(std::span<const Scalar> list) { return {Kind::kNumbers, {}, list}; }
};

// outputs[k][i] = row of op (inputs of tensor k at i, ..., scalars of k), computed in compute as
// pointwise does. operands: the row's inputs, then its scalars, each of any kind. Tensors are flat
// views of rank 1; those of one k have one length (elements: 1), their dtypes are free and real. An
// output may be the same view as an input of the same k; no other memory that is written may
// overlap an operand. Throws Error: INVALID_ARGUMENT for a wrong number of operands or lists of
// unequal lengths, UNSUPPORTED (before anything is written, where each list has one dtype) when the
// row does not compute in that dtype, takes a condition or has several results, or when the device
// has no compiler.
GRAFT_EXPORT void pointwise_list(Stream& stream, const Op& op, graft_dtype compute,
                                 std::span<const TensorView> outputs,
                                 std::span<const ListOperand> operands);

}  // namespace graft
