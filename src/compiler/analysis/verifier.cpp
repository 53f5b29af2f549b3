// src/compiler/analysis/verifier.cpp: checks that a graph means something.
#include "compiler/analysis/verifier.h"

#include <fmt/format.h>

#include <set>
#include <unordered_set>

#include "compiler/analysis/effects.h"
#include "compiler/analysis/group_shape.h"
#include "compiler/analysis/schedule_units.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft::compiler {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

  void run() {
    for (const Symbol& symbol : graph_.symbols) check_symbol(symbol);
    for (ValueId id : graph_.inputs) check_input(id);
    for (ValueId id : graph_.constants) check_constant(id);
    for (NodeId id : graph_.order) check_node(id);
    for (const Output& output : graph_.outputs) check_output(output);
    const Effects effects(graph_);
    for (NodeId id : graph_.order) check_writes(effects, id);
    check_groups(effects);
  }

 private:
  [[noreturn]] void reject(const std::string& what, const std::string& rule) const {
    throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("graph {}: {}: {}", graph_.name, what, rule));
  }
  void require(bool holds, const std::string& what, const char* rule) const {
    if (!holds) reject(what, rule);
  }
  std::string value_name(ValueId id) const { return "%" + graph_.values[id].name; }

  void check_symbol(const Symbol& symbol) {
    const std::string what = "symbol " + symbol.name;
    require(names_.insert(symbol.name).second, what, "it is defined twice");
    static const std::set<std::string_view> reserved{"true", "false", "none", "inf", "nan"};
    require(!reserved.contains(symbol.name), what, "the name is a word of the text form");
    require(symbol.low <= symbol.high, what, "the range is empty");
    require(symbol.hint >= symbol.low && symbol.hint <= symbol.high, what,
            "the hint is outside the range");
    require(symbol.dim >= 0, what, "the dimension or integer is negative");
    if (symbol.value == kNone) return;
    require(symbol.value < graph_.values.size(), what, "its value does not exist");
    require(graph_.values[symbol.value].origin != Origin::kConstant, what,
            "its value is a constant, whose size no call gives");
    const TensorType& type = graph_.values[symbol.value].type;
    require(static_cast<size_t>(symbol.dim) < type.sizes.size(), what,
            "its value has no such dimension");
    require(type.sizes[symbol.dim] == Size::symbol(symbol.name), what,
            "its size is not this symbol alone");
  }

  void check_type(ValueId id, const std::string& what) const {
    const TensorType& type = graph_.values[id].type;
    require(size_of(type.dtype) != 0, what, "its dtype is unknown");
    require(type.sizes.size() <= kMaxRank, what, "it has more than 16 dimensions");
    require(type.sizes.size() == type.strides.size(), what,
            "the numbers of its sizes and strides differ");
    for (size_t i = 0; i < type.sizes.size(); ++i) {
      for (const Size& size : {type.sizes[i], type.strides[i]}) {
        require(!size.is_constant() || size.constant_part() >= 0, what,
                "a size or stride is negative");
        size.symbols([&](const std::string& name) {
          require(names_.contains(name), what, "it uses a symbol that is not defined");
        });
      }
    }
  }

  void define(ValueId id, const std::string& what) {
    require(id < graph_.values.size(), what, "it does not exist");
    require(!defined_[id], what, "it is defined twice");
    require(values_.insert(graph_.values[id].name).second, what, "another value has its name");
    check_type(id, what);
    defined_[id] = true;
  }

  void check_input(ValueId id) {
    require(id < graph_.values.size(), "an input", "its value does not exist");
    const GraphValue& value = graph_.values[id];
    const std::string what = "input " + value_name(id);
    require(value.origin == Origin::kInput, what, "it is not marked as an input");
    if (value.alias != kNone) {
      require(value.alias < graph_.values.size() && defined_[value.alias], what,
              "it aliases a value that is no earlier input");
    }
    require(value.kind != InputKind::kScalar || (value.type.sizes.empty() && !value.mutated), what,
            "a scalar has no dimensions and is not mutated");
    define(id, what);
  }

  void check_constant(ValueId id) {
    require(id < graph_.values.size(), "a constant", "its value does not exist");
    const GraphValue& value = graph_.values[id];
    const std::string what = "constant " + value_name(id);
    require(value.origin == Origin::kConstant, what, "it is not marked as a constant");
    define(id, what);
    if (!value.external.empty()) return;
    const bool integer = is_integral(value.type.dtype);
    require((integer ? value.data.size() : value.whole.size()) == 0, what,
            "its elements have another dtype");
    const size_t elements = integer ? value.whole.size() : value.data.size();
    const Size count = value.type.count();
    require(!is_complex(value.type.dtype), what, "complex elements have no text: use external");
    require(elements == 1 || count.is(static_cast<int64_t>(elements)), what,
            "it has neither one element nor those of its type");
  }

  void check_node(NodeId id) {
    require(id < graph_.nodes.size(), "the order", "it names a node that does not exist");
    const Node& node = graph_.nodes[id];
    const std::string what = "node " + graph_.describe(id);
    require(seen_.insert(id).second, what, "it is in the order twice");
    std::set<ValueId> operands;
    each_value(node.arguments, [&](ValueId value) {
      require(value < graph_.values.size() && defined_[value], what,
              "an operand is not defined before it");
      operands.insert(value);
    });
    for (ValueId value : node.writes) {
      require(operands.contains(value), what, "it writes a value that is no operand");
    }
    require(node.views == kNone || operands.contains(node.views), what,
            "it views a value that is no operand");
    check_marks(node, what);
    for (ValueId result : node.results) {
      if (result == kNone) continue;
      require(result < graph_.values.size() && graph_.values[result].node == id, what,
              "a result belongs to another node");
      define(result, what + ", result " + value_name(result));
    }
    check_shape(node, what);
    const char* const broken = broken_rule(graph_, node);
    if (broken != nullptr) reject(what, broken);
  }

  void check_marks(const Node& node, const std::string& what) const {
    require(!node.op->in_place || !node.writes.empty(), what,
            "an in-place operator needs the mark \"writes\"");
    const OpClass cls = node.op->cls;
    require(cls != OpClass::kRandom || node.random, what, "a random operator needs \"random\"");
    require(cls != OpClass::kPointwise || (!node.random && node.writes.empty()), what,
            "an elementwise operator has no effect");
    require(!node.op->users || node.opaque, what, "a kernel of the user's needs \"opaque\"");
    require(node.op->users == (node.note("kernel") != nullptr), what,
            "a node has the note \"kernel\" if its kernel is the user's");
  }

  // Sizes that differ as texts may still be equal: only plain contradictions are refused.
  void check_shape(const Node& node, const std::string& what) const {
    if (node.op->cls != OpClass::kPointwise) return;
    require(node.results.size() == 1 && node.results[0] != kNone, what,
            "an elementwise operator has one result");
    const std::vector<Size>& sizes = graph_.values[node.results[0]].type.sizes;
    size_t rank = 0;
    each_value(node.arguments, [&](ValueId value) {
      const std::vector<Size>& given = graph_.values[value].type.sizes;
      rank = std::max(rank, given.size());
      require(broadcasts(given, sizes), what, "an operand does not broadcast to the result");
    });
    require(rank == sizes.size(), what, "the result has more dimensions than every operand");
  }

  void check_output(const Output& output) const {
    const std::string what = "an output";
    for (ValueId value : {output.value, output.alias, output.mutation}) {
      require(value == kNone || (value < graph_.values.size() && defined_[value]), what,
              "its value is not defined");
    }
    require((output.kind == Output::Kind::kValue) == (output.value != kNone), what,
            "its kind and its value contradict each other");
    require(output.mutation == kNone || graph_.values[output.mutation].origin == Origin::kInput,
            what, "it mutates a value that is no input");
  }

  void check_writes(const Effects& effects, NodeId id) const {
    for (ValueId value : graph_.nodes[id].writes) {
      const GraphValue& root = graph_.values[effects.root[value]];
      const std::string what = "node " + graph_.describe(id);
      require(root.origin != Origin::kConstant, what, "it writes a constant");
      require(root.origin != Origin::kInput || root.mutated, what,
              "it writes an input that is not marked \"mutated\"");
    }
  }

  void check_groups(const Effects& effects) const {
    std::set<NodeId> grouped;
    std::set<std::string> names;
    for (const Group& group : graph_.groups) {
      const std::string what = "group " + group.name;
      require(names.insert(group.name).second, what, "another group has its name");
      uint32_t last = 0;
      for (size_t i = 0; i < group.nodes.size(); ++i) {
        const NodeId id = group.nodes[i];
        require(id < graph_.nodes.size() && effects.place[id] != kNone, what,
                "a node is not in the program");
        const std::string member = what + ", node " + graph_.describe(id);
        require(grouped.insert(id).second, member, "it is in two groups");
        require(i == 0 || effects.place[id] > last, member, "the nodes are not in program order");
        require(!graph_.nodes[id].has_effect(), member, "a node with an effect is never grouped");
        last = effects.place[id];
      }
      check_kind(group, what);
    }
    if (grouped.empty()) return;
    require(!ScheduleUnits(graph_, effects).sorted().empty(), "its groups",
            "two groups, or a group and a node outside, need each other's results");
  }

  void check_kind(const Group& group, const std::string& what) const {
    require(!group.nodes.empty(), what, "it is empty");
    const OpClass first = graph_.nodes[group.nodes[0]].op->cls;
    require(group.kind != GroupKind::kMatmul || first == OpClass::kMatmul, what,
            "its first node is no matrix product");
    require(group.kind != GroupKind::kConvolution || first == OpClass::kConvolution, what,
            "its first node is no convolution");
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::set<std::string> names_;  // of symbols
  std::unordered_set<std::string> values_;
  std::unordered_set<NodeId> seen_;
};

}  // namespace

void verify(const Graph& graph) { Verifier(graph).run(); }

}  // namespace graft::compiler
