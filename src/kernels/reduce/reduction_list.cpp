// src/kernels/reduce/reduction_list.cpp: reductions of whole tensors of a list, a launch for
// several.
#include "kernels/reduce/reduction_list.h"

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <string>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/list_launch.h"
#include "kernels/launch/workspace.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr const char* kNames[] = {"norm1", "norm2", "norminf", "squares", "max"};

// kWhole: a work-item has all of a tensor; otherwise each leaves a partial result for kFinal.
enum class Stage : uint8_t { kWhole, kPartial, kFinal };
constexpr const char* kStages[] = {"whole", "partial", "final"};

Value mapped(ListReduction reduction, Value x) {
  switch (reduction) {
    case ListReduction::kNorm1:
    case ListReduction::kNormInf:
      return abs(x);
    case ListReduction::kNorm2:
    case ListReduction::kSquares:
      return x * x;
    default:
      return x;
  }
}

Value joined(ListReduction reduction, Value a, Value b) {
  const bool largest = reduction == ListReduction::kMax || reduction == ListReduction::kNormInf;
  return largest ? maximum(a, b) : a + b;
}

// What a kernel is specialised on.
struct ListReductionKernel {
  ListReduction reduction;
  Stage stage;
  graft_dtype output, input, wide;

  std::string key() const {
    return fmt::format("reduce_list_{}_{}_{}_{}_{}", kNames[static_cast<size_t>(reduction)],
                       kStages[static_cast<size_t>(stage)], name_of(output), name_of(input),
                       name_of(wide));
  }
  ir::Kernel build() const { return stage == Stage::kFinal ? build_final() : build_first(); }

 private:
  ir::Kernel build_first() const;
  ir::Kernel build_final() const;
  Value folded(Builder& b, Value begin, Value end,
               const std::function<Value(Value i)>& element) const {
    const bool max = reduction == ListReduction::kMax;
    const double neutral = max ? -std::numeric_limits<double>::infinity() : 0;
    return ir::reduce(b.constant(ir::compute_type(wide), neutral), begin, end, element,
                      [this](Value x, Value y) { return joined(reduction, x, y); });
  }
  Value finished(Value total) const {
    return reduction == ListReduction::kNorm2 ? sqrt(total) : total;
  }
};

ir::Kernel ListReductionKernel::build_first() const {
  Builder b(key());
  const bool whole = stage == Stage::kWhole;
  const GroupList outputs = whole ? GroupList(b, output, GRAFT_ACCESS_WRITE) : GroupList();
  const Address partials = whole ? Address() : b.write(wide);
  const GroupList inputs(b, input, GRAFT_ACCESS_READ);
  const GroupShare share(b);
  const Address from = inputs.at(share.slot);
  const Value total = folded(b, share.begin, share.end, [&](Value i) {
    return mapped(reduction, cast(ir::compute_type(wide), from.load(i)));
  });
  if (whole) {
    outputs.at(share.slot).store(b.i64(0), finished(total));
  } else {
    partials.store(b.item(), total);
  }
  return b.finish();
}

// A work-item for each tensor; the partial results of tensor k end before number ends[k].
ir::Kernel ListReductionKernel::build_final() const {
  Builder b(key());
  const GroupList outputs(b, output, GRAFT_ACCESS_WRITE);
  const Address partials = b.read(wide);
  Value ends[kGroupSlots];
  for (Value& end : ends) end = b.index();
  const Value slot = b.item();
  Value begin = b.i64(0), end = ends[0];
  for (int next = 1; next < kGroupSlots; ++next) {
    const Value mine = slot == int64_t{next};
    begin = select(mine, ends[next - 1], begin);
    end = select(mine, ends[next], end);
  }
  const Value total = folded(b, begin, end, [&](Value i) { return partials.load(i); });
  outputs.at(slot).store(b.i64(0), finished(total));
  return b.finish();
}

