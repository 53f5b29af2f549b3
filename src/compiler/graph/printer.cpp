// src/compiler/graph/printer.cpp: writes a graph in its text form.
#include <fmt/format.h>

#include <cmath>

#include "compiler/graph/text.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string print_sizes(const std::vector<Size>& sizes) {
  std::vector<std::string> parts;
  for (const Size& size : sizes) parts.push_back(size.text());
  return join(parts);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n' || c == '\t') {
      result += c == '\n' ? "\\n" : "\\t";
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string value_text(const Graph& graph, ValueId id) { return "%" + graph.values[id].name; }

std::string symbol_line(const Graph& graph, const Symbol& symbol) {
  const std::string high = symbol.high == INT64_MAX ? "inf" : fmt::format("{}", symbol.high);
  const std::string from = symbol.value == kNone
                               ? fmt::format("integer {}", symbol.dim)
                               : fmt::format("{}[{}]", value_text(graph, symbol.value), symbol.dim);
  return fmt::format("symbol {} range {}..{} hint {} from {}", symbol.name, symbol.low, high,
                     symbol.hint, from);
}

std::string input_line(const Graph& graph, ValueId id) {
  const GraphValue& value = graph.values[id];
  std::string text =
      fmt::format("input %{}: {} {}", value.name, print_type(value.type), name_of(value.kind));
  if (value.mutated) text += " mutated";
  if (value.alias != kNone) text += " alias " + value_text(graph, value.alias);
  return text;
}

std::string constant_line(const Graph& graph, ValueId id) {
  const GraphValue& value = graph.values[id];
  std::string text = fmt::format("constant %{}: {} ", value.name, print_type(value.type));
  if (!value.external.empty()) return text + "external " + quoted(value.external);
  std::vector<std::string> parts;
  const bool truth = value.type.dtype == GRAFT_BOOL;
  for (double x : value.data) parts.push_back(truth ? (x != 0 ? "true" : "false") : print_float(x));
  for (int64_t x : value.whole) parts.push_back(fmt::format("{}", x));
  return text + "= [" + join(parts) + "]";
}

std::string output_line(const Graph& graph, const Output& output) {
  std::string text = "output ";
  if (output.kind == Output::Kind::kValue) text += value_text(graph, output.value);
  if (output.kind == Output::Kind::kInteger) text += output.integer.text();
  if (output.kind == Output::Kind::kNone) text += "none";
  if (output.saved) text += " saved";
  if (output.alias != kNone) text += " alias " + value_text(graph, output.alias);
  if (output.mutation != kNone) text += " mutation " + value_text(graph, output.mutation);
  return text;
}

std::string group_line(const Graph& graph, const Group& group) {
  std::string text = fmt::format("group {} {}", group.name, name_of(group.kind));
  for (NodeId node : group.nodes) {
    for (ValueId result : graph.nodes[node].results) {
      if (result == kNone) continue;
      text += " " + value_text(graph, result);
      break;
    }
  }
  return text;
}

}  // namespace

std::string print_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string print_type(const TensorType& type) {
  std::string text = fmt::format("{}[{}]", graft::name_of(type.dtype), print_sizes(type.sizes));
  return type.row_major() ? text : text + "(" + print_sizes(type.strides) + ")";
}

std::string print_argument(const Graph& graph, const Argument& argument) {
  std::string name = argument.name.empty() ? "" : argument.name + "=";
  std::vector<std::string> parts;
  switch (argument.kind) {
    case Argument::Kind::kNone:
      return name + "none";
    case Argument::Kind::kValue:
      return name + value_text(graph, argument.value);
    case Argument::Kind::kInteger:
      return name + argument.integer.text();
    case Argument::Kind::kFloat:
      return name + print_float(argument.number);
    case Argument::Kind::kBool:
      return name + (argument.truth ? "true" : "false");
    case Argument::Kind::kString:
      return name + quoted(argument.text);
    case Argument::Kind::kWord:
      return name + "@" + argument.text;
    case Argument::Kind::kList:
      for (const Argument& item : argument.list) parts.push_back(print_argument(graph, item));
      return name + "[" + join(parts) + "]";
  }
  return name;
}

std::string print_node(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  std::vector<std::string> results, arguments, written;
  for (ValueId result : node.results) {
    results.push_back(result == kNone ? "none"
                                      : fmt::format("%{}: {}", graph.values[result].name,
                                                    print_type(graph.values[result].type)));
  }
  for (const Argument& argument : node.arguments) {
    arguments.push_back(print_argument(graph, argument));
  }
  for (ValueId value : node.writes) written.push_back(value_text(graph, value));
  std::string text = fmt::format("node {}{}= {}({})", join(results), results.empty() ? "" : " ",
                                 node.op->name, join(arguments));
  if (!written.empty()) text += " writes " + join(written);
  if (node.views != kNone) text += " views " + value_text(graph, node.views);
  if (node.random) text += " random";
  if (node.opaque) text += " opaque";
  if (!node.source.empty()) text += " at " + quoted(node.source);
  for (const auto& [key, value] : node.notes) text += " note " + key + "=" + quoted(value);
  return text;
}

std::string print(const Graph& graph) {
  std::string text = "graft-graph 1\ngraph " + graph.name + "\n";
  for (const Symbol& symbol : graph.symbols) text += symbol_line(graph, symbol) + "\n";
  for (ValueId input : graph.inputs) text += input_line(graph, input) + "\n";
  for (ValueId constant : graph.constants) text += constant_line(graph, constant) + "\n";
  for (NodeId node : graph.order) text += print_node(graph, node) + "\n";
  for (const Group& group : graph.groups) text += group_line(graph, group) + "\n";
  for (const Output& output : graph.outputs) text += output_line(graph, output) + "\n";
  return text + "end\n";
}

}  // namespace graft::compiler
