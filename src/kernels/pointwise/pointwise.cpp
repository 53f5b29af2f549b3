// src/kernels/pointwise/pointwise.cpp: runs rows of the op table over tensors.
#include "kernels/pointwise/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/lanes.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/loops.h"
#include "runtime/driver/error.h"

namespace graft {

namespace {

constexpr int kMaxOperands = PointwiseSpec::kMaxOperands;
// Operands and scalars (complex: two each), five sizes, the outer sizes, four strides and a start
// per operand.
constexpr int kMaxArguments = 2 * (kMaxOperands + 8) + 5 + 2 + 5 * kMaxOperands;
// One work-item's elements: enough to pay for a thread's wake-up, in reach of its caches.
constexpr int64_t kTile = 16384;
constexpr int64_t kSmallest = 2 * kTile;  // up to here one work-item does all

uint8_t type_bit(graft_dtype dtype) {
  if (dtype == GRAFT_BOOL) return kBoolType;
  if (is_complex(dtype)) return kComplexTypes;
  return is_floating(dtype) ? kFloatTypes : kIntegerTypes;
}

void check(const Op& op, graft_dtype compute, size_t outputs, size_t inputs, size_t scalars) {
  if (outputs != op.outputs || inputs != op.inputs || scalars != op.scalars) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("{} takes {} outputs, {} inputs and {} scalars, not {}, {} and {}",
                            op.name, op.outputs, op.inputs, op.scalars, outputs, inputs, scalars));
  }
  if (!computes_in(op, compute)) {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("{} has no kernel for {}", op.name, name_of(compute)));
  }
}

