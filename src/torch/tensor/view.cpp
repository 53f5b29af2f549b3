// src/torch/tensor/view.cpp: tensors, dtypes and numbers of PyTorch as the kernel library takes
// them.
#include "torch/tensor/view.h"

#include <ATen/Dispatch.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include "runtime/driver/error.h"
#include "runtime/driver/open_device.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/memory.h"

namespace graft::binding {

namespace {

constexpr at::ScalarType kTypes[] = {
    at::kBool, at::kByte,     at::kChar,  at::kShort,  at::kInt,          at::kLong,
    at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble};
constexpr int8_t kNoDtype = -1;

constexpr auto kDtypes = [] {
  std::array<int8_t, size_t(at::ScalarType::NumOptions)> dtypes{};
  dtypes.fill(kNoDtype);
  for (size_t i = 0; i < std::size(kTypes); ++i) dtypes[size_t(kTypes[i])] = int8_t(i);
  return dtypes;
}();

}  // namespace

graft_dtype to_graft(at::ScalarType type) {
  const int8_t dtype = size_t(type) < kDtypes.size() ? kDtypes[size_t(type)] : kNoDtype;
  if (__builtin_expect(dtype != kNoDtype, 1)) return static_cast<graft_dtype>(dtype);
  throw Error(GRAFT_UNSUPPORTED,
              std::string("no kernel for the dtype torch.") + c10::toString(type));
}

at::ScalarType to_torch(graft_dtype dtype) { return kTypes[dtype]; }

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

void refuse_lost_memory(const at::TensorBase& tensor) {
  const Block* const block = block_of(tensor.storage().data_ptr());
  if (block != nullptr) block->stream->device().refuse_unusable();
}

TensorView view_as(const at::TensorBase& tensor, graft_dtype dtype) {
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  if (sizes.size() > kMaxRank) {
    throw Error(GRAFT_UNSUPPORTED, "no kernel for " + std::to_string(sizes.size()) +
                                       " dimensions, expected at most " + std::to_string(kMaxRank));
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
