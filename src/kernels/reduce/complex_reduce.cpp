// src/kernels/reduce/complex_reduce.cpp: reductions of complex numbers.
#include "kernels/reduce/complex_reduce.h"

#include <string>

#include "codegen/ops/op_table.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/move/staging.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/complex_parts.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// The reduction of what a row of the op table makes of each element.
void reduce_mapped(Stream& stream, Reduction reduction, const TensorView& output,
                   const TensorView& input, double exponent, const char* row, graft_dtype dtype) {
  const ScratchTensor mapped(stream, input, dtype);
  const Operand inputs[] = {input};
  pointwise(stream, *find_op(row), input.dtype, {&mapped.view(), 1}, inputs);
  reduce(stream, reduction, output, mapped.view(), exponent);
}

// The front half of x along dim becomes its product with the back half.
void halve(Stream& stream, TensorView* x, int dim) {
  const int64_t size = x->sizes[dim], front = (size + 1) / 2, pairs = size - front;
  const TensorView left = part(*x, dim, 0, pairs);
  const Operand factors[] = {left, part(*x, dim, front, pairs)};
  pointwise(stream, *find_op("mul"), x->dtype, {&left, 1}, factors);
  x->sizes[dim] = front;
}

void multiply_all(Stream& stream, const TensorView& output, const TensorView& input) {
  TensorView kept = output;
  for (int d = 0; d < input.rank; ++d) {
    if (input.sizes[d] != 1 && output.strides[d] == 0) kept.sizes[d] = 1;
  }
  if (input.count() == 0) {
    if (kept.count() > 0) fill(stream, kept, Scalar::of(output.dtype, 1.0));
    return;
  }
  const StagedInput all(stream, input, true);
  TensorView rest = all.view();
  for (int d = 0; d < input.rank; ++d) {
    if (input.sizes[d] == 1 || output.strides[d] != 0) continue;
    while (rest.sizes[d] > 1) halve(stream, &rest, d);
  }
  copy(stream, kept, rest);
}

void by_parts(Stream& stream, Reduction reduction, const TensorView& output,
              const TensorView& input) {
  for (int part = 0; part < 2; ++part) {
    reduce(stream, reduction, complex_part(output, part), complex_part(input, part));
  }
}

}  // namespace

void complex_reduce(Stream& stream, Reduction reduction, const TensorView& output,
                    const TensorView& input, double exponent) {
  if (is_complex(output.dtype) && input.dtype != output.dtype) {
    const StagedInput converted(stream, input, false, output.dtype);
    return complex_reduce(stream, reduction, output, converted.view(), exponent);
  }
  switch (reduction) {
    case Reduction::kSum:
    case Reduction::kMean:
      if (is_complex(output.dtype)) return by_parts(stream, reduction, output, input);
      break;
    case Reduction::kProd:
      if (is_complex(output.dtype)) return multiply_all(stream, output, input);
      break;
    case Reduction::kAny:
    case Reduction::kAll:
    case Reduction::kCountNonzero:
    case Reduction::kNorm0:
      return reduce_mapped(stream, reduction, output, input, exponent, "to_bool", GRAFT_BOOL);
    case Reduction::kNorm1:
    case Reduction::kNorm2:
    case Reduction::kNormInf:
    case Reduction::kNormNegInf:
    case Reduction::kNormP:
      return reduce_mapped(stream, reduction, output, input, exponent, "abs", part_of(input.dtype));
    default:
      break;
  }
  throw Error(GRAFT_UNSUPPORTED, std::string("this reduction has no kernel from ") +
                                     name_of(input.dtype) + " to " + name_of(output.dtype));
}

}  // namespace graft