// Kernels by spec. A thread's own, so that a hit takes no lock: a few compares.
graft_kernel find_kernel(Device& device, const PointwiseSpec& spec) {
  struct Slot {
    uint64_t words[2];
    const Device* device;
    graft_kernel kernel;
  };
  constexpr size_t kSlots = 256;
  static thread_local Slot slots[kSlots];
  uint64_t words[2];
  std::memcpy(words, &spec, sizeof words);
  const uint64_t mixed = (words[0] ^ words[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  Slot& slot = slots[mixed >> 56];
  if (slot.kernel != nullptr && slot.device == &device && slot.words[0] == words[0] &&
      slot.words[1] == words[1]) {
    return slot.kernel;
  }
  const graft_kernel kernel =
      get_kernel(device, pointwise_key(spec), [&] { return pointwise_kernel(spec); });
  slot = {{words[0], words[1]}, &device, kernel};
  return kernel;
}

// One call: the operands in the order of the spec, and the launch that is built from them.
class Launch {
 public:
  Launch(const Op& op, graft_dtype compute, std::span<const TensorView> outputs,
         std::span<const Operand> inputs, std::span<const Scalar> scalars)
      : dtype_(scalar_dtype(compute)), scalars_(scalars) {
    spec_.op = op.id;
    spec_.compute = static_cast<uint8_t>(dtype_);
    for (const TensorView& view : outputs) add(view);
    if (is_half(compute) && (rounds(outputs, compute) || narrows(op, inputs, compute))) {
      spec_.compute = static_cast<uint8_t>(compute);
    }
    output_count_ = spec_.operands;
    for (const Operand& input : inputs) {
      if (input.is_scalar) {
        spec_.set(spec_.operands++, dtype_, AccessPattern::kScalar);
        lifted_[spec_.operands - 1] = &input.scalar;
      } else {
        add(input.view);
      }
    }
  }

  void run(Stream& stream) {
    const PointwiseLoops loops({views_, static_cast<size_t>(view_count_)});
    if (loops.empty) return;
    const int outer = std::clamp(loops.rank - 1, 0, PointwiseSpec::kMaxOuter);
    spec_.outer = static_cast<uint8_t>(outer);
    if (is_gpu_like(stream.device())) spec_.deal = lanes(loops);
    for (int i = 0, v = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) continue;
      spec_.set(i, views_[v]->dtype, walk(loops, v));
      if (loops.before(v, inner(loops)) > 0) spec_.operand[i] |= PointwiseSpec::kShifted;
      addresses_[v] = views_[v]->address;
      ++v;
    }
    kernel_ = find_kernel(stream.device(), spec_);
    peel(stream, loops, loops.rank - 1);
  }

 private:
  static bool rounds(std::span<const TensorView> outputs, graft_dtype half) {
    return std::ranges::any_of(outputs, [half](const TensorView& view) {
      return view.dtype != half && (is_floating(view.dtype) || is_complex(view.dtype));
    });
  }

  static bool narrows(const Op& op, std::span<const Operand> inputs, graft_dtype half) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool free = inputs[i].is_scalar || (op.conditions >> i & 1) != 0;
      if (!free && inputs[i].view.dtype != half && size_of(inputs[i].view.dtype) > 1) return true;
    }
    return false;
  }

  void add(const TensorView& view) {
    if (view_count_ == kMaxOperands) {
      throw Error(GRAFT_INVALID_ARGUMENT, "an elementwise kernel takes at most 8 tensors");
    }
    spec_.set(spec_.operands++, view.dtype, AccessPattern::kDense);
    views_[view_count_++] = &view;
  }

  // Loops that the kernel runs; those around them run here.
  int inner(const PointwiseLoops& loops) const { return std::min(loops.rank, spec_.outer + 1); }

  AccessPattern walk(const PointwiseLoops& loops, int v) const {
    if (loops.rank == 0 || loops.strides[v][0] == 1) return AccessPattern::kDense;
    if (loops.strides[v][0] == -1) return AccessPattern::kReversed;
    const bool written = v < output_count_;
    if (loops.strides[v][0] == 2 && !written) return AccessPattern::kSecond;
    return loops.strides[v][0] == 0 && !written ? AccessPattern::kUniform : AccessPattern::kStrided;
  }

  int64_t count(const PointwiseLoops& loops) const {
    int64_t all = 1;
    for (int k = 0; k < inner(loops); ++k) all *= loops.sizes[k];
    return all;
  }

  // Complex numbers are two elements each; a launch rounds its items up.
  WorkMapping lanes(const PointwiseLoops& loops) const {
    constexpr int64_t kMost = INT32_MAX / 2 - kLanes * kLaneElements;
    bool narrow = count(loops) <= kMost;
    for (int v = 0; v < view_count_; ++v) {
      narrow = narrow && loops.extent(v, inner(loops)) <= kMost;
    }
    return narrow ? WorkMapping::kLanes32 : WorkMapping::kLanes;
  }

  // One launch for each step of the loops around the kernel's.
  void peel(Stream& stream, const PointwiseLoops& loops, int loop) {
    if (loop <= spec_.outer) return launch(stream, loops);
    for (int64_t step = 0; step < loops.sizes[loop]; ++step) {
      peel(stream, loops, loop - 1);
      for (int v = 0; v < view_count_; ++v) {
        addresses_[v] += static_cast<uint64_t>(loops.strides[v][loop]) * size_of(views_[v]->dtype);
      }
    }
    for (int v = 0; v < view_count_; ++v) {
      addresses_[v] -= static_cast<uint64_t>(loops.sizes[loop] * loops.strides[v][loop]) *
                       size_of(views_[v]->dtype);
    }
  }

  void push_address(uint64_t address, uint64_t bytes, uint32_t access) {
    arguments_[count_++] = {
        GRAFT_ARGUMENT_ADDRESS, 0, static_cast<uint8_t>(access), 0, address, bytes};
  }

  void push_scalar(const Scalar& given) {
    const Scalar scalar = given.to(dtype_);
    const bool pair = is_complex(dtype_);
    const uint32_t bytes = pair ? size_of(dtype_) / 2 : size_of(dtype_);
    for (int part = 0; part < (pair ? 2 : 1); ++part) {
      arguments_[count_++] = {
          GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(dtype_), 0, 0, scalar.bits[part], bytes};
    }
  }

  void push_index(int64_t value) {
    const bool narrow = spec_.deal == WorkMapping::kLanes32;
    const graft_dtype dtype = narrow ? GRAFT_INT32 : GRAFT_INT64;
    arguments_[count_++] = {
        GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(dtype), 0, 0, static_cast<uint64_t>(value),
        narrow ? 4u : 8u};
  }

  void push_operands(const PointwiseLoops& loops) {
    for (int i = 0, v = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) {
        push_scalar(*lifted_[i]);
        continue;
      }
      const uint64_t bytes = size_of(views_[v]->dtype);
      push_address(addresses_[v] - static_cast<uint64_t>(loops.before(v, inner(loops))) * bytes,
                   static_cast<uint64_t>(loops.extent(v, inner(loops))) * bytes,
                   i < output_count_ ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ);
      ++v;
    }
    for (const Scalar& scalar : scalars_) push_scalar(scalar);
  }

  void push_strides(const PointwiseLoops& loops) {
    for (int k = spec_.outer - 1; k > 0; --k) push_index(loops.sizes[k]);
    for (int i = 0, v = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) continue;
      for (int k = spec_.outer; k > 0; --k) push_index(loops.strides[v][k]);
      if (spec_.walk(i) == AccessPattern::kStrided) push_index(loops.strides[v][0]);
      if (spec_.shifted(i)) push_index(loops.before(v, inner(loops)));
      ++v;
    }
  }

  // Returns the number of work-items.
  int64_t push_spans(const PointwiseLoops& loops, int64_t length) {
    const int64_t rows = count(loops) / length;
    const bool small = length * rows <= kSmallest;
    const int64_t tile = small ? length : std::min(length, kTile);
    const int64_t items_per_row = small ? 1 : (length + tile - 1) / tile;
    push_index(length);
    push_index(tile);
    if (spec_.outer == 0) return items_per_row;
    const int64_t rows_per_item = small ? rows : std::max<int64_t>(1, kTile / length);
    push_index(rows);
    push_index(rows_per_item);
    push_index(items_per_row);
    return small ? 1 : items_per_row * ((rows + rows_per_item - 1) / rows_per_item);
  }

  int64_t push_lanes(const Device& device, const PointwiseLoops& loops, int64_t length) {
    const LaneSplit split(device, count(loops));
    push_index(length);
    push_index(split.tile);
    if (spec_.outer > 0) push_index(count(loops));
    return split.grid;
  }

  void launch(Stream& stream, const PointwiseLoops& loops) {
    count_ = 0;
    push_operands(loops);
    const int64_t length = loops.rank == 0 ? 1 : loops.sizes[0];
    const int64_t items = spec_.deal == WorkMapping::kSpans
                              ? push_spans(loops, length)
                              : push_lanes(stream.device(), loops, length);
    push_strides(loops);
    stream.launch(kernel_, static_cast<uint64_t>(items),
                  std::span<const graft_argument>(arguments_, static_cast<size_t>(count_)));
  }

  PointwiseSpec spec_;
  graft_dtype dtype_;
  std::span<const Scalar> scalars_;
  int output_count_ = 0, view_count_ = 0, count_ = 0;
  const TensorView* views_[kMaxOperands];
  const Scalar* lifted_[kMaxOperands];
  graft_address addresses_[kMaxOperands];
  graft_kernel kernel_ = nullptr;
  graft_argument arguments_[kMaxArguments];
};

}  // namespace

bool computes_in(const Op& op, graft_dtype compute) { return (op.types & type_bit(compute)) != 0; }

void pointwise(Stream& stream, const Op& op, graft_dtype compute,
               std::span<const TensorView> outputs, std::span<const Operand> inputs,
               std::span<const Scalar> scalars) {
  check(op, compute, outputs.size(), inputs.size(), scalars.size());
  Launch(op, compute, outputs, inputs, scalars).run(stream);
}

}  // namespace graft
