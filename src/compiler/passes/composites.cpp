// src/compiler/passes/composites.cpp: the pass that writes softmax and layer norm as smaller nodes.
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

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
    first_ = static_cast<NodeId>(graph_.nodes.size());
    rewriter_.begin(id);
    switch (node.op->id) {
      case kSoftmax:
      case kLogSoftmax:
        return softmax(node);
      case kSoftmaxBackward:
      case kLogSoftmaxBackward:
        return softmax_gradient(node);
      case kLayerNorm:
        return layer_norm(node);
      default:
        return false;
    }
  }

  bool last(const Node& node, const TensorType& type) const {
    const Argument* dim = argument(node, "dim");
    if (dim == nullptr || dim->kind != Argument::Kind::kInteger || type.sizes.empty()) return false;
    return dim->integer.is(-1) || dim->integer.is(static_cast<int64_t>(type.sizes.size()) - 1);
  }

  bool floats(ValueId value) const {
    const graft_dtype dtype = graph_.values[value].type.dtype;
    return is_floating(dtype) && !graph_.values[value].type.sizes.empty();
  }

  // In the type that is computed in.
  ValueId wide(ValueId value) {
    const bool longest = graph_.values[value].type.dtype == GRAFT_FLOAT64;
    return rewriter_.cast(value, longest ? GRAFT_FLOAT64 : GRAFT_FLOAT32);
  }

  // Along the last dimensions, whose sizes become 1.
  ValueId reduce(OperatorId op, ValueId value, int64_t dims, const char* name) {
    const TensorType& type = graph_.values[value].type;
    std::vector<Size> rows = type.sizes, list;
    for (int64_t dim = -dims; dim < 0; ++dim) {
      list.emplace_back(dim);
      rows[rows.size() - static_cast<size_t>(-dim)] = 1;
    }
    return rewriter_.add(op,
                         {Argument::of(value), Argument::of_sizes(list), Argument::of_truth(true)},
                         name, TensorType::row_major(type.dtype, rows));
  }

  // The old result becomes what the last node computes, or a cast of it.
  void take_over(const Node& node, size_t result, ValueId value) {
    const ValueId old = node.results[result];
    if (old == kNone) return;
    value = rewriter_.cast(value, graph_.values[old].type.dtype);
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

  bool softmax(const Node& node) {
    const ValueId x = operand(node, 0);
    if (x == kNone || !floats(x) || !last(node, graph_.values[x].type)) return false;
    const ValueId given = wide(x), most = reduce(kAmax, given, 1, "max");
    const ValueId less = rewriter_.compute(kSubTensor, "shifted", given, most);
    const ValueId power = rewriter_.compute(kExp, "exp", less), sum = reduce(kSum, power, 1, "sum");
    if (node.is(kSoftmax)) {
      take_over(node, 0, rewriter_.compute(kDivTensor, "ratio", power, sum));
    } else {
      const ValueId log = rewriter_.compute(kLog, "log", sum);
      take_over(node, 0, rewriter_.compute(kSubTensor, "difference", less, log));
    }
    return true;
  }

  bool softmax_gradient(const Node& node) {
    const ValueId gradient = operand(node, 0), result = operand(node, 1);
    if (gradient == kNone || result == kNone || !floats(gradient)) return false;
    if (!last(node, graph_.values[result].type)) return false;
    const ValueId g = wide(gradient), y = wide(result);
    const bool plain = node.is(kSoftmaxBackward);
    const ValueId each = plain ? rewriter_.compute(kMulTensor, "product", g, y) : g;
    const ValueId sum = reduce(kSum, each, 1, "sum");
    const ValueId chance = plain ? y : rewriter_.compute(kExp, "exp", y);
    const ValueId part = rewriter_.compute(kMulTensor, "part", chance, sum);
    take_over(node, 0, rewriter_.compute(kSubTensor, "difference", each, part));
    return true;
  }

  bool layer_norm(const Node& node) {
    const ValueId x = operand(node, 0), weight = operand(node, "weight"),
                  bias = operand(node, "bias");
    const Argument *shape = argument(node, "normalized_shape"), *epsilon = argument(node, "eps");
    if (x == kNone || !floats(x) || shape == nullptr || epsilon == nullptr) return false;
    const int64_t dims = static_cast<int64_t>(shape->list.size());
    if (dims == 0 || dims > static_cast<int64_t>(graph_.values[x].type.sizes.size())) return false;
    // Longer rows are summed in blocks, by the library's kernel.
    const std::vector<Size>& sizes = graph_.values[x].type.sizes;
    if (graph_.hint(product({sizes.end() - dims, sizes.end()})) > kLongestRow) return false;
    const ValueId given = wide(x);
    // Deviations from a rounded mean, corrected for what it is off by (kernels/reduce/moments.h).
    const ValueId near = reduce(kMean, given, dims, "near");
    const ValueId apart = rewriter_.compute(kSubTensor, "apart", given, near);
    const ValueId off = reduce(kMean, apart, dims, "off");
    const ValueId squares = rewriter_.compute(kMulTensor, "squares", apart, apart);
    const ValueId spread = reduce(kMean, squares, dims, "spread");
    const ValueId mean = rewriter_.compute(kAddTensor, "mean", near, off);
    const ValueId centred = rewriter_.compute(kSubTensor, "centred", apart, off);
    const ValueId less = rewriter_.compute(kMulTensor, "less", off, off);
    const ValueId rest = rewriter_.compute(kSubTensor, "rest", spread, less);
    const ValueId variance = rewriter_.compute(kRelu, "variance", rest);
    const ValueId shifted = rewriter_.compute(kAddScalar, "shifted", variance, *epsilon);
    const ValueId scale = rewriter_.compute(kRsqrt, "scale", shifted);
    ValueId y = rewriter_.compute(kMulTensor, "normal", centred, scale);
    if (weight != kNone) y = rewriter_.compute(kMulTensor, "weighted", y, wide(weight));
    if (bias != kNone) y = rewriter_.compute(kAddTensor, "biased", y, wide(bias));
    const ValueId made[] = {y, mean, scale};
    for (size_t i = 0; i < 3 && i < node.results.size(); ++i) take_over(node, i, made[i]);
    return true;
  }

  Graph& graph_;
  Rewriter rewriter_;
  NodeId first_ = 0;  // of the nodes that stand for the one being expanded
};

}  // namespace

int expand_composites(Graph& graph) {
  const int changes = Composites(graph).run();
  if (changes > 0) graph.compact();
  return changes;
}

}  // namespace graft::compiler
