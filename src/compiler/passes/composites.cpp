// src/compiler/passes/composites.cpp: the pass that writes softmax and layer norm as smaller nodes.
#include "compiler/analysis/operators.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

// Elements of a row whose sums need no blocks (kernels/reduce/moments.h).
constexpr int64_t kLongestRow = 4096;

class Composites {
 public:
  explicit Composites(Graph& graph) : graph_(graph), rewriter_(graph) {}

  int run() {
    int changes = 0;
    const std::vector<NodeId> order = graph_.order;
    for (NodeId id : order) {
      if (expand(id)) {
        ++changes;
      } else {
        rewriter_.keep(id);
      }
    }
    rewriter_.finish();
    return changes;
  }

 private:
  bool expand(NodeId id) {
    const Node node = graph_.nodes[id];
    if (node.has_effect() || node.results.empty() || node.results[0] == kNone) return false;
    if (!graph_.values[node.results[0]].type.row_major()) return false;
    if (node.op == "aten._softmax.default" || node.op == "aten._log_softmax.default") {
      return softmax(id, node);
    }
    if (node.op == "aten._softmax_backward_data.default" ||
        node.op == "aten._log_softmax_backward_data.default") {
      return softmax_gradient(id, node);
    }
    return node.op == "aten.native_layer_norm.default" && layer_norm(id, node);
  }

  bool last(const Node& node, size_t position, const TensorType& type) const {
    const Argument* dim = argument(node, position);
    if (dim == nullptr || dim->kind != Argument::Kind::kInteger || type.sizes.empty()) return false;
    return dim->integer.is(-1) || dim->integer.is(static_cast<int64_t>(type.sizes.size()) - 1);
  }

  bool floats(ValueId value) const {
    const graft_dtype dtype = graph_.values[value].type.dtype;
    return is_floating(dtype) && !graph_.values[value].type.sizes.empty();
  }

  void begin(NodeId id, ValueId value) {
    rewriter_.begin(id);
    const TensorType& type = graph_.values[value].type;
    compute_ = type.dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
    sizes_ = type.sizes;
    rows_ = sizes_;
  }

  ValueId wide(ValueId value) {
    const char* word = compute_ == GRAFT_FLOAT64 ? "float64" : "float32";
    return cast_to(graph_, rewriter_, value, compute_, word);
  }

  ValueId full(const char* op, std::vector<Argument> arguments, const char* name) {
    return rewriter_.add(op, std::move(arguments), name, compute_, sizes_);
  }
  ValueId full(const char* op, ValueId a, ValueId b, const char* name) {
    return full(op, {Argument::of(a), Argument::of(b)}, name);
  }

  ValueId row(const char* op, std::vector<Argument> arguments, const char* name) {
    return rewriter_.add(op, std::move(arguments), name, compute_, rows_);
  }

  // Along the last dimensions, whose sizes become 1.
  ValueId reduce(const char* op, ValueId value, int64_t dims, const char* name) {
    Argument list;
    list.kind = Argument::Kind::kList;
    for (int64_t dim = -dims; dim < 0; ++dim) {
      list.list.push_back(Argument::of_integer(dim));
      rows_[rows_.size() - static_cast<size_t>(-dim)] = 1;
    }
    return rewriter_.add(op, {Argument::of(value), list, Argument::of_truth(true)}, name, compute_,
                         rows_);
  }

  // The old result becomes what the last node computes, or a cast of it.
  void take_over(const Node& node, size_t result, ValueId value) {
    const ValueId old = node.results[result];
    if (old == kNone) return;
    const graft_dtype dtype = graph_.values[old].type.dtype;
    if (dtype != graph_.values[value].type.dtype) {
      value = cast_to(graph_, rewriter_, value, dtype, graft::name_of(dtype));
    }
    const NodeId maker = graph_.values[value].node;
    graph_.nodes[maker].results[0] = old;
    graph_.nodes[maker].notes = node.notes;
    graph_.values[old].node = maker;
    graph_.values[value].node = kNone;
    // What was already written with the new value's name reads the old one.
    for (NodeId id = first_; id < graph_.nodes.size(); ++id) {
      each_value(graph_.nodes[id].arguments, [&](ValueId& used) {
        if (used == value) used = old;
      });
    }
  }

