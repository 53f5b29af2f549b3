// src/kernels/pointwise/pointwise.cpp: runs rows of the op table over tensors.
#include "kernels/pointwise/pointwise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/kernel_slots.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/row_call.h"
#include "runtime/driver/error.h"

namespace graft {

namespace {

constexpr int kMaxOperands = PointwiseSpec::kMaxOperands;

constexpr Axis kOneElement{1, {1, 1, 1, 1, 1, 1, 1, 1}};
static_assert(kMaxOperands == 8);

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

graft_kernel find_kernel(OpenDevice& device, const PointwiseSpec& spec) {
  static thread_local constinit KernelSlots<2, 8> slots;
  return slots.get(device, std::bit_cast<std::array<uint64_t, 2>>(spec), [&] {
    return get_kernel(device, pointwise_key(spec), [&] { return pointwise_kernel(spec); });
  });
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
    const Axes axes = Axes::joined({views_, static_cast<size_t>(view_count_)});
    if (axes.count() == 0) return;
    const std::span<const Axis> all = axes.rank == 0 ? std::span(&kOneElement, 1) : axes.span();
    const size_t outer = std::min<size_t>(all.size() - 1, PointwiseSpec::kMaxOuter);
    const size_t around = all.size() - 1 - outer;
    loops_ = all.subspan(around);
    spec_.outer = static_cast<uint8_t>(outer);
    plain_ = outer == 0;
    if (is_gpu_like(stream.device())) spec_.deal = lanes_of(loops_, view_count_);
    for (int i = 0, v = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) continue;
      spec_.set(i, views_[v]->dtype, walk(v));
      reach_[v] = reach(loops_, v);
      if (reach_[v].before > 0) spec_.operand[i] |= PointwiseSpec::kShifted;
      plain_ = plain_ && reach_[v].before == 0 && spec_.walk(i) != AccessPattern::kStrided;
      addresses_[v] = views_[v]->address;
      ++v;
    }
    kernel_ = find_kernel(stream.device(), spec_);
    peel(stream, all.first(around));
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

  AccessPattern walk(int v) const {
    const int64_t stride = loops_.back().strides[v];
    if (stride == 1) return AccessPattern::kDense;
    if (stride == -1) return AccessPattern::kReversed;
    const bool written = v < output_count_;
    if (stride == 2 && !written) return AccessPattern::kSecond;
    return stride == 0 && !written ? AccessPattern::kUniform : AccessPattern::kStrided;
  }

  // One launch for each step of the loops around the kernel's.
  void peel(Stream& stream, std::span<const Axis> around) {
    if (around.empty()) return launch(stream);
    const Axis& axis = around.front();
    for (int64_t step = 0; step < axis.size; ++step) {
      peel(stream, around.subspan(1));
      move(axis, 1);
    }
    move(axis, -axis.size);
  }

  void move(const Axis& axis, int64_t steps) {
    for (int v = 0; v < view_count_; ++v) {
      addresses_[v] += static_cast<uint64_t>(steps * axis.strides[v]) * size_of(views_[v]->dtype);
    }
  }

  void append(const Scalar& given, Arguments* arguments) const {
    Scalar scalar = given.to(dtype_);
    const bool pair = is_complex(dtype_);
    const uint32_t bytes = pair ? size_of(dtype_) / 2 : size_of(dtype_);
    arguments->scalar(scalar, bytes);
    if (!pair) return;
    scalar.bits[0] = scalar.bits[1];
    arguments->scalar(scalar, bytes);
  }

  void append_operands(Arguments* arguments) const {
    for (int i = 0, v = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) {
        append(*lifted_[i], arguments);
        continue;
      }
      const uint64_t bytes = size_of(views_[v]->dtype);
      arguments->address(addresses_[v] - static_cast<uint64_t>(reach_[v].before) * bytes,
                         static_cast<uint64_t>(reach_[v].extent) * bytes,
                         i < output_count_ ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ);
      ++v;
    }
    for (const Scalar& scalar : scalars_) append(scalar, arguments);
  }

  void launch(Stream& stream) const {
    Arguments arguments;
    append_operands(&arguments);
    NestShape shape;
    shape.deal = spec_.deal;
    if (!plain_) shape = nest_shape(spec_);
    const int64_t items = append_nest(arguments, stream.device(), shape, loops_);
    stream.launch(kernel_, static_cast<uint64_t>(items), arguments.span());
  }

  PointwiseSpec spec_;
  graft_dtype dtype_;
  std::span<const Scalar> scalars_;
  int output_count_ = 0, view_count_ = 0;
  std::span<const Axis> loops_;  // those of the kernel
  const TensorView* views_[kMaxOperands];
  const Scalar* lifted_[kMaxOperands];
  graft_address addresses_[kMaxOperands];
  Reach reach_[kMaxOperands];
  bool plain_ = false;  // no operand has numbers of its own among the arguments
  graft_kernel kernel_ = nullptr;
};

}  // namespace

bool computes_in(const Op& op, graft_dtype compute) { return (op.types & type_bit(compute)) != 0; }

void pointwise(Stream& stream, const Op& op, graft_dtype compute,
               std::span<const TensorView> outputs, std::span<const Operand> inputs,
               std::span<const Scalar> scalars) {
  check(op, compute, outputs.size(), inputs.size(), scalars.size());
  if (stream.device().operations() != nullptr) [[unlikely]] {
    if (offer_row(stream, op, compute, outputs, inputs, scalars)) return;
  }
  Launch(op, compute, outputs, inputs, scalars).run(stream);
}

}  // namespace graft
