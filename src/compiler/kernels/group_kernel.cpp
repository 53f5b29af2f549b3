// src/compiler/kernels/group_kernel.cpp: the generated kernel of a group of nodes.
#include "compiler/kernels/group_kernel.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "codegen/cache/toolchain.h"
#include "codegen/ir/builder.h"
#include "codegen/math/math.h"
#include "compiler/analysis/op_row_binding.h"
#include "compiler/analysis/reduction.h"
#include "compiler/kernels/group_description.h"
#include "kernels/launch/line_loop.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using namespace ir;

// Every node has a formula for the bits of one half type.
bool works_on_bits(const Graph& graph, const GroupKernel& kernel) {
  const graft_dtype half = graph.values[graph.nodes[kernel.nodes[0]].results[0]].type.dtype;
  const auto takes_bits = [&](const Argument& input) {
    if (input.kind != Argument::Kind::kValue) return false;
    const GraphValue& given = graph.values[input.value];
    return given.type.dtype == half && !is_number(given);
  };
  return is_half(half) && std::ranges::all_of(kernel.nodes, [&](NodeId id) {
           const Node& node = graph.nodes[id];
           OpRowBinding use;
           if (reversal(graph, node)) return takes_bits(node.arguments[0]);
           return graph.values[node.results[0]].type.dtype == half && row_use(graph, node, &use) &&
                  static_cast<bool>(use.row->half_formula) &&
                  std::ranges::all_of(use.inputs, takes_bits);
         });
}

class Writer {
 public:
  Writer(const Graph& graph, const GroupKernel& kernel)
      : graph_(graph),
        kernel_(kernel),
        loops_(kernel.loops),
        bits_(works_on_bits(graph, kernel)),
        b_(kernel.key, family(kernel)) {
    for (NodeId id : kernel.nodes) {
      for (ValueId result : graph.nodes[id].results) maker_[result] = id;
    }
  }

  ir::Kernel write() {
    declare();
    LoopNest nest(b_, kernel_.shape());
    nest_ = &nest;
    if (loops_.reduces) {
      write_rows();
    } else {
      nest.each([&] { begin_row(); }, [&](Value i) { store_full(i); });
    }
    return b_.finish();
  }

 private:
  using Memo = std::map<ValueId, Value>;

  static ir::Family family(const GroupKernel& kernel) {
    return kernel.shares_rows() ? ir::Family::kGpuLike : ir::Family::kCpuLike;
  }

  graft_dtype stored(ValueId value) const {
    return bits_ ? GRAFT_INT16 : graph_.values[value].type.dtype;
  }
  ir::Type type_of(ValueId value) const { return ir::compute_type(stored(value)); }

  void declare() {
    for (const GroupTensor& tensor : loops_.tensors) {
      const graft_dtype dtype = stored(tensor.value);
      addresses_.push_back(tensor.written ? b_.write(dtype) : b_.read(dtype));
    }
    for (ValueId value : kernel_.numbers) {
      scalars_.emplace(value, b_.scalar(graph_.values[value].type.dtype));
    }
  }

  // What a tensor's elements are in the kernel: its value, or what a node that reverses it gives.
  ValueId read_as(const GroupTensor& tensor) const {
    return tensor.reversed_by == kNone ? tensor.value : graph_.nodes[tensor.reversed_by].results[0];
  }

