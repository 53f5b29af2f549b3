// src/compiler/passes/attention_pattern.cpp: the pass that finds attention among products and a
// softmax.
#include <cmath>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/group_shape.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/analysis/views.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

// softmax(scale * query key^T + bias) value; three matrices for each of a batch, as products have
// them.
struct Found {
  ValueId query = kNone, key = kNone, value = kNone;  // key: transposed, [batch, depth, columns]
  ValueId bias = kNone, hidden = kNone;               // hidden: true where a score is -inf
  double scale = 1;
  std::vector<Size> scores;  // as the softmax has them
};

class AttentionPattern {
 public:
  explicit AttentionPattern(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    return rewriter_.each([&](NodeId id) {
      Found found;
      const bool matched = matches(graph_.nodes[id], &found);
      if (matched) replace(id, found);
      return matched;
    });
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.values[value].type; }

  const Node* maker(ValueId value) const { return effects_.sole_maker(graph_, value); }

  // Whether a node gives its operand's elements in the same order.
  bool passes_on(const Node& node) const {
    const ValueId from = operand(node, 0);
    if (from == kNone || node.results.size() != 1 || node.results[0] == kNone) return false;
    const TensorType &before = type(from), &after = type(node.results[0]);
    if (before.dtype != after.dtype || !before.row_major() || !after.row_major()) return false;
    return node.is(kClone, kExpand) ? before.sizes == after.sizes : reshapes(node);
  }

  ValueId reshaped(ValueId value) const {
    for (const Node* node = maker(value); node != nullptr && passes_on(*node);) {
      value = operand(*node, 0);
      node = maker(value);
    }
    return value;
  }

  bool is_infinity(ValueId value) const {
    if (value == kNone) return false;
    const GraphValue& given = graph_.values[value];
    return given.origin == Origin::kConstant && given.data.size() == 1 &&
           given.data[0] == -INFINITY && given.type.dtype == GRAFT_FLOAT32;
  }

  static bool fills(const Node& node) {
    double number;
    return node.is(kMaskedFill) && node.arguments.size() == 3 &&
           number_of(node.arguments[2], &number) && number == -INFINITY;
  }

  bool scales(const Node& node, double* scale) const {
    const bool divides = node.is(kDivTensor, kDivScalar);
    if (!divides && !node.is(kMulTensor, kMulScalar)) return false;
    if (node.arguments.size() != 2) return false;
    double number;
    if (!number_of(node.arguments[1], &number)) {
      const ValueId given = operand(node, 1);
      if (given == kNone) return false;
      const GraphValue& constant = graph_.values[given];
      const bool one = constant.origin == Origin::kConstant && constant.data.size() == 1;
      if (!one || !constant.type.sizes.empty()) return false;
      number = constant.data[0];
    }
    *scale = divides ? *scale / number : *scale * number;
    return std::isfinite(*scale);
  }

  // Repeats over the scores, of which it has the last dimensions.
  bool spreads(ValueId value, const std::vector<Size>& scores) const {
    return effects_.stable(value) && surely_broadcasts(type(value).sizes, scores);
  }

  // The scores before a mask: added, or -inf where it says so. kNone: the node masks nothing.
  ValueId masked(const Node& node, Found* found) const {
    const std::vector<Size>& sizes = type(node.results[0]).sizes;
    if (node.is(kAddTensor) && node.arguments.size() == 2) {
      for (size_t i : {0, 1}) {
        const ValueId scores = operand(node, i), other = operand(node, 1 - i);
        if (scores == kNone || other == kNone || type(scores).sizes != sizes) continue;
        const Node* before = maker(scores);
        double ignored = 1;
        const bool leads = before != nullptr &&
                           (before->is(kBmm) || passes_on(*before) || scales(*before, &ignored));
        if (!leads || type(other).dtype != GRAFT_FLOAT32 || !spreads(other, sizes)) continue;
        found->bias = other;
        return scores;
      }
    }
    const bool where = node.is(kWhere) && is_infinity(operand(node, 1));
    if (!where && !fills(node)) return kNone;
    const ValueId hidden = operand(node, where ? 0 : 1), scores = operand(node, where ? 2 : 0);
    if (hidden == kNone || scores == kNone || type(scores).sizes != sizes) return kNone;
    if (type(hidden).dtype != GRAFT_BOOL || !spreads(hidden, sizes)) return kNone;
    found->hidden = hidden;
    return scores;
  }

