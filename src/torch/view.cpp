// src/torch/view.cpp: tensors, dtypes and numbers of PyTorch as the kernel library takes them.
#include "torch/view.h"

#include <ATen/Dispatch.h>

#include <bit>
#include <string>

#include "runtime/error.h"
#include "torch/lazy_clone.h"

namespace graft::binding {

graft_dtype to_graft(at::ScalarType type) {
  switch (type) {
#define GRAFT_CASE(theirs, ours) \
  case at::ScalarType::theirs:   \
    return GRAFT_##ours;
    GRAFT_CASE(Bool, BOOL)
    GRAFT_CASE(Byte, UINT8)
    GRAFT_CASE(Char, INT8)
    GRAFT_CASE(Short, INT16)
    GRAFT_CASE(Int, INT32)
    GRAFT_CASE(Long, INT64)
    GRAFT_CASE(Half, FLOAT16)
    GRAFT_CASE(BFloat16, BFLOAT16)
    GRAFT_CASE(Float, FLOAT32)
    GRAFT_CASE(Double, FLOAT64)
    GRAFT_CASE(ComplexFloat, COMPLEX64)
    GRAFT_CASE(ComplexDouble, COMPLEX128)
#undef GRAFT_CASE
    default:
      throw Error(GRAFT_UNSUPPORTED,
                  std::string("no kernel for the dtype torch.") + c10::toString(type));
  }
}

at::ScalarType to_torch(graft_dtype dtype) {
  constexpr at::ScalarType kTypes[] = {
      at::kBool, at::kByte,     at::kChar,  at::kShort,  at::kInt,          at::kLong,
      at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble};
  return kTypes[dtype];
}

bool is_real_number(const c10::Scalar& number, graft_dtype dtype) {
  if (number.type() != at::kUInt64) return number.isFloatingPoint();
  return is_floating(dtype) || is_complex(dtype) || dtype == GRAFT_BOOL;
}

void require_fit(const c10::Scalar& number, at::ScalarType type) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(at::kHalf, at::kBFloat16, at::kBool, at::kComplexHalf,
                                         type, "number",
                                         [&] { static_cast<void>(number.to<scalar_t>()); });
}

Scalar to_graft(const c10::Scalar& number, at::ScalarType type) {
  const graft_dtype dtype = to_graft(type);
  require_fit(number, type);
  if (is_complex(dtype)) {
    const auto value = number.toComplexDouble();
    Scalar pair = Scalar::of(GRAFT_COMPLEX128, value.real());
    pair.bits[1] = std::bit_cast<uint64_t>(value.imag());
    return pair.to(dtype);
  }
  if (number.isComplex()) return Scalar::of(dtype, number.toComplexDouble().real());
  if (is_real_number(number, dtype)) return Scalar::of(dtype, number.toDouble());
  return Scalar::of_integer(dtype, number.toLong());
}

TensorView view_as(const at::TensorBase& tensor, graft_dtype dtype) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  if (sizes.size() > kMaxRank) {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for " + std::to_string(sizes.size()) +
                                       " dimensions, at most " + std::to_string(kMaxRank));
  }
  if (lazy_clones_live()) [[unlikely]]
    own_for_kernel(tensor);
  TensorView view;
  view.address = address_of(tensor);
  if (view.address == 0 && tensor.numel() != 0) [[unlikely]] {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for a tensor without memory");
  }
  view.dtype = dtype;
  view.rank = static_cast<int>(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    view.sizes[i] = sizes[i];
    view.strides[i] = strides[i];
  }
  return view;
}

TensorView view_of(const at::TensorBase& tensor) {
  return view_as(tensor, to_graft(tensor.scalar_type()));
}

}  // namespace graft::binding
