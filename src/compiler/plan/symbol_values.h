// src/compiler/plan/symbol_values.h: what a graph's symbols are in one call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compiler/graph/graph.h"
#include "kernels/tensor/view.h"

namespace graft::compiler {

// An argument of a run, by the graph's inputs: a tensor, or a scalar of the host.
struct ExecutionInput {
  TensorView view;
  Scalar scalar;
};

// The numbers behind symbolic sizes. graph outlives it. Not thread-safe.
class SymbolValues {
 public:
  explicit SymbolValues(const Graph& graph);

  // Reads them off the call; true when one differs from the last call's, or there was none. Throws
  // Error INVALID_ARGUMENT, naming symbol and range, for a value that the graph was not made for;
  // the next call then counts as different.
  bool bind(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers);

  // By symbol, of the last call. REQUIRES: bind() came back.
  std::span<const int64_t> values() const { return values_; }

  // A size in the last call. REQUIRES: bind() came back.
  int64_t at(const Size& size) const;

 private:
  const Graph& graph_;
  std::vector<size_t> input_;  // by symbol: which input has it as a size
  std::vector<int64_t> values_;
  bool bound_ = false;
};

}  // namespace graft::compiler
