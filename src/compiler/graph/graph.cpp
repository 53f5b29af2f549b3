// src/compiler/graph/graph.cpp: the graph that the compiler works on: values, nodes, effects,
// groups.
#include "compiler/graph/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft::compiler {

std::vector<Size> row_major_strides(const std::vector<Size>& sizes) {
  std::vector<Size> strides(sizes.size(), Size(1));
  for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

TensorType TensorType::row_major(graft_dtype dtype, std::vector<Size> sizes) {
  std::vector<Size> strides = row_major_strides(sizes);
  return {dtype, std::move(sizes), std::move(strides)};
}

bool TensorType::row_major() const { return strides == row_major_strides(sizes); }

Size TensorType::extent() const {
  const Size bytes = static_cast<int64_t>(size_of(dtype));
  Size last = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].is(0)) return 0;
    last = last + (sizes[i] - 1) * strides[i];
  }
  return row_major() ? count() * bytes : last * bytes;
}

ValueId Graph::add_value(const std::string& wished, TensorType type) {
  std::string name = wished;
  if (find(name) != kNone) {
    std::unordered_set<std::string_view> names;
    for (const GraphValue& value : values) names.insert(value.name);
    for (int i = 1; names.contains(name); ++i) name = fmt::format("{}_{}", wished, i);
  }
  GraphValue value;
  value.name = name;
  value.type = std::move(type);
  values.push_back(std::move(value));
  return static_cast<ValueId>(values.size() - 1);
}

NodeId Graph::add_node(const Operator* op, std::vector<Argument> arguments,
                       const std::string& wished, TensorType type, const std::string& source) {
  const ValueId result = add_value(wished, std::move(type));
  Node node;
  node.op = op;
  node.arguments = std::move(arguments);
  node.results = {result};
  node.source = source;
  nodes.push_back(std::move(node));
  values[result].node = static_cast<NodeId>(nodes.size() - 1);
  return values[result].node;
}

namespace {

// Where each old position goes; kNone: nowhere.
std::vector<uint32_t> moves(const std::vector<bool>& keep) {
  std::vector<uint32_t> to(keep.size(), kNone);
  uint32_t next = 0;
  for (size_t i = 0; i < keep.size(); ++i) {
    if (keep[i]) to[i] = next++;
  }
  return to;
}

template <class T>
void keep_only(std::vector<T>& items, const std::vector<uint32_t>& to) {
  size_t kept = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (to[i] == kNone) continue;
    if (kept != i) items[kept] = std::move(items[i]);
    ++kept;
  }
  items.resize(kept);
}

}  // namespace

void Graph::compact() {
  std::vector<bool> live_nodes(nodes.size(), false), live_values(values.size(), false);
  for (NodeId id : order) live_nodes[id] = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool of_node = values[i].origin == Origin::kNode;
    live_values[i] = !of_node || (values[i].node != kNone && live_nodes[values[i].node]);
  }
  std::erase_if(constants, [&](ValueId id) { return !live_values[id]; });
  const auto node_to = moves(live_nodes), value_to = moves(live_values);
  auto move_value = [&](ValueId& id) {
    if (id != kNone) id = value_to[id];
  };
  auto move_node = [&](NodeId& id) {
    if (id != kNone) id = node_to[id];
  };
  keep_only(nodes, node_to);
  keep_only(values, value_to);
  for (GraphValue& value : values) move_node(value.node), move_value(value.alias);
  for (Node& node : nodes) {
    each_value(node.arguments, move_value);
    for (auto* ids : {&node.results, &node.writes})
      std::for_each(ids->begin(), ids->end(), move_value);
    move_value(node.views);
  }
  for (auto* ids : {&inputs, &constants}) std::for_each(ids->begin(), ids->end(), move_value);
  std::for_each(order.begin(), order.end(), move_node);
  for (Group& group : groups) std::for_each(group.nodes.begin(), group.nodes.end(), move_node);
  for (Output& output : outputs) {
    move_value(output.value), move_value(output.alias), move_value(output.mutation);
  }
  for (Symbol& symbol : symbols) move_value(symbol.value);
}

const std::string* Node::note(std::string_view key) const {
  for (const auto& [name, text] : notes) {
    if (name == key) return &text;
  }
  return nullptr;
}

ValueId Graph::find(std::string_view value) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == value) return static_cast<ValueId>(i);
  }
  return kNone;
}

std::string Graph::describe(NodeId id) const {
  const Node& node = nodes[id];
  std::string name = "(no result)";
  for (ValueId result : node.results) {
    if (result == kNone) continue;
    name = "%" + values[result].name;
    break;
  }
  return fmt::format("{} ({}{}{})", name, node.op->name, node.source.empty() ? "" : ", ",
                     node.source);
}

int64_t Graph::hint(const Size& size) const {
  return size.evaluate([&](std::string_view name) {
    for (const Symbol& symbol : symbols) {
      if (symbol.name == name) return symbol.hint;
    }
    throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("graph {} has no symbol {}", this->name, name));
  });
}

const Argument* argument(const Node& node, size_t position, std::string_view keyword) {
  size_t at = 0;
  for (const Argument& given : node.arguments) {
    if (!given.name.empty()) {
      if (given.name == keyword) return &given;
    } else if (at++ == position) {
      return &given;
    }
  }
  return nullptr;
}

const Argument* argument(const Node& node, std::string_view name) {
  const SchemaArgument* known = node.op->parameter(name);
  const ptrdiff_t position = known == nullptr ? -1 : known - node.op->parameters.data();
  return argument(node, static_cast<size_t>(position), name);
}

namespace {

ValueId value_of(const Argument* given) {
  return given != nullptr && given->kind == Argument::Kind::kValue ? given->value : kNone;
}

}  // namespace

ValueId operand(const Node& node, size_t position) { return value_of(argument(node, position)); }
ValueId operand(const Node& node, std::string_view name) { return value_of(argument(node, name)); }

bool number_of(const Node& node, std::string_view name, double* out) {
  if (const Argument* given = argument(node, name)) return number_of(*given, out);
  const SchemaArgument* known = node.op->parameter(name);
  if (known == nullptr || known->text.empty()) return false;
  *out = known->number;
  return true;
}

bool is_true(const Node& node, std::string_view name) {
  const Argument* given = argument(node, name);
  return given != nullptr && given->kind == Argument::Kind::kBool && given->truth;
}

const char* name_of(InputKind kind) {
  static constexpr const char* kNames[] = {"parameter", "buffer", "activation", "tangent",
                                           "scalar"};
  return kNames[static_cast<int>(kind)];
}

const char* name_of(GroupKind kind) {
  static constexpr const char* kNames[] = {"pointwise", "reduction", "matmul", "convolution"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace graft::compiler
