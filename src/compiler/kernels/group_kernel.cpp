// src/compiler/kernels/group_kernel.cpp: the generated kernel of a group of nodes.
#include "compiler/kernels/group_kernel.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "codegen/ir/builder.h"
#include "codegen/ir/local_array.h"
#include "codegen/math/math.h"
#include "compiler/analysis/op_row_binding.h"
#include "compiler/analysis/reduction.h"
#include "compiler/kernels/group_description.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using ir::Address;
using ir::Builder;
using ir::Value;

class Writer {
 public:
  Writer(const Graph& graph, const GroupKernel& kernel)
      : graph_(graph), kernel_(kernel), loops_(kernel.loops), b_(kernel.key, family(kernel)) {
    for (NodeId id : kernel.nodes) {
      for (ValueId result : graph.nodes[id].results) maker_[result] = id;
    }
  }

  ir::Kernel write() {
    declare();
    if (kernel_.shares_rows()) return shared_row();
    if (kernel_.deal != WorkMapping::kSpans) return lanes();
    const Value item = b_.item();
    const Value first = item / items_per_row_ * rows_per_item_;
    const Value begin = item % items_per_row_ * tile_;
    const Value end = minimum(begin + tile_, count_);
    b_.loop(first, minimum(first + rows_per_item_, rows_), [&](Value row) {
      place(row);
      fixed_.clear();
      if (loops_.reduces) reduce_all();
      store_rows();
      if (any_full_output()) {
        b_.vector_loop(begin, end, [&](Value i) { store_full(i); });
      }
    });
    return b_.finish();
  }

 private:
  using Memo = std::map<ValueId, Value>;

  static ir::Family family(const GroupKernel& kernel) {
    return kernel.shares_rows() ? ir::Family::kGpuLike : ir::Family::kCpuLike;
  }

  ir::Kernel lanes() {
    const Value item = cast(count_.type(), b_.item()), first = item / kLanes * tile_;
    const auto element = [&](Value at) {
      const bool rows = loops_.inner() > 0;
      place(rows ? at / count_ : at);
      store_full(rows ? at % count_ : at);
    };
    b_.loop(first + item % kLanes, minimum(first + tile_, rows_), element, like(first, kLanes));
    return b_.finish();
  }

  // What is stored for the whole row comes last: it may lie where others still read.
  ir::Kernel shared_row() {
    for (NodeId id : kernel_.nodes) {
      LastReduction reduction;
      const Node& node = graph_.nodes[id];
      if (!last_reduction(graph_, node, &reduction)) continue;
      const graft_dtype dtype = graph_.values[node.results[0]].type.dtype;
      parts_.emplace(node.results[0], ir::LocalArray(b_, ir::compute_type(dtype), kLanes));
    }
    lane_ = cast(ir::Type::kI64, b_.local_item());
    place(b_.item() / kLanes);
    reduce_all();
    if (any_full_output()) {
      b_.loop(
          lane_, count_, [&](Value i) { store_full(i); }, b_.i64(kLanes));
    }
    b_.barrier();
    b_.if_(lane_ == 0, [&] { store_rows(); });
    return b_.finish();
  }

  // Of this lane's elements, then over the lanes in a tree.
  Value folded(const LastReduction& reduction, ValueId result) {
    const ir::LocalArray& parts = parts_.at(result);
    const ir::Variable total(start(reduction, result));
    const auto element = [&](Value i) {
      Memo memo;
      const Value given = cast(total.get().type(), evaluate(reduction.input, i, &memo));
      total = join(reduction, total, given);
    };
    b_.loop(lane_, count_, element, b_.i64(kLanes));
    parts.store(lane_, total);
    for (int64_t half = kLanes / 2; half > 0; half /= 2) {
      b_.barrier();
      b_.if_(lane_ < half, [&] {
        parts.store(lane_, join(reduction, parts.load(lane_), parts.load(lane_ + half)));
      });
    }
    b_.barrier();
    return parts.load(b_.i64(0));
  }

