// src/deploy/call_form.h: what a deployed model takes and gives.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "deploy/artefact.h"
#include "kernels/tensor/view.h"

namespace graft::deploy {

// A tensor of a model. A size below 0 varies from call to call.
struct Described {
  std::string name;
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> hints;  // typical sizes
};

Described described(const compiler::Graph& graph, const std::string& name,
                    const compiler::TensorType& type);

// Throws Error INVALID_ARGUMENT, naming what it is and what the model takes, unless the tensor
// fits. kind and index name it, too.
void check_fits(const char* kind, size_t index, const Described& wanted, const TensorView& given);

// The place of an argument among the manifest's. Throws Error INVALID_ARGUMENT if it is none.
size_t place_of(const Manifest& manifest, const std::string& argument);

struct CallForm {
  // Throws Error INVALID_ARGUMENT for a manifest that does not fit the graph, UNSUPPORTED for what
  // a deployed model cannot take or give.
  CallForm(const compiler::Graph& graph, const Manifest& manifest);

  // Throws Error INVALID_ARGUMENT, naming the input, for inputs that the model does not take.
  void check(std::span<const TensorView> given) const;

  // The sizes of inputs that the graph takes as integers.
  std::vector<int64_t> integers_of(std::span<const TensorView> given) const;

  std::vector<Described> inputs, outputs;
  std::vector<bool> numbers;  // by input: read at the call, in host memory
  std::vector<Manifest::Integer> integers;
};

}  // namespace graft::deploy
