// src/compiler/analysis/call_rules.cpp: what passes and kernels rely on in a call of an operator
// that they ask for by name.
#include <algorithm>
#include <string_view>

#include "compiler/analysis/verifier.h"

namespace graft::compiler {
namespace {

using enum OperatorId;

// Operands that are tensors wherever an operator has them.
constexpr std::string_view kTensors[] = {"self",   "mat1",  "mat2",   "batch1", "batch2",
                                         "input",  "query", "key",    "value",  "grad_output",
                                         "output", "index", "indices"};

class CallRules {
 public:
  CallRules(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const char* broken() const {
    if (node_.op->id == kUnnamed) return nullptr;
    if (node_.results.empty()) return "it has no result";
    if (node_.results[0] == kNone && !has_wanted_results()) return "its first result is none";
    if (node_.op->cls != OpClass::kPointwise && !has_tensors()) return "an operand is no tensor";
    if (node_.op->cls == OpClass::kMatmul) return of_product();
    if (node_.op->cls == OpClass::kReduction) {
      const bool fits = result().size() <= sizes(operand(node_, "self")).size();
      return fits ? nullptr : "the result has more dimensions than what it reduces";
    }
    if (keeps_sizes()) return of_same_sizes();
    if (node_.is(kConvolution)) return of_convolution();
    if (node_.is(kEmbedding)) return has("weight", 2) ? nullptr : "its weight is no matrix";
    if (node_.is(kAttention)) {
      const bool fits = has("query", 4) && has("key", 4) && has("value", 4);
      return fits ? nullptr : "query, key and value have not 4 dimensions";
    }
    return nullptr;
  }

 private:
  const std::vector<Size>& sizes(ValueId value) const { return graph_.values[value].type.sizes; }
  const std::vector<Size>& result() const { return sizes(node_.results[0]); }

  // Whether an argument says which results are wanted, as that of a gradient's operator does.
  bool has_wanted_results() const {
    return std::ranges::any_of(node_.op->parameters, [](const SchemaArgument& one) {
      return one.name == "output_mask" || one.name == "grad_input_mask";
    });
  }

  bool has_tensors() const {
    return std::ranges::all_of(node_.op->parameters, [&](const SchemaArgument& one) {
      const bool tensor = std::ranges::find(kTensors, one.name) != std::end(kTensors);
      const bool list = node_.is(kIndex, kIndexPut, kIndexPutInto) && one.name == "indices";
      const bool number = node_.is(kSelect) && one.name == "index";
      return !tensor || list || number || operand(node_, one.name) != kNone;
    });
  }

  bool has(std::string_view name, size_t rank) const {
    const ValueId value = operand(node_, name);
    return value != kNone && sizes(value).size() == rank;
  }

  static bool may_equal(const Size& a, const Size& b) {
    return !a.is_constant() || !b.is_constant() || a == b;
  }

  const char* of_product() const {
    const bool batched = node_.is(kBmm, kBaddbmm), adds = node_.is(kAddmm, kBaddbmm);
    const size_t rank = batched ? 3 : 2, first = adds ? 1 : 0;
    const ValueId left = operand(node_, first), right = operand(node_, first + 1);
    const std::vector<Size>&a = sizes(left), &b = sizes(right), &c = result();
    if (a.size() != rank || b.size() != rank || c.size() != rank) {
      return "a factor or the product has another number of dimensions";
    }
    const size_t rows = rank - 2, columns = rank - 1;
    const bool fits = may_equal(a[columns], b[rows]) && may_equal(a[rows], c[rows]) &&
                      may_equal(b[columns], c[columns]) &&
                      (!batched || (may_equal(a[0], b[0]) && may_equal(a[0], c[0])));
    return fits ? nullptr : "the sizes of its factors and its product contradict each other";
  }

  bool keeps_sizes() const {
    return node_.op->cls == OpClass::kCopy ||
           node_.is(kFlip, kCumsum, kSoftmax, kSoftmaxBackward, kLogSoftmax, kLogSoftmaxBackward,
                    kLayerNorm, kNativeDropout);
  }

  const char* of_same_sizes() const {
    const ValueId given = operand(node_, 0);
    if (given == kNone) return "an operand is no tensor";
    const bool fits = std::ranges::equal(sizes(given), result(), may_equal);
    return fits ? nullptr : "the result has other sizes than the operand";
  }

  const char* of_convolution() const {
    const size_t rank = result().size();
    const bool fits = rank >= 3 && has("input", rank) && has("weight", rank);
    return fits ? nullptr : "its input, weight and result have not one number of dimensions";
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

const char* broken_rule(const Graph& graph, const Node& node) {
  return CallRules(graph, node).broken();
}

}  // namespace graft::compiler
