// src/compiler/analysis/replacement.cpp: when one value may be used in place of another.
#include "compiler/analysis/replacement.h"

namespace graft::compiler {

int Replacement::apply(Graph& graph) const {
  if (count_ == 0) return 0;
  auto swap = [&](ValueId& value) {
    if (value != kNone) value = now(value);
  };
  for (NodeId id : graph.order) {
    each_value(graph.nodes[id].arguments, swap);
    for (ValueId& written : graph.nodes[id].writes) swap(written);
    swap(graph.nodes[id].views);
  }
  for (Output& output : graph.outputs) swap(output.value), swap(output.alias);
  for (Symbol& symbol : graph.symbols) swap(symbol.value);
  return count_;
}

}  // namespace graft::compiler
