// src/kernels/pointwise/row_call.h: a row of the op table as a call of the vendor's own kernel.
#pragma once

#include <span>

#include "kernels/operation/offer.h"
#include "kernels/tensor/view.h"

namespace graft {

// The arguments of pointwise(), with as few dimensions as the views allow. An input that is a
// number is a missing tensor; numbers of inputs stand before the scalars, all of the dtype that is
// computed in (float32 for the half types).
void describe_row(VendorCall& call, graft_dtype compute, std::span<const TensorView> outputs,
                  std::span<const Operand> inputs, std::span<const Scalar> scalars);

// Runs the row by the vendor's kernel; false where it has none, and nothing is done. REQUIRES: the
// device offers operations(), and the call is checked.
bool offer_row(Stream& stream, const Op& op, graft_dtype compute,
               std::span<const TensorView> outputs, std::span<const Operand> inputs,
               std::span<const Scalar> scalars);

}  // namespace graft
