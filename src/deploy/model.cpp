// src/deploy/model.cpp: a deployed model that is open on a device.
#include "deploy/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "codegen/cache/carried_blobs.h"
#include "compiler/analysis/verifier.h"
#include "compiler/graph/text.h"
#include "compiler/passes/lowering.h"
#include "compiler/run/sized_run.h"
#include "deploy/host_tensor.h"
#include "kernels/move/copy.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"

namespace graft::deploy {
namespace {

using compiler::ExecutionInput;
using compiler::Graph;
using compiler::GraphValue;

bool has_symbols(const compiler::TensorType& type) {
  const auto varies = [](const compiler::Size& size) { return !size.is_constant(); };
  return std::ranges::any_of(type.sizes, varies) || std::ranges::any_of(type.strides, varies);
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

Graph parsed(const Artefact& artefact) {
  Graph graph = compiler::parse(artefact.manifest().graph);
  compiler::verify(graph);
  return graph;
}

// In messages; every graph of deploy() has the same name.
std::string named(const Artefact& artefact) {
  return "deployed " + std::filesystem::path(artefact.path()).filename().string();
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
    : Model(artefact, parsed(artefact), device) {}

Model::Model(const Artefact& artefact, Graph graph, Device& device)
    : device_(device),
      stream_(device.stream_from_pool(0)),
      result_(artefact.manifest().result),
      form_(graph, artefact.manifest()),
      order_(std::make_shared<CallOrder>(stream_, named(artefact))),
      host_(device, constants_),
      staging_(stream_) {
  carry_blobs(artefact.blobs());
  // What a program may set is no weight that passes compute with beforehand.
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!artefact.manifest().is_setting(artefact.manifest().inputs[i])) continue;
    graph.values[graph.inputs[i]].kind = compiler::InputKind::kActivation;
  }
  load(artefact, graph);
  prepare(std::move(graph));
}

Model::~Model() {
  try {
    const std::lock_guard lock(order_->turn());
    order_->finish();
  } catch (const std::exception&) {  // the calls keep what failed
  }
}

Model::Placed Model::place(const Artefact& artefact, const std::string& name,
                           const GraphValue& value, const Graph& graph, bool kept) {
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
  const auto number = [](const compiler::Size& size) { return size.constant_part(); };
  Placed placed{compiler::view_of(value.type, number), {}};
  HeldBlock block(device_, stream_, extent_bytes(placed.view));
  placed.view.address = block.address();
  if (void* const memory = kept ? nullptr : written_by_host(stream_, placed.view)) {
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
      const bool kept = value.mutated || manifest.is_setting(input);
      Placed placed = place(artefact, input.name, value, graph, kept);
      known[input.name] = placed.view;
      if (kept) {
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
    constants_[value.external] = place(artefact, found->second, value, graph, false).view;
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
  std::set<graft_address> needed;
  for (const Source& one : sources_) needed.insert(one.weight.address);
  for (const auto& [name, view] : constants_) needed.insert(view.address);
  for (const Placed& one : states_) needed.insert(one.view.address);
  std::erase_if(weights_,
                [&](const auto& weight) { return !needed.contains(weight.second.address()); });
  tag_ = op_tag(order_->model());
  executor_ = std::make_unique<compiler::Executor>(main, host_, stream_);
}

void Model::check(std::span<const CallInput> inputs) const {
  std::vector<TensorView> views;
  for (const CallInput& one : inputs) views.push_back(one.view());
  form_.check(views);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].device == nullptr) continue;
    const std::string& name = form_.inputs[i].name;
    if (form_.numbers[i]) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  fmt::format("input {} (\"{}\") is in device memory, the model reads it as a "
                              "number at the call: give an array in host memory",
                              i, name));
    }
    if (&inputs[i].device->device() == &device_) continue;
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("input {} (\"{}\") is in memory of {}, the model is on {}: copy it by "
                            "way of the host",
                            i, name, inputs[i].device->device().label(), device_.label()));
  }
}

ExecutionInput Model::staged(size_t argument, const CallInput& input) {
  if (input.device != nullptr) {
    input.device->use_on(stream_);
    return {input.device->view(), {}};
  }
  const TensorView& given = input.host;
  if (form_.numbers[argument]) {
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

std::vector<TensorView> Model::queue_graph(std::span<const CallInput> inputs) {
  std::vector<ExecutionInput> given;
  std::vector<TensorView> views;
  for (const CallInput& one : inputs) views.push_back(one.view());
  for (const Source& one : sources_) {
    given.push_back(one.argument ? staged(one.index, inputs[one.index])
                                 : ExecutionInput{one.weight, {}});
  }
  std::vector<TensorView> results(form_.outputs.size());
  order_->queue([&] { executor_->run(given, form_.integers_of(views), results); });
  return results;
}

// What aliases memory of others, or is not row-major, is copied.
std::vector<DeviceArray> Model::kept(std::span<const TensorView> results) {
  std::vector<HeldBlock> blocks = host_.take_outputs();
  std::vector<DeviceArray> arrays;
  for (const TensorView& view : results) {
    const auto own = std::ranges::find_if(blocks, [&](const HeldBlock& block) {
      return block.address() != 0 && block.address() == view.address;
    });
    if (own != blocks.end() && view.contiguous()) {
      arrays.emplace_back(device_, row_major(view), std::move(*own));
      continue;
    }
    const DeviceArray& array = arrays.emplace_back(device_, stream_, row_major(view));
    if (view.count() > 0) copy(stream_, array.view(), view);
  }
  return arrays;
}

void Model::forget() {
  arguments_.clear();
  host_.take_outputs();
}

template <class Work>
auto Model::in_turn(Work&& work) -> decltype(work()) {
  struct Call {
    explicit Call(Model& of) : model(of) {}
    ~Call() { model.forget(); }
    Model& model;
  };
  const OpScope named(tag_);
  const Call call(*this);
  try {
    return work();
  } catch (...) {
    staging_.release();
    order_->take_late();
    throw;
  }
}

template <class Work>
auto Model::alone(Work&& work) -> decltype(work()) {
  const std::lock_guard lock(order_->turn());
  order_->finish();  // what fails from here on is of this call
  return in_turn(work);
}

std::vector<HostResult> Model::run(std::span<const TensorView> inputs) {
  form_.check(inputs);
  std::vector<CallInput> given;
  for (const TensorView& one : inputs) given.push_back({one});
  return alone([&] { return staging_.download(queue_graph(given)); });
}

std::unique_ptr<QueuedResults> Model::enqueue(Queue& queue, std::span<const CallInput> inputs) {
  check(inputs);
  if (&queue.device() != &device_) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("the queue is of {}, the model is on {}: make a queue of that device",
                            queue.device().label(), device_.label()));
  }
  const std::lock_guard lock(order_->turn());
  return in_turn([&] {
    follow(stream_, queue.stream());
    std::vector<DeviceArray> arrays = kept(queue_graph(inputs));
    const auto call = std::make_shared<QueuedCall>(order_);
    auto results = std::make_unique<QueuedResults>(call, std::move(arrays));
    call->end(&staging_);
    order_->add(call);
    queue.add(call);
    return results;
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
  const std::lock_guard lock(order_->turn());
  host_.seed(seed);
}

}  // namespace graft::deploy