  // From the softmax's operand back to the product.
  const Node* product_behind(ValueId scores, Found* found) const {
    found->scores = type(scores).sizes;
    while (const Node* node = maker(scores)) {
      if (node->results.size() != 1 || type(scores).dtype != GRAFT_FLOAT32) return nullptr;
      if (node->is(kBmm)) return node;
      const bool plain = found->scale == 1 && type(scores).sizes == found->scores;
      const bool unmasked = found->bias == kNone && found->hidden == kNone;
      if (const ValueId before = unmasked && plain ? masked(*node, found) : kNone;
          before != kNone) {
        scores = before;
      } else if (passes_on(*node) || scales(*node, &found->scale)) {
        scores = operand(*node, 0);
      } else {
        return nullptr;
      }
    }
    return nullptr;
  }

  bool matches(const Node& node, Found* found) const {
    if (!node.is(kBmm) || node.has_effect()) return false;
    const Node* softmax = maker(reshaped(operand(node, 0)));
    if (softmax == nullptr || !softmax->is(kSoftmax)) return false;
    const ValueId scores = operand(*softmax, 0);
    if (scores == kNone || !type(scores).row_major()) return false;
    const auto rank = static_cast<int64_t>(type(scores).sizes.size());
    double dimension;
    if (!number_of(*softmax, "dim", &dimension)) return false;
    if (rank < 3 || rank > 4 || (dimension != -1 && dimension != static_cast<double>(rank - 1))) {
      return false;
    }
    const Node* product = product_behind(scores, found);
    if (product == nullptr) return false;
    found->query = operand(*product, 0), found->key = operand(*product, 1);
    found->value = operand(node, 1);
    for (const ValueId one : {found->query, found->key, found->value}) {
      if (type(one).dtype != GRAFT_FLOAT32 || !effects_.stable(one)) return false;
    }
    const std::vector<Size>& flat = type(product->results[0]).sizes;
    return type(found->query).row_major() && type(operand(node, 0)).sizes == flat &&
           flat[1] == found->scores[rank - 2] && flat[2] == found->scores[rank - 1];
  }

  // [batch * heads, ...] as [batch, heads, ...].
  ValueId parted(ValueId of, const Found& found, const char* name) {
    const bool whole = found.scores.size() == 3;
    TensorType to = type(of);
    const Size heads = whole ? to.sizes[0] : found.scores[1];
    const Size batch = whole ? Size(1) : found.scores[0];
    to.sizes[0] = heads;
    to.sizes.insert(to.sizes.begin(), batch);
    to.strides.insert(to.strides.begin(), heads * to.strides[0]);
    const Argument sizes = Argument::of_sizes(to.sizes);
    return rewriter_.view(kView, of, {sizes}, name, std::move(to));
  }

  ValueId bias_of(const Found& found) {
    if (found.hidden == kNone) return found.bias;
    const auto number = [&](double value, const char* name) {
      return rewriter_.add(kFull, {Argument::of_sizes({}), Argument::of_number(value)}, name, {});
    };
    const ValueId never = number(-INFINITY, "hidden"), always = number(0, "seen");
    return rewriter_.add(kWhere,
                         {Argument::of(found.hidden), Argument::of(never), Argument::of(always)},
                         "bias", TensorType::row_major(GRAFT_FLOAT32, type(found.hidden).sizes));
  }

  void replace(NodeId id, const Found& found) {
    rewriter_.begin(id);
    const ValueId query = parted(found.query, found, "query");
    TensorType turned = type(found.key);
    std::swap(turned.sizes[1], turned.sizes[2]);
    std::swap(turned.strides[1], turned.strides[2]);
    const ValueId rows = rewriter_.view(
        kTranspose, found.key, {Argument::of_integer(Size(1)), Argument::of_integer(Size(2))},
        "keys", turned);
    const ValueId key = parted(rows, found, "key"), value = parted(found.value, found, "value");
    const ValueId bias = bias_of(found);
    const Argument scale = Argument::of_number(found.scale).named("scale");
    std::vector<Size> sizes = type(query).sizes;
    const std::vector<Size> sums(sizes.begin(), sizes.end() - 1);
    sizes.back() = type(value).sizes.back();
    const ValueId result =
        rewriter_.add(kAttention,
                      {Argument::of(query), Argument::of(key), Argument::of(value),
                       bias == kNone ? Argument() : Argument::of(bias), Argument::of_number(0),
                       Argument::of_truth(false), Argument::of_truth(false), scale},
                      "attention", TensorType::row_major(GRAFT_FLOAT32, sizes));
    const NodeId attention = graph_.values[result].node;
    const ValueId logsumexp = graph_.add_value(graph_.values[result].name + "_logsumexp",
                                               TensorType::row_major(GRAFT_FLOAT32, sums));
    graph_.values[logsumexp].node = attention;
    graph_.nodes[attention].results = {result, logsumexp, kNone, kNone, kNone,
                                       kNone,  kNone,     kNone, kNone};
    turn_into_view(graph_, id, result);
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int match_attention(Graph& graph) { return change_and_clean<AttentionPattern>(graph); }

}  // namespace graft::compiler
