// src/kernels/operation/offer.cpp: offers calls of operators to the vendor's own kernels.
#include "kernels/operation/offer.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "kernels/launch/workspace.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

constexpr int kMostArguments = 128;  // of the arguments' capacity: room for the workspace

}  // namespace

void VendorCall::word(uint64_t value) {
  if (key_.size == OperationKey::kWords) {
    key_.fits = false;
    return;
  }
  key_.words[key_.size++] = value;
}

template <class Dimension>
VendorCall& VendorCall::describe(const TensorView& of, int rank, const Dimension& dimension,
                                 bool written) {
  const auto words = static_cast<uint32_t>(1 + 2 * rank);
  key_.fits = key_.fits && rank <= GRAFT_MAX_RANK && key_.tensors < kMostArguments &&
              key_.size + words <= OperationKey::kWords;
  if (!key_.fits) return *this;
  uint64_t* const sizes = &key_.words[key_.size + 1];
  sizes[-1] = static_cast<uint64_t>(of.dtype) | static_cast<uint64_t>(rank) << 32;
  int64_t last = 0;  // the last element in memory
  for (int d = 0; d < rank; ++d) {
    const auto [size, stride] = dimension(d);
    sizes[d] = static_cast<uint64_t>(size), sizes[rank + d] = static_cast<uint64_t>(stride);
    key_.fits = key_.fits && size != 0;
    if (stride > 0) last += (size - 1) * stride;
  }
  key_.size += words, ++key_.tensors, key_.written += written ? 1 : 0;
  arguments_.address(of.address, static_cast<uint64_t>(last + 1) * size_of(of.dtype),
                     written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ);
  return *this;
}

VendorCall& VendorCall::tensor(const TensorView* view, bool written) {
  if (view == nullptr) return missing(written);
  const auto dimension = [&](int d) { return std::pair(view->sizes[d], view->strides[d]); };
  return describe(*view, view->rank, dimension, written);
}

VendorCall& VendorCall::tensor(const Axes& axes, int operand, const TensorView& of, bool written) {
  const auto dimension = [&](int d) {
    return std::pair(axes.at[d].size, axes.at[d].strides[operand]);
  };
  return describe(of, axes.rank, dimension, written);
}

VendorCall& VendorCall::missing(bool written) {
  if (key_.tensors >= kMostArguments) refuse();
  word(GRAFT_NO_TENSOR);
  if (!key_.fits) return *this;
  arguments_.address(0, 0, written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ);
  ++key_.tensors, key_.written += written ? 1 : 0;
  return *this;
}

VendorCall& VendorCall::read(std::span<const TensorView> views) {
  for (const TensorView& view : views) tensor(&view, false);
  return *this;
}

VendorCall& VendorCall::integers(std::span<const int64_t> values) {
  for (const int64_t value : values) word(static_cast<uint64_t>(value));
  key_.integers += static_cast<uint32_t>(values.size());
  return *this;
}

VendorCall& VendorCall::integers(std::span<const int> values) {
  for (const int value : values) integers({value});
  return *this;
}

VendorCall& VendorCall::numbers(std::span<const double> values) {
  for (const double value : values) word(std::bit_cast<uint64_t>(value));
  key_.numbers += static_cast<uint32_t>(values.size());
  return *this;
}

VendorCall& VendorCall::scalar(const Scalar& value) {
  const bool pair = is_complex(value.dtype);
  const uint32_t bytes = pair ? size_of(value.dtype) / 2 : size_of(value.dtype);
  for (const uint64_t bits : std::span(value.bits, pair ? 2 : 1)) {
    word(static_cast<uint64_t>(value.dtype));
    arguments_.scalar({value.dtype, {bits, 0}}, bytes);
    ++key_.scalars;
  }
  return *this;
}

VendorCall& VendorCall::random(uint64_t seed, uint64_t offset) {
  for (int i = 0; i < 3; ++i) word(GRAFT_INT64);
  key_.scalars += 3;
  arguments_.random(seed, offset);
  return *this;
}

bool VendorCall::plan() {
  if (!key_.fits) return false;
  plan_ = operation_plan(stream_.device(), id_, key_);
  return plan_ != nullptr;
}

void VendorCall::execute() {
  const char* name = vocabulary()[id_.at].name.c_str();
  OpenDevice& device = stream_.device();
  if (plan_ == nullptr) {
    throw Error(GRAFT_INTERNAL,
                fmt::format("{}: operation_plan refused {}, for which it had made a plan before; "
                            "expected the same answer to the same call. Tell the driver's vendor.",
                            device.label(), name));
  }
  const Workspace workspace(stream_, plan_->workspace_bytes);
  arguments_.address(workspace.address(), plan_->workspace_bytes,
                     GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  arguments_.also_read(plan_->updated);
  try {
    stream_.execute(OperationCommand(device.operations()->operation_execute, plan_->plan, name,
                                     arguments_.span(), plan_));
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    throw Error(GRAFT_INTERNAL,
                fmt::format("{}: operation_execute refused {}, for which operation_plan had made a "
                            "plan; expected UNSUPPORTED from operation_plan or operation_known. "
                            "Tell the driver's vendor. {}",
                            device.label(), name, error.what()));
  }
}

bool offer_elements(Stream& stream, OperationId id, std::span<const TensorView* const> views,
                    size_t written, std::initializer_list<int64_t> integers,
                    std::span<const Scalar> scalars) {
  if (!offers(stream, id)) return false;
  const Axes axes = Axes::joined(views);
  VendorCall call(stream, id);
  for (size_t i = 0; i < views.size(); ++i) {
    const auto operand = static_cast<int>(i);
    i < written ? call.write(axes, operand, *views[i]) : call.read(axes, operand, *views[i]);
  }
  call.integers(integers);
  for (const Scalar& scalar : scalars) call.scalar(scalar);
  return call.run();
}

}  // namespace graft
