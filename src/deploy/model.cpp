// src/deploy/model.cpp: a deployed model that is open on a device.
#include "deploy/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "codegen/cache/carried_blobs.h"
#include "compiler/analysis/effects.h"
#include "compiler/analysis/verifier.h"
#include "compiler/graph/text.h"
#include "compiler/passes/lowering.h"
#include "deploy/host_tensor.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"

namespace graft::deploy {
namespace {

using compiler::ExecutionInput;
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

// A view of the type at an address. REQUIRES: no symbols.
TensorView view_of(const compiler::TensorType& type, graft_address address) {
  TensorView view;
  view.address = address, view.dtype = type.dtype;
  view.rank = static_cast<int>(type.sizes.size());
  for (size_t d = 0; d < type.sizes.size(); ++d) {
    view.sizes[d] = type.sizes[d].constant_part();
    view.strides[d] = type.strides[d].constant_part();
  }
  return view;
}

bool has_symbols(const compiler::TensorType& type) {
  const auto varies = [](const compiler::Size& size) { return !size.is_constant(); };
  return std::ranges::any_of(type.sizes, varies) || std::ranges::any_of(type.strides, varies);
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

std::vector<bool> used_values(const Graph& graph) {
  std::vector<bool> used(graph.values.size(), false);
  for (compiler::NodeId id : graph.order) {
    compiler::each_value(graph.nodes[id].arguments,
                         [&](compiler::ValueId value) { used[value] = true; });
  }
  for (const compiler::Output& output : graph.outputs) {
    if (output.value != compiler::kNone) used[output.value] = true;
    if (output.alias != compiler::kNone) used[output.alias] = true;
  }
  return used;
}

// Where the host can write memory that no earlier command uses any more; null: by copies alone.
void* written_by_host(Stream& stream, const TensorView& view) {
  if (view.count() == 0 || !view.contiguous()) return nullptr;
  void* const memory = stream.device().host_view(view.address, extent_bytes(view));
  if (memory != nullptr) stream.synchronize();
  return memory;
}

}  // namespace

Model::Model(const Artefact& artefact, Device& device)
    : device_(device),
      stream_(device.stream_from_pool(0)),
      result_(artefact.manifest().result),
      integers_(artefact.manifest().integers),
      host_(device, constants_),
      staging_(stream_) {
  carry_blobs(artefact.blobs());
  Graph graph = compiler::parse(artefact.manifest().graph);
  compiler::verify(graph);
  describe(graph, artefact.manifest());
  load(artefact, graph);
  prepare(std::move(graph));
}

Model::~Model() = default;

void Model::describe(const Graph& graph, const Manifest& manifest) {
  if (graph.inputs.size() != manifest.inputs.size() ||
      graph.outputs.size() != manifest.outputs.size()) {
    mismatched(fmt::format("has {} inputs and {} outputs, the graph {} and {}",
                           manifest.inputs.size(), manifest.outputs.size(), graph.inputs.size(),
                           graph.outputs.size()));
  }
  inputs_.resize(manifest.arguments.size());
  numbers_.resize(manifest.arguments.size());
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
    const bool same = inputs_[place].dtype == now.dtype && inputs_[place].sizes == now.sizes;
    if (!inputs_[place].name.empty() && (!same || numbers_[place] != number)) {
      mismatched(fmt::format("has one argument {} for two kinds of inputs", input.name));
    }
    numbers_[place] = number;
    inputs_[place] = now;
  }
  for (const Described& one : inputs_) {
    if (one.name.empty()) mismatched("names an argument that the graph does not take");
  }
  const compiler::Effects effects(graph);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    const compiler::Output& output = graph.outputs[i];
    const bool value = output.kind == compiler::Output::Kind::kValue;
    if (!value || graph.values[effects.root[output.value]].kind == InputKind::kScalar) {
      unsupported(graph, fmt::format("its output {} is no tensor", manifest.outputs[i]));
    }
    outputs_.push_back(described(graph, manifest.outputs[i], graph.values[output.value].type));
  }
  for (const Manifest::Integer& one : integers_) {
    if (one.argument >= inputs_.size() || one.dim >= inputs_[one.argument].sizes.size()) {
      mismatched("names a size that no argument has");
    }
  }
}

Model::Placed Model::place(const Artefact& artefact, const std::string& name,
                           const GraphValue& value, const Graph& graph) {
  const StoredTensor& stored = artefact.weight(name);
  const bool fits = !has_symbols(value.type) && stored.dtype == value.type.dtype &&
                    stored.sizes == described(graph, name, value.type).sizes;
  if (!fits) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("{}: \"{}\" is {}, the graph takes another dtype or size: deploy the "
                            "model again",
                            artefact.path(), name,
                            told(stored.dtype, stored.sizes.data(), stored.sizes.size())));
  }
  Placed placed{view_of(value.type, 0), {}};
  HeldBlock block(device_, stream_, placed.view.count() == 0 ? 0 : extent_bytes(placed.view));
  placed.view.address = block.address();
  if (void* const memory = value.mutated ? nullptr : written_by_host(stream_, placed.view)) {
    artefact.read(stored, memory);
  } else {
    placed.elements.reset(new char[std::max<uint64_t>(stored.bytes, 1)]);
    artefact.read(stored, placed.elements.get());
    staging_.upload(placed.view, placed.elements);
    staging_.wait();
  }
  weights_.insert_or_assign(name, std::move(block));
  return placed;
}

