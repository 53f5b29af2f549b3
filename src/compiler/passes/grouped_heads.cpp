// src/compiler/passes/grouped_heads.cpp: the pass that lets attention read keys and values which
// several heads of queries share.
#include "compiler/analysis/effects.h"
#include "compiler/analysis/rewriter.h"
#include "compiler/analysis/views.h"
#include "compiler/passes/passes.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class GroupedHeads {
 public:
  explicit GroupedHeads(Graph& graph) : graph_(graph), effects_(graph), rewriter_(graph) {}

  int run() {
    return rewriter_.each([&](NodeId id) {
      const Node& node = graph_.nodes[id];
      double dropout = 0;
      if (!node.is(kAttention) || !number_of(node, "dropout_p", &dropout) || dropout != 0) return 0;
      const ValueId key = shared(operand(node, 1)), value = shared(operand(node, 2));
      if (key == kNone || value == kNone || heads(key) != heads(value)) return 0;
      rewriter_.begin(id);
      const ValueId keys = without_group(key, "keys"), values = without_group(value, "values");
      graph_.nodes[id].arguments[1].value = keys;
      graph_.nodes[id].arguments[2].value = values;
      return 1;
    });
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.values[value].type; }
  const Size& heads(ValueId value) const { return type(value).sizes[1]; }

  const Node* maker(ValueId value) const { return effects_.sole_maker(graph_, value); }

  // Of [batch, heads * group, columns, depth] that repeats each head: what is repeated, [batch,
  // heads, 1, columns, depth]. kNone: it repeats none.
  ValueId shared(ValueId repeated) const {
    const Node* const joined = maker(repeated);
    if (joined == nullptr || !reshapes(*joined) || !type(repeated).row_major()) return kNone;
    const ValueId copied = operand(*joined, 0);
    const Node* const copy = maker(copied);
    if (copy == nullptr || !copy->is(kClone) || !type(copied).row_major()) return kNone;
    const ValueId spread = operand(*copy, 0);
    const Node* const expand = maker(spread);
    if (expand == nullptr || !expand->is(kExpand)) return kNone;
    const ValueId source = operand(*expand, 0);
    if (source == kNone || !effects_.stable(source)) return kNone;
    const std::vector<Size>&from = type(source).sizes, &to = type(spread).sizes;
    const std::vector<Size>& whole = type(repeated).sizes;
    if (from.size() != 5 || to.size() != 5 || whole.size() != 4 || !from[2].is(1)) return kNone;
    const bool same = from[0] == to[0] && from[1] == to[1] && from[3] == to[3] && from[4] == to[4];
    const bool joins =
        whole[0] == to[0] && whole[1] == to[1] * to[2] && whole[2] == to[3] && whole[3] == to[4];
    return same && joins && type(copied).sizes == to ? source : kNone;
  }

  ValueId without_group(ValueId source, const char* name) {
    TensorType to = type(source);
    to.sizes.erase(to.sizes.begin() + 2), to.strides.erase(to.strides.begin() + 2);
    const std::vector<Argument> arguments = {Argument::of_integer(Size(2)),
                                             Argument::of_integer(Size(0))};
    return rewriter_.view(kSelect, source, arguments, name, std::move(to));
  }

  Graph& graph_;
  const Effects effects_;
  Rewriter rewriter_;
};

}  // namespace

int group_heads(Graph& graph) { return change_and_clean<GroupedHeads>(graph); }

}  // namespace graft::compiler
