// src/deploy/call_form.cpp: what a deployed model takes and gives.
#include "deploy/call_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/analysis/effects.h"
#include "deploy/host_tensor.h"
#include "runtime/driver/error.h"

namespace graft::deploy {
namespace {

using compiler::Graph;
using compiler::GraphValue;
using compiler::InputKind;

[[noreturn]] void unsupported(const Graph& graph, const std::string& what) {
  throw Error(GRAFT_UNSUPPORTED,
              fmt::format("graph {}: {}, which a deployed model cannot have", graph.name, what));
}

[[noreturn]] void mismatched(const std::string& what) {
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("the model's manifest {}: deploy the model again", what));
}

}  // namespace

size_t place_of(const Manifest& manifest, const std::string& argument) {
  const auto found = std::ranges::find(manifest.arguments, argument);
  if (found == manifest.arguments.end()) mismatched(fmt::format("lacks argument {}", argument));
  return static_cast<size_t>(found - manifest.arguments.begin());
}

Described described(const Graph& graph, const std::string& name, const compiler::TensorType& type) {
  Described one{name, type.dtype, {}, {}};
  for (const compiler::Size& size : type.sizes) {
    one.sizes.push_back(size.is_constant() ? size.constant_part() : -1);
    one.hints.push_back(graph.hint(size));
  }
  return one;
}

void check_fits(const char* kind, size_t index, const Described& wanted, const TensorView& given) {
  bool fits = given.dtype == wanted.dtype && given.rank == static_cast<int>(wanted.sizes.size());
  for (int d = 0; fits && d < given.rank; ++d) {
    fits = given.sizes[d] >= 0 && (wanted.sizes[d] < 0 || wanted.sizes[d] == given.sizes[d]);
  }
  if (fits && (given.address != 0 || given.count() == 0)) return;
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("{} {} (\"{}\") is {}{}, the model takes {}", kind, index, wanted.name,
                          told(given.dtype, given.sizes, static_cast<size_t>(given.rank)),
                          fits ? " without data" : "",
                          told(wanted.dtype, wanted.sizes.data(), wanted.sizes.size())));
}

CallForm::CallForm(const Graph& graph, const Manifest& manifest)
    : inputs(manifest.arguments.size()),
      numbers(manifest.arguments.size()),
      integers(manifest.integers) {
  if (graph.inputs.size() != manifest.inputs.size() ||
      graph.outputs.size() != manifest.outputs.size()) {
    mismatched(fmt::format("has {} inputs and {} outputs, the graph {} and {}",
                           manifest.inputs.size(), manifest.outputs.size(), graph.inputs.size(),
                           graph.outputs.size()));
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const GraphValue& value = graph.values[graph.inputs[i]];
    const Manifest::Input& input = manifest.inputs[i];
    if (value.mutated && !input.weight) {
      unsupported(graph, fmt::format("it writes its argument {}", input.name));
    }
    const bool number = value.kind == InputKind::kScalar;
    if (input.weight && number)
      mismatched(fmt::format("has a weight for a number, {}", input.name));
    if (input.weight) continue;
    if (!number && !value.type.row_major()) {
      unsupported(graph, fmt::format("its input {} is not row-major", input.name));
    }
    const size_t place = place_of(manifest, input.name);
    const Described now = described(graph, input.name, value.type);
    const bool same = inputs[place].dtype == now.dtype && inputs[place].sizes == now.sizes;
    if (!inputs[place].name.empty() && (!same || numbers[place] != number)) {
      mismatched(fmt::format("has one argument {} for two kinds of inputs", input.name));
    }
    numbers[place] = number;
    inputs[place] = now;
  }
  for (const Described& one : inputs) {
    if (one.name.empty()) mismatched("names an argument that the graph does not take");
  }
  const compiler::Effects effects(graph);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const compiler::Output& output = graph.outputs[i];
    const bool value = output.kind == compiler::Output::Kind::kValue;
    if (!value || graph.values[effects.root[output.value]].kind == InputKind::kScalar) {
      unsupported(graph, fmt::format("its output {} is no tensor", manifest.outputs[i]));
    }
    outputs.push_back(described(graph, manifest.outputs[i], graph.values[output.value].type));
  }
  for (const Manifest::Integer& one : integers) {
    if (one.argument >= inputs.size() || one.dim >= inputs[one.argument].sizes.size()) {
      mismatched("names a size that no argument has");
    }
  }
}

void CallForm::check(std::span<const TensorView> given) const {
  if (given.size() != inputs.size()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("the model takes {} inputs, got {}", inputs.size(), given.size()));
  }
  for (size_t i = 0; i < given.size(); ++i) check_fits("input", i, inputs[i], given[i]);
}

std::vector<int64_t> CallForm::integers_of(std::span<const TensorView> given) const {
  std::vector<int64_t> sizes;
  for (const Manifest::Integer& one : integers) sizes.push_back(given[one.argument].sizes[one.dim]);
  return sizes;
}

}  // namespace graft::deploy