  Value index() { return kernel_.deal == WorkMapping::kLanes32 ? b_.index32() : b_.index(); }

  void declare() {
    for (const GroupTensor& tensor : loops_.tensors) {
      const graft_dtype dtype = graph_.values[tensor.value].type.dtype;
      addresses_.push_back(tensor.written ? b_.write(dtype) : b_.read(dtype));
    }
    for (ValueId value : kernel_.numbers) {
      scalars_.emplace(value, b_.scalar(graph_.values[value].type.dtype));
    }
    count_ = index();
    tile_ = index();
    rows_ = index();
    if (kernel_.deal == WorkMapping::kSpans) {
      rows_per_item_ = b_.index();
      items_per_row_ = b_.index();
    }
    for (size_t i = 1; i < loops_.inner(); ++i) sizes_.push_back(index());
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      strides_.emplace_back();
      for (size_t i = 0; i < loops_.sizes.size(); ++i) strides_[t].push_back(index());
    }
    offsets_.resize(loops_.tensors.size());
  }

  // Where the tensors' elements of a row begin.
  void place(Value row) {
    std::vector<Value> position(loops_.inner());
    for (size_t i = loops_.inner(); i-- > 1;) {
      position[i] = row % sizes_[i - 1];
      row = row / sizes_[i - 1];
    }
    if (!position.empty()) position[0] = row;
    for (size_t t = 0; t < offsets_.size(); ++t) {
      offsets_[t] = like(count_, 0);
      for (size_t i = 0; i < position.size(); ++i) {
        if (!loops_.tensors[t].strides[i].is(0)) {
          offsets_[t] = offsets_[t] + position[i] * strides_[t][i];
        }
      }
    }
  }

  Value element(size_t t, Value i) const {
    const Size& stride = loops_.tensors[t].strides[loops_.inner()];
    if (stride.is(0)) return offsets_[t];
    return offsets_[t] + (stride.is(1) ? i : i * strides_[t][loops_.inner()]);
  }

  Value cast_number(ir::Type type, double value) {
    return type == ir::Type::kBool ? b_.boolean(value != 0) : b_.constant(type, value);
  }

  Value load(ValueId value, Value i) {
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (tensor.value == value && !tensor.written) return addresses_[t].load(element(t, i));
    }
    const auto scalar = scalars_.find(value);
    if (scalar != scalars_.end()) return scalar->second;
    const GraphValue& constant = graph_.values[value];
    return cast_number(ir::compute_type(constant.type.dtype), constant_number(constant));
  }

  // A value of the row at position i; what was computed for the whole row, or is in memo, is
  // reused.
  Value evaluate(ValueId value, Value i, Memo* memo) {
    const auto fixed = fixed_.find(value);
    if (fixed != fixed_.end()) return fixed->second;
    const auto found = memo->find(value);
    if (found != memo->end()) return found->second;
    const auto maker = maker_.find(value);
    const Value made =
        maker == maker_.end() ? load(value, i) : compute(graph_.nodes[maker->second], i, memo);
    memo->emplace(value, made);
    return made;
  }

  // A node that decides (a comparison, a cast to integers) gets the number that memory would hold:
  // what is kept in float32 may differ from it where another kernel stored it.
  Value operand(const Node& node, ValueId given, Value i, Memo* memo) {
    const Value value = evaluate(given, i, memo);
    const graft_dtype dtype = graph_.values[given].type.dtype;
    const bool decides = !is_float(ir::compute_type(graph_.values[node.results[0]].type.dtype));
    return decides && is_half(dtype) && maker_.contains(given) ? ir::rounded_to(dtype, value)
                                                               : value;
  }

  Value compute(const Node& node, Value i, Memo* memo) {
    OpRowBinding use;
    row_use(graph_, node, &use);
    const ir::Type type = ir::compute_type(use.compute);
    std::vector<Value> inputs, scalars;
    for (size_t k = 0; k < use.inputs.size(); ++k) {
      const ir::Type wanted = use.row->conditions >> k & 1 ? ir::Type::kBool : type;
      double given = 0;
      const bool plain = number_of(use.inputs[k], &given);
      inputs.push_back(plain ? cast_number(wanted, given)
                             : cast(wanted, operand(node, use.inputs[k].value, i, memo)));
    }
    for (double scalar : use.scalars) scalars.push_back(cast_number(type, scalar));
    const Results results = use.row->formula(inputs, scalars);
    return cast(ir::compute_type(graph_.values[node.results[0]].type.dtype), results[0]);
  }

  // Whether a value depends on the position along the innermost loop.
  bool is_full(ValueId value) {
    if (!loops_.reduces) return true;
    if (fixed_.contains(value)) return false;
    const auto maker = maker_.find(value);
    if (maker == maker_.end()) {
      for (const GroupTensor& tensor : loops_.tensors) {
        if (tensor.value == value) return !tensor.strides[loops_.inner()].is(0);
      }
      return false;
    }
    LastReduction reduction;
    if (last_reduction(graph_, graph_.nodes[maker->second], &reduction)) return false;
    bool full = false;
    each_value(graph_.nodes[maker->second].arguments,
               [&](ValueId operand) { full = full || is_full(operand); });
    return full;
  }

  // Whether a value has to wait for a reduction that is not known yet.
  bool waits(ValueId value) const {
    const auto maker = maker_.find(value);
    if (fixed_.contains(value) || maker == maker_.end()) return false;
    const Node& node = graph_.nodes[maker->second];
    LastReduction reduction;
    if (last_reduction(graph_, node, &reduction)) return true;
    bool waiting = false;
    each_value(node.arguments, [&](ValueId operand) { waiting = waiting || waits(operand); });
    return waiting;
  }

  // In program order, so that a reduction finds what it needs of earlier ones. A later one that
  // needs no more than the first runs along.
  void reduce_all() {
    for (size_t n = 0; n < kernel_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[kernel_.nodes[n]];
      const ValueId result = node.results[0];
      LastReduction reduction;
      if (!last_reduction(graph_, node, &reduction)) {
        if (is_full(result)) continue;
        Memo memo;
        fixed_.emplace(result, evaluate(result, b_.i64(0), &memo));
      } else if (!fixed_.contains(result)) {
        reduce_together(n);
      }
    }
  }

  void reduce_together(size_t first) {
    constexpr size_t kTogether = 2;  // accumulators that fit the registers
    std::vector<std::pair<LastReduction, ValueId>> batch;
    for (size_t n = first; n < kernel_.nodes.size() && batch.size() < kTogether; ++n) {
      const Node& node = graph_.nodes[kernel_.nodes[n]];
      LastReduction reduction;
      if (!last_reduction(graph_, node, &reduction) || fixed_.contains(node.results[0])) continue;
      if (n > first && (kernel_.shares_rows() || waits(reduction.input))) continue;
      batch.emplace_back(reduction, node.results[0]);
    }
    const std::vector<Value> totals = kernel_.shares_rows()
                                          ? std::vector{folded(batch[0].first, batch[0].second)}
                                          : reduced(batch);
    for (size_t k = 0; k < batch.size(); ++k) {
      const auto& [reduction, result] = batch[k];
      const bool mean = reduction.fold == Fold::kMean;
      fixed_.emplace(result, mean ? totals[k] / cast(totals[k].type(), count_) : totals[k]);
    }
  }

  Value start(const LastReduction& reduction, ValueId result) {
    const double infinity = std::numeric_limits<double>::infinity();
    const bool sums = reduction.fold == Fold::kSum || reduction.fold == Fold::kMean;
    const double first = sums ? 0 : reduction.fold == Fold::kMax ? -infinity : infinity;
    return b_.constant(ir::compute_type(graph_.values[result].type.dtype), first);
  }

  static Value join(const LastReduction& reduction, Value a, Value b) {
    if (reduction.fold == Fold::kMax) return maximum(a, b);
    return reduction.fold == Fold::kMin ? minimum(a, b) : a + b;
  }

  // Of all elements of a row, in blocks, so that a long row's sums are rounded less.
  std::vector<Value> reduced(const std::vector<std::pair<LastReduction, ValueId>>& batch) {
    constexpr int64_t kBlock = 16384;
    std::vector<Value> firsts;
    for (const auto& [reduction, result] : batch) firsts.push_back(start(reduction, result));
    const auto combine = [&](const std::vector<Value>& a, const std::vector<Value>& b) {
      std::vector<Value> joined;
      for (size_t k = 0; k < batch.size(); ++k) joined.push_back(join(batch[k].first, a[k], b[k]));
      return joined;
    };
    const auto step = [&](const std::vector<Value>& totals, Value i) {
      Memo memo;
      std::vector<Value> elements;
      for (size_t k = 0; k < batch.size(); ++k) {
        elements.push_back(cast(firsts[k].type(), evaluate(batch[k].first.input, i, &memo)));
      }
      return combine(totals, elements);
    };
    const std::vector<ir::Variable> totals(firsts.begin(), firsts.end());
    const auto in_block = [&](Value begin) {
      const Value end = minimum(begin + kBlock, count_);
      const std::vector<Value> joined =
          combine({totals.begin(), totals.end()},
                  ir::fold(firsts, begin, end, step, combine, kernel_.brief() ? 8 : 64));
      for (size_t k = 0; k < totals.size(); ++k) totals[k] = joined[k];
    };
    b_.loop(b_.i64(0), count_, in_block, b_.i64(kBlock));
    return {totals.begin(), totals.end()};
  }

  // A result that is one value for each row and has a place for one.
  bool is_row_output(const GroupTensor& tensor) const {
    return loops_.reduces && tensor.strides[loops_.inner()].is(0);
  }

  bool any_full_output() const {
    return std::any_of(
        loops_.tensors.begin(), loops_.tensors.end(),
        [&](const GroupTensor& tensor) { return tensor.written && !is_row_output(tensor); });
  }

  void store_rows() {
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (!tensor.written || !is_row_output(tensor)) continue;
      Memo memo;
      addresses_[t].store(offsets_[t], evaluate(tensor.value, b_.i64(0), &memo));
    }
  }

  // All is read before anything is stored: an output may lie where an input of another one lay.
  void store_full(Value i) {
    Memo memo;
    std::vector<std::pair<size_t, Value>> stored;
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (!tensor.written || is_row_output(tensor)) continue;
      stored.emplace_back(t, evaluate(tensor.value, i, &memo));
    }
    for (const auto& [t, value] : stored) addresses_[t].store(element(t, i), value);
  }

  const Graph& graph_;
  const GroupKernel& kernel_;
  const GroupLoops& loops_;
  Builder b_;
  std::map<ValueId, NodeId> maker_;
  std::vector<Address> addresses_;
  std::map<ValueId, Value> scalars_;
  std::vector<Value> sizes_, offsets_;
  std::vector<std::vector<Value>> strides_;
  Value count_, tile_, rows_, rows_per_item_, items_per_row_;
  std::map<ValueId, Value> fixed_;  // of the row
  Value lane_;
  std::map<ValueId, ir::LocalArray> parts_;  // of each reduction, one a lane
};

}  // namespace

ir::Kernel GroupKernel::build(const Graph& graph) const { return Writer(graph, *this).write(); }

std::optional<GroupKernel> group_kernel(const Graph& graph, const Effects& effects,
                                        const std::vector<NodeId>& nodes) {
  auto loops = group_loops(graph, effects, nodes);
  if (!loops) return std::nullopt;
  GroupKernel kernel;
  kernel.loops = std::move(*loops);
  kernel.nodes = nodes;
  for (ValueId value : edges_of(graph, effects, nodes).inputs) {
    const GraphValue& given = graph.values[value];
    if (is_number(given) && given.origin == Origin::kInput) kernel.numbers.push_back(value);
  }
  const std::string text = group_description(graph, kernel);
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  kernel.key = fmt::format("group_{:016x}{:016x}", hash.high64, hash.low64);
  return kernel;
}

}  // namespace graft::compiler
