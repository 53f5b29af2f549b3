// src/compiler/analysis/rewriter.cpp: writes several new nodes in place of one.
#include "compiler/analysis/rewriter.h"

#include "runtime/driver/dtype.h"

namespace graft::compiler {

using enum OperatorId;

ValueId Rewriter::add(const Operator* op, std::vector<Argument> arguments, const char* name,
                      TensorType type) {
  const NodeId id =
      graph_.add_node(op, std::move(arguments), stem_ + "_" + name, std::move(type), source_);
  order_.push_back(id);
  return graph_.nodes[id].results[0];
}

ValueId Rewriter::view(OperatorId op, ValueId value, std::vector<Argument> arguments,
                       const char* name, TensorType type) {
  arguments.insert(arguments.begin(), Argument::of(value));
  const ValueId made = add(op, std::move(arguments), name, std::move(type));
  graph_.nodes[graph_.values[made].node].views = value;
  return made;
}

ValueId Rewriter::reshape(ValueId value, const std::vector<Size>& sizes, const char* name) {
  return view(kView, value, {Argument::of_sizes(sizes)}, name,
              TensorType::row_major(graph_.values[value].type.dtype, sizes));
}

ValueId Rewriter::broadcast(OperatorId op, const char* name, std::vector<Argument> operands) {
  const graft_dtype dtype = graph_.values[operands[0].value].type.dtype;
  std::vector<Size> sizes;
  each_value(operands, [&](ValueId value) {
    const std::vector<Size>& given = graph_.values[value].type.sizes;
    if (given.size() > sizes.size()) sizes.insert(sizes.begin(), given.size() - sizes.size(), 1);
    const size_t shift = sizes.size() - given.size();
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is(1)) sizes[i + shift] = given[i];
    }
  });
  return add(op, std::move(operands), name, TensorType::row_major(dtype, std::move(sizes)));
}

ValueId Rewriter::cast(ValueId value, graft_dtype dtype) {
  const TensorType& type = graph_.values[value].type;
  if (type.dtype == dtype) return value;
  TensorType to = TensorType::row_major(dtype, type.sizes);
  return add(kToCopy, cast_arguments(value, dtype), "wide", std::move(to));
}

void turn_into_view(Graph& graph, NodeId id, ValueId of) {
  Node& node = graph.nodes[id];
  node.op = find_operator(kView);
  node.arguments = {Argument::of(of), Argument::of_sizes(graph.values[node.results[0]].type.sizes)};
  node.views = of;
}

std::vector<Argument> cast_arguments(ValueId value, graft_dtype dtype) {
  return {Argument::of(value), Argument::of_word(graft::name_of(dtype)).named("dtype")};
}

}  // namespace graft::compiler
