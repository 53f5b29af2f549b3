// src/compiler/kernels/group_description.cpp: what a group's generated kernel depends on, as text.
#include "compiler/kernels/group_description.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "compiler/graph/text.h"
#include "compiler/kernels/group_loops.h"

namespace graft::compiler {

double constant_number(const GraphValue& constant) {
  return constant.data.empty() ? static_cast<double>(constant.whole[0]) : constant.data[0];
}

std::string group_description(const Graph& graph, const GroupKernel& kernel) {
  std::map<ValueId, size_t> names;
  auto name = [&](ValueId value) { return names.emplace(value, names.size()).first->second; };
  std::string text = kernel.loops.reduces ? "r" : "p";
  text += kernel.brief() ? "b" : "l";
  const NestShape shape = kernel.loops.shape(kernel.deal);
  text += fmt::format("{}", shape.outer);
  for (size_t t = 0; t < kernel.loops.tensors.size(); ++t) {
    const GroupTensor& tensor = kernel.loops.tensors[t];
    const NestShape::Operand& lies = shape.operands[t];
    text += fmt::format(";{}{}:{}:{}:{}", tensor.written ? "w" : "r", name(tensor.value),
                        static_cast<int>(graph.values[tensor.value].type.dtype),
                        static_cast<int>(lies.walk), lies.still);
    if (lies.shifted) text += fmt::format("by{}", name(graph.nodes[tensor.reversed_by].results[0]));
  }
  for (ValueId value : kernel.numbers) {
    text += fmt::format(";n{}:{}", name(value), static_cast<int>(graph.values[value].type.dtype));
  }
  for (NodeId id : kernel.nodes) {
    const Node& node = graph.nodes[id];
    text += ";" + node.op->name;
    std::vector<Argument> arguments = node.arguments;
    each_value(arguments, [&](ValueId& value) {
      const compiler::GraphValue& operand = graph.values[value];
      text += fmt::format("/{}:{}", name(value), static_cast<int>(operand.type.dtype));
      if (operand.origin == Origin::kConstant && is_number(operand)) {
        text += fmt::format("={:x}", std::bit_cast<uint64_t>(constant_number(operand)));
      }
    });
    for (const Argument& argument : arguments) {
      if (argument.kind == Argument::Kind::kValue)
        text += ",v";
      else
        text += "," + print_argument(graph, argument);
    }
    const TensorType& type = graph.values[node.results[0]].type;
    text += fmt::format(">{}:{}:{}", name(node.results[0]), static_cast<int>(type.dtype),
                        type.sizes.size());
  }
  return text;
}

}  // namespace graft::compiler
