// src/codegen/ops/op_table.cpp: joins the families of elementwise operations to one table.
#include "codegen/ops/op_table.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

namespace graft {

namespace {

std::vector<Op> join() {
  std::vector<Op> rows;
  for (const auto family : {binary_ops(), unary_ops(), ternary_ops(), activation_ops(),
                            special_ops(), quantization_ops()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  for (size_t i = 0; i < rows.size(); ++i) rows[i].id = static_cast<uint16_t>(i);
  return rows;
}

// Those words of Op::aten that have a dot, or those that have none.
std::vector<std::string> words(const Op& op, bool dotted) {
  std::istringstream stream{op.aten};
  std::vector<std::string> found;
  for (std::string word; stream >> word;) {
    if ((word.find('.') != std::string::npos) == dotted) found.push_back(word);
  }
  return found;
}

}  // namespace

std::span<const Op> op_table() {
  static const auto* rows = new std::vector<Op>(join());
  return *rows;
}

const Op* find_op(std::string_view name) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const Op*>();
    for (const Op& op : op_table()) map->emplace(op.name, &op);
    return map;
  }();
  const auto found = by_name->find(name);
  return found == by_name->end() ? nullptr : found->second;
}

std::vector<std::string> stubs_of(const Op& op) { return words(op, false); }

std::vector<std::string> overloads_of(const Op& op) {
  std::vector<std::string> found = words(op, true);
  for (std::string& text : found) {
    if (text == "." || text.starts_with(".(")) text.insert(1, "default");
    if (text[0] == '.') text.insert(0, op.name);
  }
  return found;
}

std::string op_table_json() {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Op& op : op_table()) {
    nlohmann::ordered_json row;
    row["name"] = op.name;
    row["inputs"] = op.inputs;
    row["scalars"] = op.scalars;
    row["outputs"] = op.outputs;
    row["types"] = nlohmann::json::array();
    const std::pair<uint8_t, const char*> names[] = {{kBoolType, "bool"},
                                                     {kIntegerTypes, "integer"},
                                                     {kFloatTypes, "floating"},
                                                     {kComplexTypes, "complex"}};
    for (const auto& [bit, name] : names) {
      if (op.types & bit) row["types"].push_back(name);
    }
    row["conditions"] = nlohmann::json::array();
    for (int i = 0; i < op.inputs; ++i) {
      if (op.conditions >> i & 1) row["conditions"].push_back(i);
    }
    row["aten"] = stubs_of(op);
    row["overloads"] = overloads_of(op);
    rows.push_back(row);
  }
  return rows.dump(1);
}

}  // namespace graft