void check(std::span<const TensorView> outputs, std::span<const TensorView> inputs) {
  bool fits = outputs.size() == inputs.size();
  for (size_t i = 0; fits && i < inputs.size(); ++i) {
    fits = outputs[i].count() == 1 && inputs[i].count() > 0 && is_floating(inputs[i].dtype) &&
           is_floating(outputs[i].dtype) && inputs[i].dtype == inputs[0].dtype &&
           outputs[i].dtype == outputs[0].dtype;
  }
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                "a reduction of a list expects tensors of one floating dtype that are not empty, "
                "and an output of one element for each");
  }
}

struct ListReductionCall {
  Stream& stream;
  ListReductionKernel kernel;
  std::span<const TensorView> outputs, inputs;

  void launch(Stage stage, int64_t items, const Arguments& arguments) {
    kernel.stage = stage;
    launch_kernel(stream, kernel, items, arguments);
  }
  void write_outputs(Arguments& arguments, const TensorGroup& group) const {
    for (int member : group.members()) arguments.write(outputs[static_cast<size_t>(member)]);
  }
  void read_inputs(Arguments& arguments, const TensorGroup& group) const {
    for (int member : group.members()) arguments.read(inputs[static_cast<size_t>(member)]);
  }

  void run(const TensorGroup& group) {
    int64_t ends[kGroupSlots], items = 0;
    for (size_t slot = 0; slot < kGroupSlots; ++slot) {
      items += (group.counts()[slot] + kGroupTile - 1) / kGroupTile;
      ends[slot] = items;
    }
    Arguments first;
    if (items == group.used()) {
      write_outputs(first, group);
      read_inputs(first, group);
      group.append(first);
      return launch(Stage::kWhole, items, first);
    }
    const uint64_t bytes = static_cast<uint64_t>(items) * size_of(kernel.wide);
    const Workspace partials(stream, bytes);
    first.address(partials.address(), bytes, GRAFT_ACCESS_WRITE);
    read_inputs(first, group);
    group.append(first);
    launch(Stage::kPartial, items, first);
    Arguments last;
    write_outputs(last, group);
    last.address(partials.address(), bytes, GRAFT_ACCESS_READ);
    for (const int64_t end : ends) last.index(end);
    launch(Stage::kFinal, group.used(), last);
  }
};

bool offer_reductions(Stream& stream, ListReduction reduction, std::span<const TensorView> outputs,
                      std::span<const TensorView> inputs) {
  static constexpr Operation kOperations[] = {
      Operation::reduce_norm_1, Operation::reduce_norm_2, Operation::reduce_norm_inf,
      Operation::reduce_sum_of_squares, Operation::reduce_max};
  const Operation id = kOperations[static_cast<size_t>(reduction)];
  return offer_list(stream, id, inputs.size(), [&](size_t i, VendorCall& to) {
    TensorView output = inputs[i];
    output.address = outputs[i].address, output.dtype = outputs[i].dtype, output.strides[0] = 0;
    to.write(output).read(inputs[i]);
  });
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (const ListReduction reduction :
       {ListReduction::kNorm1, ListReduction::kNorm2, ListReduction::kNormInf}) {
    for (const Stage stage : {Stage::kWhole, Stage::kPartial, Stage::kFinal}) {
      PackEntry::put(
          add, ListReductionKernel{reduction, stage, GRAFT_FLOAT32, GRAFT_FLOAT32, GRAFT_FLOAT32});
    }
  }
});

}  // namespace

void reduce_list(Stream& stream, ListReduction reduction, std::span<const TensorView> outputs,
                 std::span<const TensorView> inputs) {
  check(outputs, inputs);
  if (inputs.empty()) return;
  const graft_dtype output = outputs[0].dtype, input = inputs[0].dtype;
  if (offer_reductions(stream, reduction, outputs, inputs)) return;
  const bool wide = output == GRAFT_FLOAT64 || input == GRAFT_FLOAT64;
  const graft_dtype sums = wide ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
  ListReductionCall call{stream, {reduction, Stage::kWhole, output, input, sums}, outputs, inputs};
  each_group(
      inputs.size(), [&](size_t i) { return inputs[i].count(); }, [](size_t) { return 0; },
      [&](const TensorGroup& group) { call.run(group); });
}

}  // namespace graft
