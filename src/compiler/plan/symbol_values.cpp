// src/compiler/plan/symbol_values.cpp: what a graph's symbols are in one call.
#include "compiler/plan/symbol_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/driver/error.h"

namespace graft::compiler {

SymbolValues::SymbolValues(const Graph& graph) : graph_(graph), values_(graph.symbols.size()) {
  for (const Symbol& symbol : graph.symbols) {
    const auto found = std::find(graph.inputs.begin(), graph.inputs.end(), symbol.value);
    input_.push_back(static_cast<size_t>(found - graph.inputs.begin()));
  }
}

bool SymbolValues::bind(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers) {
  bool changed = !bound_;
  bound_ = false;
  for (size_t i = 0; i < values_.size(); ++i) {
    const Symbol& symbol = graph_.symbols[i];
    int64_t value = 0;
    if (symbol.value != kNone) {
      const TensorView& view = inputs[input_[i]].view;
      if (symbol.dim < view.rank) value = view.sizes[symbol.dim];
    } else if (static_cast<size_t>(symbol.dim) < integers.size()) {
      value = integers[static_cast<size_t>(symbol.dim)];
    }
    if (value < symbol.low || value > symbol.high) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  fmt::format("graph {}: {} is {}, but the graph was compiled for {} to {}",
                              graph_.name, symbol.name, value, symbol.low, symbol.high));
    }
    changed = changed || values_[i] != value;
    values_[i] = value;
  }
  bound_ = true;
  return changed;
}

int64_t SymbolValues::at(const Size& size) const {
  return size.evaluate([this](std::string_view name) {
    for (size_t i = 0; i < values_.size(); ++i) {
      if (graph_.symbols[i].name == name) return values_[i];
    }
    throw Error(GRAFT_INTERNAL, "a symbol has no value");
  });
}

}  // namespace graft::compiler
