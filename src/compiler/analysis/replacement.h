// src/compiler/analysis/replacement.h: when one value may be used in place of another.
#pragma once

#include <string>
#include <vector>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"

namespace graft::compiler {

// Collects replacements of values during one walk over a graph and makes them together.
class Replacement {
 public:
  explicit Replacement(const Graph& graph) : effects_(graph), escaping_(effects_.leaves) {}
  const Effects& effects() const { return effects_; }

  // What a value stands for by now.
  ValueId now(ValueId value) const {
    while (value < to_.size() && to_[value] != kNone) value = to_[value];
    return value;
  }

  // Whether by, which has equal elements, may stand for a value with memory of its own: the types
  // are the same, nobody writes either, and no two outputs, nor an output and an input or constant,
  // come to share memory.
  bool may(const Graph& graph, ValueId value, ValueId by) const {
    if (by >= effects_.root.size() || value >= effects_.root.size()) return false;
    const ValueId from = effects_.root[value], to = effects_.root[by];
    const bool own = graph.values[to].origin == Origin::kNode && !escaping_[to];
    return graph.values[value].type == graph.values[by].type && effects_.stable(value) &&
           effects_.stable(by) && (!escaping_[from] || own);
  }

  // From now on by is used in place of value.
  void set(ValueId value, ValueId by) {
    if (to_.size() <= value) to_.resize(value + 1, kNone);
    to_[value] = by;
    if (escaping_[effects_.root[value]]) escaping_[effects_.root[by]] = true;
    ++count_;
  }

  // Puts them into arguments, marks, outputs and symbols. Returns how many there are. The nodes
  // that are replaced stay, without users.
  int apply(Graph& graph) const;

 private:
  Effects effects_;
  std::vector<bool> escaping_;  // by root
  std::vector<ValueId> to_;
  int count_ = 0;
};

}  // namespace graft::compiler