  bool softmax(NodeId id, const Node& node) {
    const ValueId x = operand(node, 0);
    if (x == kNone || !floats(x) || !last(node, 1, graph_.values[x].type)) return false;
    first_ = static_cast<NodeId>(graph_.nodes.size());
    begin(id, x);
    const ValueId given = wide(x);
    const ValueId most = reduce("aten.amax.default", given, 1, "max");
    const ValueId less = full("aten.sub.Tensor", given, most, "shifted");
    const ValueId power = full("aten.exp.default", {Argument::of(less)}, "exp");
    const ValueId sum = reduce("aten.sum.dim_IntList", power, 1, "sum");
    if (node.op == "aten._softmax.default") {
      take_over(node, 0, full("aten.div.Tensor", power, sum, "ratio"));
    } else {
      const ValueId log =
          rewriter_.add("aten.log.default", {Argument::of(sum)}, "log", compute_, rows_);
      take_over(node, 0, full("aten.sub.Tensor", less, log, "difference"));
    }
    return true;
  }

  bool softmax_gradient(NodeId id, const Node& node) {
    const ValueId gradient = operand(node, 0), result = operand(node, 1);
    if (gradient == kNone || result == kNone || !floats(gradient)) return false;
    if (!last(node, 2, graph_.values[result].type)) return false;
    first_ = static_cast<NodeId>(graph_.nodes.size());
    begin(id, result);
    const ValueId g = wide(gradient), y = wide(result);
    if (node.op == "aten._softmax_backward_data.default") {
      const ValueId each = full("aten.mul.Tensor", g, y, "product");
      const ValueId sum = reduce("aten.sum.dim_IntList", each, 1, "sum");
      const ValueId part = full("aten.mul.Tensor", y, sum, "part");
      take_over(node, 0, full("aten.sub.Tensor", each, part, "difference"));
    } else {
      const ValueId sum = reduce("aten.sum.dim_IntList", g, 1, "sum");
      const ValueId chance = full("aten.exp.default", {Argument::of(y)}, "exp");
      const ValueId part = full("aten.mul.Tensor", chance, sum, "part");
      take_over(node, 0, full("aten.sub.Tensor", g, part, "difference"));
    }
    return true;
  }

  bool layer_norm(NodeId id, const Node& node) {
    const ValueId x = operand(node, 0), weight = operand(node, 2), bias = operand(node, 3);
    const Argument* shape = argument(node, 1);
    const Argument* epsilon = argument(node, 4, "eps");
    if (x == kNone || !floats(x) || shape == nullptr || epsilon == nullptr) return false;
    const int64_t dims = static_cast<int64_t>(shape->list.size());
    if (dims == 0 || dims > static_cast<int64_t>(graph_.values[x].type.sizes.size())) return false;
    // Longer rows are summed in blocks, by the library's kernel.
    const std::vector<Size>& sizes = graph_.values[x].type.sizes;
    if (graph_.hint(product({sizes.end() - dims, sizes.end()})) > kLongestRow) return false;
    first_ = static_cast<NodeId>(graph_.nodes.size());
    begin(id, x);
    const ValueId given = wide(x);
    // Deviations from a rounded mean, corrected for what it is off by (kernels/reduce/moments.h).
    const ValueId near = reduce("aten.mean.dim", given, dims, "near");
    const ValueId apart = full("aten.sub.Tensor", given, near, "apart");
    const ValueId off = reduce("aten.mean.dim", apart, dims, "off");
    const ValueId squares = full("aten.mul.Tensor", apart, apart, "squares");
    const ValueId spread = reduce("aten.mean.dim", squares, dims, "spread");
    const ValueId mean = row("aten.add.Tensor", {Argument::of(near), Argument::of(off)}, "mean");
    const ValueId centred = full("aten.sub.Tensor", apart, off, "centred");
    const ValueId less = row("aten.mul.Tensor", {Argument::of(off), Argument::of(off)}, "less");
    const ValueId rest = row("aten.sub.Tensor", {Argument::of(spread), Argument::of(less)}, "rest");
    const ValueId variance = row("aten.relu.default", {Argument::of(rest)}, "variance");
    const ValueId shifted = row("aten.add.Scalar", {Argument::of(variance), *epsilon}, "shifted");
    const ValueId scale = row("aten.rsqrt.default", {Argument::of(shifted)}, "scale");
    ValueId y = full("aten.mul.Tensor", centred, scale, "normal");
    if (weight != kNone) y = full("aten.mul.Tensor", y, wide(weight), "weighted");
    if (bias != kNone) y = full("aten.add.Tensor", y, wide(bias), "biased");
    take_over(node, 0, y);
    if (node.results.size() > 1) take_over(node, 1, mean);
    if (node.results.size() > 2) take_over(node, 2, scale);
    return true;
  }

  Graph& graph_;
  Rewriter rewriter_;
  NodeId first_ = 0;  // of the nodes that stand for the one being expanded
  graft_dtype compute_ = GRAFT_FLOAT32;
  std::vector<Size> sizes_, rows_;
};

}  // namespace

int expand_composites(Graph& graph) {
  const int changes = Composites(graph).run();
  if (changes > 0) graph.compact();
  return changes;
}

}  // namespace graft::compiler
