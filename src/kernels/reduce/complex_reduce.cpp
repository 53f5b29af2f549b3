// src/kernels/reduce/complex_reduce.cpp: reductions of complex numbers.
#include "kernels/reduce/complex_reduce.h"

#include <string>

#include "codegen/ops/op_table.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/move/fill.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/complex_parts.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// Contiguous memory for the elements of a view in a dtype.
struct Scratch {
  Workspace memory;
  TensorView view;
  Scratch(Stream& stream, const TensorView& like, graft_dtype dtype)
      : memory(stream, static_cast<uint64_t>(like.count()) * size_of(dtype)),
        view(contiguous_like(like, memory.address(), dtype)) {}
};

// The reduction of what a row of the op table makes of each element.
void reduce_mapped(Stream& stream, Reduction reduction, const TensorView& output,
                   const TensorView& input, double exponent, const char* row, graft_dtype dtype) {
  const Scratch mapped(stream, input, dtype);
  const Operand inputs[] = {input};
  pointwise(stream, *find_op(row), input.dtype, {&mapped.view, 1}, inputs);
  reduce(stream, reduction, output, mapped.view, exponent);
}

TensorView narrowed(const TensorView& view, int dim, int64_t start, int64_t size) {
  TensorView part = view;
  part.address += static_cast<graft_address>(start * view.strides[dim]) * size_of(view.dtype);
  part.sizes[dim] = size;
  return part;
}

// The front half of x along dim becomes its product with the back half.
void halve(Stream& stream, TensorView* x, int dim) {
  const int64_t size = x->sizes[dim], front = (size + 1) / 2, pairs = size - front;
  const TensorView left = narrowed(*x, dim, 0, pairs);
  const Operand factors[] = {left, narrowed(*x, dim, front, pairs)};
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
  const Scratch all(stream, input, input.dtype);
  copy(stream, all.view, input);
  TensorView rest = all.view;
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
    const Scratch converted(stream, input, output.dtype);
    copy(stream, converted.view, input);
    return complex_reduce(stream, reduction, output, converted.view, exponent);
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
