// src/compiler/passes/product_joining.cpp: the pass that makes one product of several with one left
// factor.
#include <map>
#include <tuple>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

// Few rows are bound by reading the weights, and one long product reads them faster than several
// short ones: three of [1, 768] x [768, 768] take 1.3 to 1.8 times as long as one. From 128 rows on
// nothing is won, nor with weights that take longer to read than a product takes to begin; and the
// long product has a second copy of the weights.
constexpr int64_t kMostRows = 8, kMostBytes = 8 << 20;

struct Product {
  NodeId node = kNone;
  ValueId weight = kNone, bias = kNone;  // weight: [columns, depth]
};

class ProductJoining {
 public:
  explicit ProductJoining(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    std::map<std::tuple<ValueId, bool>, std::vector<Product>> joined;  // by left factor
    std::vector<const std::vector<Product>*> at(graph_.nodes.size());  // by the first of them
    for (NodeId id : graph_.order) {
      Product product;
      const ValueId left = left_factor(id, &product);
      if (left != kNone) joined[{left, product.bias != kNone}].push_back(product);
    }
    int changes = 0;
    for (const auto& [key, products] : joined) {
      if (products.size() < 2 || !small(products)) continue;
      at[products[0].node] = &products;
      changes += static_cast<int>(products.size());
    }
    rewriter_.each([&](NodeId id) {
      if (at[id] != nullptr) join(*at[id]);
      return 0;
    });
    return changes;
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.values[value].type; }

  bool small(const std::vector<Product>& products) const {
    Size bytes = 0;
    for (const Product& one : products) bytes = bytes + type(one.weight).extent();
    return bytes.is_constant() && bytes.constant_part() <= kMostBytes;
  }

  bool is_weight(ValueId value, size_t rank) const {
    const GraphValue& given = graph_.values[value];
    return given.origin == Origin::kInput && given.kind == InputKind::kParameter &&
           effects_.stable(value) && given.type.row_major() && given.type.sizes.size() == rank;
  }

  // kNone: nothing that can be joined.
  ValueId left_factor(NodeId id, Product* out) const {
    const Node& node = graph_.nodes[id];
    const bool adds = node.is(kAddmm);
    if ((!adds && !node.is(kMm)) || node.has_effect()) return kNone;
    if (node.arguments.size() != (adds ? 3u : 2u)) return kNone;
    const ValueId left = operand(node, adds ? 1 : 0), right = operand(node, adds ? 2 : 1);
    if (left == kNone || right == kNone || !effects_.stable(left)) return kNone;
    const Size& rows = type(left).sizes[0];
    if (!rows.is_constant() || rows.constant_part() > kMostRows) return kNone;
    *out = {id, turned(right), adds ? operand(node, 0) : kNone};
    if (out->weight == kNone || (adds && !is_weight(out->bias, 1))) return kNone;
    return effects_.stable(node.results[0]) && type(node.results[0]).row_major() ? left : kNone;
  }

  // The weight whose transpose a factor is.
  ValueId turned(ValueId factor) const {
    const NodeId id = graph_.values[factor].node;
    if (id == kNone || graph_.nodes[id].views == kNone || !graph_.nodes[id].writes.empty()) {
      return kNone;
    }
    const ValueId weight = graph_.nodes[id].views;
    if (!is_weight(weight, 2)) return kNone;
    const TensorType &from = type(weight), &to = type(factor);
    const bool turns = to.sizes.size() == 2 && to.sizes[0] == from.sizes[1] &&
                       to.sizes[1] == from.sizes[0] && to.strides[0] == from.strides[1] &&
                       to.strides[1] == from.strides[0];
    return turns ? weight : kNone;
  }

  ValueId concatenated(const std::vector<Product>& products, ValueId Product::*which,
                       const char* name, const std::vector<Size>& sizes) {
    std::vector<Argument> list;
    for (const Product& one : products) list.push_back(Argument::of(one.*which));
    return rewriter_.add(kCat, {Argument::of_list(list), Argument::of_integer(0)}, name,
                         TensorType::row_major(type(products[0].*which).dtype, sizes));
  }

  void join(const std::vector<Product>& products) {
    const Node first = graph_.nodes[products[0].node];
    const bool adds = products[0].bias != kNone;
    const ValueId left = operand(first, adds ? 1 : 0);
    const Size rows = type(left).sizes[0], depth = type(left).sizes[1];
    Size columns(0);
    for (const Product& one : products) columns = columns + type(one.weight).sizes[0];
    rewriter_.begin(products[0].node);
    const ValueId weight = concatenated(products, &Product::weight, "weights", {columns, depth});
    const graft_dtype dtype = type(weight).dtype;
    const ValueId right =
        rewriter_.view(kT, weight, {}, "right", {dtype, {depth, columns}, {Size(1), depth}});
    std::vector<Argument> factors = {Argument::of(left), Argument::of(right)};
    if (adds) {
      const ValueId bias = concatenated(products, &Product::bias, "biases", {columns});
      factors.insert(factors.begin(), Argument::of(bias));
    }
    const ValueId whole =
        rewriter_.add(first.op, factors, "joined", TensorType::row_major(dtype, {rows, columns}));
    Size from(0);
    for (const Product& one : products) from = take(one.node, whole, from);
  }

  // Makes a node what was computed for it: columns of the joined product.
  Size take(NodeId id, ValueId whole, const Size& from) {
    const ValueId result = graph_.nodes[id].results[0];
    const std::vector<Size> sizes = type(result).sizes;
    Size to = from + sizes[1];
    const ValueId part = rewriter_.view(
        kSlice, whole,
        {Argument::of_integer(1), Argument::of_integer(from), Argument::of_integer(to)}, "columns",
        {type(whole).dtype, sizes, type(whole).strides});
    if (sizes[0].is(1)) {
      turn_into_view(graph_, id, part);
    } else {
      Node& node = graph_.nodes[id];
      node.op = find_operator(kClone);
      node.arguments = {Argument::of(part),
                        Argument::of_word("contiguous_format").named("memory_format")};
    }
    return to;
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int join_products(Graph& graph) { return change_and_clean<ProductJoining>(graph); }

}  // namespace graft::compiler
