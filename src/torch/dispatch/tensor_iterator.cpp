// src/torch/dispatch/tensor_iterator.cpp: from PyTorch's TensorIterator to the kernel library's
// views.
#include "torch/dispatch/tensor_iterator.h"

#include <c10/util/SmallVector.h>

#include <bit>
#include <cstring>

#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

void fill_view(const at::TensorIteratorBase& iterator, int i, TensorView& view) {
  const int rank = iterator.ndim();
  if (rank > kMaxRank) throw Error(GRAFT_UNSUPPORTED, "no kernel for more than 16 dimensions");
  const at::IntArrayRef shape = iterator.shape(), strides = iterator.strides(i);
  if (memory_was_lost.load(std::memory_order_relaxed)) [[unlikely]]
    refuse_lost_memory(iterator.tensor_base(i));
  view.address = reinterpret_cast<graft_address>(iterator.data_ptr(i));
  if (view.address == 0 && iterator.numel() != 0) [[unlikely]] {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for a tensor without memory");
  }
  view.dtype = to_graft(iterator.dtype(i));
  view.rank = rank;
  const int shift = std::countr_zero(size_of(view.dtype));  // every size is a power of two
  // PyTorch lists the innermost dimension first.
  for (int d = 0; d < rank; ++d) {
    view.sizes[rank - 1 - d] = shape[d];
    view.strides[rank - 1 - d] = strides[d] >> shift;
  }
}

graft::Scalar cpu_scalar(const at::TensorIteratorBase& iterator, int i) {
  graft::Scalar scalar;
  scalar.dtype = to_graft(iterator.dtype(i));
  const auto* data = static_cast<const char*>(iterator.data_ptr(i));
  const size_t bytes = size_of(scalar.dtype);
  if (!is_complex(scalar.dtype)) {
    std::memcpy(scalar.bits, data, bytes);
  } else {
    std::memcpy(&scalar.bits[0], data, bytes / 2);
    std::memcpy(&scalar.bits[1], data + bytes / 2, bytes / 2);
  }
  return scalar;
}

}  // namespace

graft::Scalar scalar_of(const c10::Scalar& number, graft_dtype dtype) {
  if (!is_floating(dtype) && !is_complex(dtype)) return to_graft(number, to_torch(dtype));
  if (is_real_number(number, dtype)) return graft::Scalar::of(dtype, number.toDouble());
  if (!number.isComplex()) return graft::Scalar::of_integer(dtype, number.toLong());
  const auto value = number.toComplexDouble();
  graft::Scalar scalar;
  scalar.dtype = GRAFT_COMPLEX128;
  const double parts[2] = {value.real(), value.imag()};
  std::memcpy(scalar.bits, parts, sizeof(parts));
  return scalar.to(dtype);
}

graft_dtype compute_dtype(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? GRAFT_FLOAT32 : to_graft(type);
}

TensorView operand_view(const at::TensorIteratorBase& iterator, int i) {
  TensorView view;
  fill_view(iterator, i, view);
  return view;
}

Operand operand(const at::TensorIteratorBase& iterator, int i) {
  if (iterator.is_cpu_scalar(i)) return cpu_scalar(iterator, i);
  return operand_view(iterator, i);
}

Stream& stream_of(const at::TensorIteratorBase& iterator) {
  return current_stream(iterator.device(0).index());
}

namespace {

// ATen's products and quotients of half types take a single number as it is; everything else rounds
// it to the dtype of the others first, as it does with tensors.
bool keeps_numbers(const Op& op) {
  const std::string_view name(op.name);
  return name == "mul" || name.starts_with("div");
}

// Whether operand i is of a wider dtype than the half type that its operator computes in, and
// rounded to it as it is read.
bool is_narrowed(const at::TensorIteratorBase& iterator, const Op& op, int i) {
  const bool condition = op.conditions >> (i - iterator.noutputs()) & 1;
  if (condition || iterator.is_cpu_scalar(i) || iterator.element_size(i) < 2) return false;
  return iterator.dtype(i) != iterator.common_dtype() &&
         !(keeps_numbers(op) && iterator.tensor(i).numel() == 1);
}

// The dtype that results are rounded to on their way to the outputs, where out= may be of another
// one, and operands on theirs to the formula.
graft_dtype result_dtype(const at::TensorIteratorBase& iterator, const Op& op,
                         at::ScalarType common) {
  if (!at::isReducedFloatingType(common)) return to_graft(common);
  for (int i = 0; i < iterator.noutputs(); ++i) {
    if (iterator.dtype(i) != common) return to_graft(common);
  }
  if (!iterator.maybe_common_dtype()) return GRAFT_FLOAT32;
  for (int i = iterator.noutputs(); i < iterator.ntensors(); ++i) {
    if (is_narrowed(iterator, op, i)) return to_graft(common);
  }
  return GRAFT_FLOAT32;
}

}  // namespace

void run_pointwise(const at::TensorIteratorBase& iterator, const Op& op,
                   std::initializer_list<c10::Scalar> scalars) {
  // Conditions and masks take no part in the dtype that is computed in.
  const at::ScalarType common = op.conditions != 0
                                    ? iterator.dtype(0)
                                    : iterator.maybe_common_dtype().value_or(iterator.dtype(0));
  const graft_dtype compute = compute_dtype(common), result = result_dtype(iterator, op, common);
  const bool rounds_numbers = at::isReducedFloatingType(common) && !keeps_numbers(op);
  const graft_dtype taken = rounds_numbers ? to_graft(common) : compute;
  if ((op.types & kNoHalfTypes) != 0) require(!at::isReducedFloatingType(common));
  if (iterator.numel() == 0) return require(computes_in(op, compute));
  const int output_count = iterator.noutputs(), input_count = iterator.ninputs();
  if (output_count + input_count > kMaxOperands) {
    throw Error(GRAFT_UNSUPPORTED, "no elementwise kernel for more than 8 tensors");
  }
  TensorView outputs[kMaxOperands];
  Operand inputs[kMaxOperands];
  for (int i = 0; i < output_count; ++i) fill_view(iterator, i, outputs[i]);
  for (int i = 0; i < input_count; ++i) {
    if (iterator.is_cpu_scalar(output_count + i)) {
      const graft::Scalar scalar = cpu_scalar(iterator, output_count + i);
      inputs[i] = op.conditions >> i & 1 ? scalar : scalar.to(taken).to(compute);
    } else {
      fill_view(iterator, output_count + i, inputs[i].view);
    }
  }
  c10::SmallVector<graft::Scalar, 4> numbers;
  for (const c10::Scalar& scalar : scalars) numbers.push_back(scalar_of(scalar, compute));
  pointwise(stream_of(iterator), op, result, {outputs, static_cast<size_t>(output_count)},
            {inputs, static_cast<size_t>(input_count)}, {numbers.data(), numbers.size()});
}

}  // namespace graft::binding
