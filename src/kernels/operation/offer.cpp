// src/kernels/operation/offer.cpp: offers calls of operators to the vendor's own kernels.
#include "kernels/operation/offer.h"

#include <fmt/format.h>

#include <bit>

#include "kernels/launch/workspace.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

// Bytes from the first element to the end of the last one in memory.
uint64_t extent(const TensorView& view) {
  int64_t last = 0;
  for (int d = 0; d < view.rank; ++d) {
    if (view.strides[d] > 0) last += (view.sizes[d] - 1) * view.strides[d];
  }
  return static_cast<uint64_t>(last + 1) * size_of(view.dtype);
}

constexpr int kMostArguments = 128;  // of the arguments' capacity: room for the workspace

}  // namespace

void VendorCall::word(uint64_t value) {
  if (key_.size == OperationKey::kWords) {
    key_.fits = false;
    return;
  }
  key_.words[key_.size++] = value;
}

void VendorCall::describe(const TensorView& view) {
  if (view.rank > GRAFT_MAX_RANK || key_.tensors >= kMostArguments) {
    key_.fits = false;
    return;
  }
  word(static_cast<uint64_t>(view.dtype) | static_cast<uint64_t>(view.rank) << 32);
  for (int d = 0; d < view.rank; ++d) {
    word(static_cast<uint64_t>(view.sizes[d]));
    key_.fits = key_.fits && view.sizes[d] != 0;
  }
  for (int d = 0; d < view.rank; ++d) word(static_cast<uint64_t>(view.strides[d]));
}

VendorCall& VendorCall::tensor(const TensorView* view, bool written) {
  if (!key_.fits) return *this;
  const uint32_t access = written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
  if (view == nullptr) {
    word(GRAFT_NO_TENSOR);
    arguments_.address(0, 0, access);
  } else {
    describe(*view);
    if (!key_.fits) return *this;
    arguments_.address(view->address, extent(*view), access);
  }
  ++key_.tensors;
  if (written) ++key_.written;
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
  Scalar part = value;
  for (int i = 0; i < (pair ? 2 : 1); ++i) {
    part.bits[0] = value.bits[i];
    word(static_cast<uint64_t>(value.dtype));
    arguments_.scalar(part, bytes);
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
  return plan_->plan != nullptr;
}

void VendorCall::execute() {
  const Workspace workspace(stream_, plan_->workspace_bytes);
  arguments_.address(workspace.address(), plan_->workspace_bytes,
                     GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  arguments_.also_read(plan_->updated);
  const char* name = vocabulary()[id_.at].name.c_str();
  OpenDevice& device = stream_.device();
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
    const TensorView view = axes.view(static_cast<int>(i), views[i]->address, views[i]->dtype);
    i < written ? call.write(view) : call.read(view);
  }
  call.integers(integers);
  for (const Scalar& scalar : scalars) call.scalar(scalar);
  return call.run();
}

}  // namespace graft