void Model::load(const Artefact& artefact, const Graph& graph) {
  const Manifest& manifest = artefact.manifest();
  std::map<std::string, TensorView> known;  // one tensor may be several inputs
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Manifest::Input& input = manifest.inputs[i];
    if (!input.weight) {
      sources_.push_back({true, place_of(manifest, input.name), {}});
      continue;
    }
    const GraphValue& value = graph.values[graph.inputs[i]];
    if (!known.contains(input.name)) {
      Placed placed = place(artefact, input.name, value, graph);
      known[input.name] = placed.view;
      if (value.mutated) {
        state_.push_back(described(graph, input.name, value.type));
        states_.push_back(std::move(placed));
      }
    }
    sources_.push_back({false, 0, known[input.name]});
  }
  for (compiler::ValueId id : graph.constants) {
    const GraphValue& value = graph.values[id];
    const auto found = manifest.constants.find(value.external);
    if (value.external.empty() || found == manifest.constants.end()) continue;
    constants_[value.external] = place(artefact, found->second, value, graph).view;
  }
}

void Model::prepare(Graph graph) {
  compiler::DeviceGraphs made =
      compiler::lower_for(device_, std::move(graph), compiler::Mode::kInference, true);
  compiler::Lowered& lowered = made.lowered;
  if (lowered.prologue) {
    ModelHost host(device_, constants_);
    compiler::Executor executor(*lowered.prologue, host, stream_);
    std::vector<ExecutionInput> given;
    for (size_t input : lowered.taken) given.push_back({sources_[input].weight, {}});
    std::vector<TensorView> results(lowered.prologue->outputs.size());
    executor.run(given, {}, results);
    stream_.synchronize();
    prepared_ = host.take_outputs();
    for (const TensorView& view : results) sources_.push_back({false, 0, view});
  }
  Graph& main = lowered.main;
  const std::vector<bool> used = used_values(main);
  std::vector<compiler::ValueId> inputs;
  std::vector<Source> sources;
  for (size_t i = 0; i < main.inputs.size(); ++i) {
    if (!sources_[i].argument && !used[main.inputs[i]]) continue;
    inputs.push_back(main.inputs[i]);
    sources.push_back(sources_[i]);
  }
  main.inputs = std::move(inputs), sources_ = std::move(sources);
  std::erase_if(weights_, [&](const auto& weight) {
    const auto kept = [&](const Source& one) {
      return one.weight.address == weight.second.address();
    };
    const auto constant = [&](const auto& one) {
      return one.second.address == weight.second.address();
    };
    return std::ranges::none_of(sources_, kept) && std::ranges::none_of(constants_, constant);
  });
  tag_ = op_tag("deployed " + main.name);
  executor_ = std::make_unique<compiler::Executor>(main, host_, stream_);
}

void Model::check(std::span<const TensorView> inputs) const {
  if (inputs.size() != inputs_.size()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("the model takes {} inputs, got {}", inputs_.size(), inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) check_fits("input", i, inputs_[i], inputs[i]);
}

ExecutionInput Model::staged(size_t argument, const TensorView& given) {
  if (numbers_[argument]) {
    Scalar number;
    number.dtype = given.dtype;
    std::memcpy(number.bits, reinterpret_cast<const void*>(given.address), size_of(given.dtype));
    return {{}, number};
  }
  TensorView view = row_major(given);
  const uint64_t bytes = static_cast<uint64_t>(view.count()) * size_of(view.dtype);
  view.address = arguments_.emplace_back(device_, stream_, bytes).address();
  staging_.upload(view, packed(given));
  return {view, {}};
}

void Model::forget() {
  arguments_.clear();
  host_.take_outputs();
}

template <class Work>
auto Model::alone(Work&& work) -> decltype(work()) {
  struct Call {
    explicit Call(Model& of) : model(of) {}
    ~Call() { model.forget(); }
    Model& model;
  };
  const std::lock_guard lock(mutex_);
  const OpScope named(tag_);
  const Call call(*this);
  try {
    return work();
  } catch (...) {
    staging_.release();
    stream_.take_late();
    throw;
  }
}

std::vector<HostResult> Model::run(std::span<const TensorView> inputs) {
  check(inputs);
  return alone([&] {
    std::vector<ExecutionInput> given;
    for (const Source& one : sources_) {
      given.push_back(one.argument ? staged(one.index, inputs[one.index])
                                   : ExecutionInput{one.weight, {}});
    }
    std::vector<int64_t> integers;
    for (const Manifest::Integer& one : integers_) {
      integers.push_back(inputs[one.argument].sizes[one.dim]);
    }
    std::vector<TensorView> results(outputs_.size());
    executor_->run(given, integers, results);
    return staging_.download(results);
  });
}

std::vector<HostResult> Model::read_state() {
  return alone([&] {
    std::vector<TensorView> views;
    for (const Placed& one : states_) views.push_back(one.view);
    return staging_.download(views);
  });
}

void Model::write_state(size_t index, const TensorView& value) {
  if (index >= state_.size()) {
    throw Error(GRAFT_NOT_FOUND,
                fmt::format("there is no state {}: {} in all", index, state_.size()));
  }
  check_fits("state", index, state_[index], value);
  alone([&] {
    staging_.upload(states_[index].view, packed(value));
    staging_.wait();
  });
}

void Model::reset() {
  alone([&] {
    for (const Placed& one : states_) staging_.upload(one.view, one.elements);
    staging_.wait();
  });
}

void Model::seed(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  host_.seed(seed);
}

}  // namespace graft::deploy
