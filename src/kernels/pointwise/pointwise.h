// src/kernels/pointwise/pointwise.h: runs rows of the op table over tensors.
#pragma once

#include <span>

#include "codegen/ops/op_table.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Whether the row has a formula for numbers of that dtype.
GRAFT_EXPORT bool computes_in(const Op& op, graft_dtype compute);

// outputs[k][i] = row of op (inputs[0][i], ..., scalars), computed in compute: float16 and bfloat16
// compute in float32; inputs of wider dtypes are rounded to them first, and results for outputs of
// other dtypes at the end. All views have the same rank and sizes (broadcast inputs have stride 0);
// their dtypes are free. Strides of inputs may be negative. An output may be the same view as an
// input; other overlaps are undefined. Scalars are converted to the dtype that is computed in.
// Inputs that are Scalars stand for a tensor of one element. At most 8 outputs and inputs that are
// views together. Throws Error: INVALID_ARGUMENT for a wrong number of operands, UNSUPPORTED when
// the row does not compute in that dtype or the device has no compiler, COMPILE_ERROR with the
// compiler's log.
GRAFT_EXPORT void pointwise(Stream& stream, const Op& op, graft_dtype compute,
                            std::span<const TensorView> outputs, std::span<const Operand> inputs,
                            std::span<const Scalar> scalars = {});

}  // namespace graft