  // What is one element for the whole row.
  void begin_row() {
    fixed_.clear();
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (tensor.written || !is_row(tensor)) continue;
      fixed_.emplace(read_as(tensor), addresses_[t].load(nest_->first(static_cast<int>(t))));
    }
  }

  // A line for all reductions, with places for as many as run along together.
  void write_rows() {
    std::map<ir::Type, std::vector<ir::Type>> types;
    for (NodeId id : kernel_.nodes) {
      LastReduction reduction;
      if (!last_reduction(graph_, graph_.nodes[id], &reduction)) continue;
      const ir::Type type = type_of(graph_.nodes[id].results[0]);
      if (types[type].size() < kTogether) types[type].push_back(type);
    }
    for (const auto& [type, places] : types) {
      lines_.emplace(std::piecewise_construct, std::forward_as_tuple(type),
                     std::forward_as_tuple(b_, kernel_.deal, places));
    }
    LineLoop& line = lines_.begin()->second;
    line.lines(nest_->rows(), nest_->rows_per_item(), [&](Value row) {
      nest_->place(row);
      begin_row();
      reduce_all();
      if (any_full_output()) line.each(nest_->length(), [&](Value i) { store_full(i); });
      line.once([&] { store_rows(); });
    });
  }

  Value cast_number(ir::Type type, double value) {
    return type == ir::Type::kBool ? b_.boolean(value != 0) : b_.constant(type, value);
  }

  Value element(size_t t, Value i) const { return nest_->element(static_cast<int>(t), i); }

  Value load(ValueId value, Value i) {
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (!tensor.written && read_as(tensor) == value) return addresses_[t].load(element(t, i));
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
    const ValueId result = node.results[0];
    if (reversal(graph_, node)) return load(result, i);
    OpRowBinding use;
    row_use(graph_, node, &use);
    const ir::Type type = bits_ ? ir::Type::kI16 : ir::compute_type(use.compute);
    std::vector<Value> inputs, scalars;
    for (size_t k = 0; k < use.inputs.size(); ++k) {
      const ir::Type wanted = use.row->conditions >> k & 1 ? ir::Type::kBool : type;
      double given = 0;
      const bool plain = number_of(use.inputs[k], &given);
      inputs.push_back(plain ? cast_number(wanted, given)
                             : cast(wanted, operand(node, use.inputs[k].value, i, memo)));
    }
    for (double scalar : use.scalars) scalars.push_back(cast_number(type, scalar));
    const Formula& formula = bits_ ? use.row->half_formula : use.row->formula;
    return cast(type_of(result), formula(inputs, scalars)[0]);
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
    std::vector<std::pair<LastReduction, ValueId>> batch;
    for (size_t n = first; n < kernel_.nodes.size() && batch.size() < kTogether; ++n) {
      const Node& node = graph_.nodes[kernel_.nodes[n]];
      const ValueId result = node.results[0];
      LastReduction reduction;
      if (!last_reduction(graph_, node, &reduction) || fixed_.contains(result)) continue;
      if (n > first && (waits(reduction.input) || type_of(result) != type_of(batch[0].second))) {
        continue;
      }
      batch.emplace_back(reduction, result);
    }
    const std::vector<Value> totals = reduced(batch);
    for (size_t k = 0; k < batch.size(); ++k) {
      const auto& [reduction, result] = batch[k];
      const bool mean = reduction.fold == Fold::kMean;
      const Value total = totals[k];
      fixed_.emplace(result, mean ? total / cast(total.type(), nest_->length()) : total);
    }
  }

  Value start(const LastReduction& reduction, ValueId result) {
    const double infinity = std::numeric_limits<double>::infinity();
    const bool sums = reduction.fold == Fold::kSum || reduction.fold == Fold::kMean;
    const double first = sums ? 0 : reduction.fold == Fold::kMax ? -infinity : infinity;
    return b_.constant(type_of(result), first);
  }

  static Value join(const LastReduction& reduction, Value a, Value b) {
    if (reduction.fold == Fold::kMax) return maximum(a, b);
    return reduction.fold == Fold::kMin ? minimum(a, b) : a + b;
  }

  std::vector<Value> reduced(const std::vector<std::pair<LastReduction, ValueId>>& batch) {
    std::vector<Value> firsts;
    for (const auto& [reduction, result] : batch) firsts.push_back(start(reduction, result));
    const auto combine = [&](const std::vector<Value>& a, const std::vector<Value>& b) {
      std::vector<Value> joined;
      for (size_t k = 0; k < batch.size(); ++k) joined.push_back(join(batch[k].first, a[k], b[k]));
      return joined;
    };
    const auto elements = [&](Value i) {
      Memo memo;
      std::vector<Value> found;
      for (size_t k = 0; k < batch.size(); ++k) {
        found.push_back(cast(firsts[k].type(), evaluate(batch[k].first.input, i, &memo)));
      }
      return found;
    };
    return lines_.at(firsts[0].type())
        .fold(firsts, nest_->length(), elements, combine, kernel_.brief() ? 8 : 64);
  }

  // One element for each row.
  bool is_row(const GroupTensor& tensor) const { return tensor.strides.back().is(0); }
  bool is_row_output(const GroupTensor& tensor) const { return loops_.reduces && is_row(tensor); }

  bool any_full_output() const {
    return std::ranges::any_of(loops_.tensors, [&](const GroupTensor& tensor) {
      return tensor.written && !is_row_output(tensor);
    });
  }

  void store_rows() {
    for (size_t t = 0; t < loops_.tensors.size(); ++t) {
      const GroupTensor& tensor = loops_.tensors[t];
      if (!tensor.written || !is_row_output(tensor)) continue;
      Memo memo;
      addresses_[t].store(nest_->first(static_cast<int>(t)),
                          evaluate(tensor.value, b_.i64(0), &memo));
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

  static constexpr size_t kTogether = 2;  // accumulators that fit the registers

  const Graph& graph_;
  const GroupKernel& kernel_;
  const GroupLoops& loops_;
  const bool bits_;
  Builder b_;
  LoopNest* nest_ = nullptr;
  std::map<ir::Type, LineLoop> lines_;  // of reductions to the type
  std::map<ValueId, NodeId> maker_;
  std::vector<Address> addresses_;
  std::map<ValueId, Value> scalars_;
  std::map<ValueId, Value> fixed_;  // of the row
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
  if (kernel.numbers.size() > kMaxGroupTensors) return std::nullopt;
  const std::string text = group_description(graph, kernel);
  kernel.key = "group_" + hash_text(text);
  return kernel;
}

}  // namespace graft::compiler
