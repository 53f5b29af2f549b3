// src/kernels/operation/offer.h: offers calls of operators to the vendor's own kernels.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

#include "kernels/launch/arguments.h"
#include "kernels/operation/plans.h"
#include "kernels/operation/vocabulary.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"

namespace graft {

// One call of an operator: what its signature names, in that order, tensors first.
class VendorCall {
 public:
  VendorCall(Stream& stream, OperationId id) : stream_(stream), id_(id) {}

  // Null stands for a tensor that is missing.
  VendorCall& write(const TensorView* view) { return tensor(view, true); }
  VendorCall& read(const TensorView* view) { return tensor(view, false); }
  VendorCall& read(std::nullptr_t) { return tensor(nullptr, false); }
  VendorCall& write(const TensorView& view) { return tensor(&view, true); }
  VendorCall& read(const TensorView& view) { return tensor(&view, false); }
  // That operand of loops: `of` has its address and dtype.
  VendorCall& write(const Axes& axes, int operand, const TensorView& of) {
    return tensor(axes, operand, of, true);
  }
  VendorCall& read(const Axes& axes, int operand, const TensorView& of) {
    return tensor(axes, operand, of, false);
  }
  VendorCall& read(std::span<const TensorView> views);

  VendorCall& integers(std::initializer_list<int64_t> values) {
    return integers(std::span(values.begin(), values.size()));
  }
  VendorCall& integers(std::span<const int64_t> values);
  VendorCall& integers(std::span<const int> values);
  VendorCall& numbers(std::initializer_list<double> values) {
    return numbers(std::span(values.begin(), values.size()));
  }
  VendorCall& numbers(std::span<const double> values);

  // Numbers of each execution; a complex one is two. random: a generator's state.
  VendorCall& scalar(const Scalar& value);
  VendorCall& random(uint64_t seed, uint64_t offset);

  // The call is none for vendors.
  void refuse() { key_.fits = false; }

  // Asks for the plan, or finds it. False where the vendor does not take the call, and where it is
  // none for vendors: a tensor without elements, or of more than GRAFT_MAX_RANK dimensions.
  bool plan();

  // Queues it. REQUIRES: plan() was called. Throws Error, never one that lacks_kernel(): also where
  // plan() was false, since parts of a list may have run by then.
  void execute();

  bool run() {
    if (!plan()) return false;
    execute();
    return true;
  }

 private:
  VendorCall& tensor(const TensorView* view, bool written);
  VendorCall& tensor(const Axes& axes, int operand, const TensorView& of, bool written);
  VendorCall& missing(bool written);
  // dimension(d): its size and stride.
  template <class Dimension>
  VendorCall& describe(const TensorView& of, int rank, const Dimension& dimension, bool written);
  void word(uint64_t value);

  Stream& stream_;
  const OperationId id_;
  OperationKey key_;
  Arguments arguments_;
  std::shared_ptr<const OperationPlan> plan_;  // null: the vendor does not take the call
};

// Whether the vendor has kernels for the operator. Two loads where the device has none.
inline bool offers(Stream& stream, OperationId id) {
  OpenDevice& device = stream.device();
  return device.operations() != nullptr && vendor_knows(device, id);
}

// Runs a call by the vendor's kernel; false where it has none, and nothing is done. parts: each
// part(call) adds what comes next in it. Throws Error where the vendor fails.
template <class... Parts>
bool offer(Stream& stream, OperationId id, const Parts&... parts) {
  if (!offers(stream, id)) [[likely]]
    return false;
  VendorCall call(stream, id);
  (parts(call), ...);
  return call.run();
}

// Parts of a call. They refer to what they are given.
template <class... Views>
auto writes(const Views&... views) {
  return [&](VendorCall& call) { (call.write(views), ...); };
}
template <class... Views>
auto reads(const Views&... views) {
  return [&](VendorCall& call) { (call.read(views), ...); };
}
// Whole numbers, truth values, enumerators, and arrays of int64_t.
template <class... Values>
auto integers(const Values&... values) {
  return [&](VendorCall& call) {
    const auto add = [&](const auto& value) {
      if constexpr (std::is_array_v<std::remove_reference_t<decltype(value)>>) {
        call.integers(std::span(value));
      } else {
        call.integers({static_cast<int64_t>(value)});
      }
    };
    (add(values), ...);
  };
}
template <class... Values>
auto numbers(const Values&... values) {
  return [&](VendorCall& call) { call.numbers({static_cast<double>(values)...}); };
}
template <class... Scalars>
auto scalars(const Scalars&... values) {
  return [&](VendorCall& call) { (call.scalar(values), ...); };
}

// A list of calls, of which the vendor takes all or none: build(i, call) describes each.
template <class Build>
bool offer_list(Stream& stream, OperationId id, size_t count, Build build) {
  if (count == 0 || !offers(stream, id)) [[likely]]
    return false;
  const auto describe = [&](size_t i, VendorCall& call) {
    build(i, call);
    return call.plan();
  };
  for (size_t i = 0; i < count; ++i) {
    if (VendorCall call(stream, id); !describe(i, call)) return false;
  }
  for (size_t i = 0; i < count; ++i) {
    VendorCall call(stream, id);
    describe(i, call);
    call.execute();
  }
  return true;
}

// Elementwise work on views of one shape, the first `written` of which are outputs, with as few
// dimensions as they allow.
bool offer_elements(Stream& stream, OperationId id, std::span<const TensorView* const> views,
                    size_t written, std::initializer_list<int64_t> integers,
                    std::span<const Scalar> scalars = {});

}  // namespace graft
