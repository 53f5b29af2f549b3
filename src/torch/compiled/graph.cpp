// src/torch/compiled/graph.cpp: a graph of the compiler that runs on PyTorch's tensors.
#include "torch/compiled/graph.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "compiler/analysis/effects.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "torch/compiled/write_count.h"
#include "torch/device/scope.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"
#include "torch/ve/backward.h"
#include "torch/ve/call.h"
#include "torch/ve/generator.h"

namespace graft::binding {

using compiler::ExecutionInput;
using compiler::kNone;
using compiler::Output;

struct CompiledGraph::OnStream {
  OnStream(const CompiledGraph& graph, Stream& stream)
      : host(graph.device_, graph.externals_), executor(graph.graph_, host, stream) {}

  GraphHost host;
  compiler::Executor executor;
};

namespace {

bool carried(const CallValue& value) {
  const auto* const tensor = std::get_if<at::Tensor>(&value);
  return tensor != nullptr && tensor->defined() && tensor->device().type() == ve::kType;
}

at::Tensor part_of(const c10::Storage& storage, const TensorView& view) {
  const at::ScalarType dtype = to_torch(view.dtype);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(kDispatchKey), c10::scalarTypeToTypeMeta(dtype));
  const auto rank = static_cast<size_t>(view.rank);
  const auto base = reinterpret_cast<graft_address>(storage.data());
  const auto offset = view.address == 0 ? 0 : (view.address - base) / c10::elementSize(dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(at::IntArrayRef(view.sizes, rank),
                                                      at::IntArrayRef(view.strides, rank),
                                                      static_cast<int64_t>(offset));
  return tensor;
}

std::string told(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes() << " of " << tensor.scalar_type() << " on " << tensor.device();
  return text.str();
}

}  // namespace

CompiledGraph::CompiledGraph(compiler::Graph graph, c10::DeviceIndex device,
                             std::map<std::string, at::Tensor> externals)
    : graph_(std::move(graph)),
      device_(resolve(device)),
      externals_(std::move(externals)),
      tag_(op_tag("compiled " + graph_.name)) {
  root_ = compiler::Effects(graph_).root;
  position_.assign(graph_.values.size(), SIZE_MAX);
  for (size_t i = 0; i < graph_.inputs.size(); ++i) position_[graph_.inputs[i]] = i;
  std::lock_guard lock(mutex_);
  on(current_stream(device_));
}

CompiledGraph::~CompiledGraph() = default;

CompiledGraph::OnStream& CompiledGraph::on(Stream& stream) {
  auto& own = streams_[&stream];
  if (own == nullptr) own = std::make_unique<OnStream>(*this, stream);
  return *own;
}

ExecutionInput CompiledGraph::input(size_t index, at::Tensor& tensor) const {
  const compiler::GraphValue& value = graph_.values[graph_.inputs[index]];
  const bool host = value.kind == compiler::InputKind::kScalar;
  if (!host && tensor.dim() == 0 && tensor.is_cpu()) tensor = tensor.to(device_of(device_));
  const c10::Device wanted = host ? c10::Device(c10::kCPU) : device_of(device_);
  if (tensor.device() != wanted) {
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        fmt::format("graph {}: input %{} is {}, but the graph was compiled for {}; move the "
                    "input there, or compile the graph again",
                    graph_.name, value.name, told(tensor), wanted.str()));
  }
  if (host) return {{}, to_graft(tensor.item(), tensor.scalar_type())};
  if (lazy_clones_live()) [[unlikely]]
    own_memory(tensor);
  return {view_of(tensor), {}};
}

void CompiledGraph::Scratch::clear() {
  tensors.clear();
  storages.clear();
  integers.clear();
  generators.clear();
  given.clear();
}

void CompiledGraph::take(std::span<const CallValue> inputs) {
  for (const CallValue& one : inputs) {
    if (const auto* tensor = std::get_if<at::Tensor>(&one)) scratch_.tensors.push_back(*tensor);
    if (const auto* integer = std::get_if<int64_t>(&one)) scratch_.integers.push_back(*integer);
    if (const auto* own = std::get_if<at::Generator>(&one)) scratch_.generators.push_back(*own);
  }
  if (scratch_.tensors.size() != graph_.inputs.size()) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("graph {} takes {} tensors, got {}", graph_.name, graph_.inputs.size(),
                            scratch_.tensors.size()));
  }
  for (size_t i = 0; i < scratch_.tensors.size(); ++i) {
    scratch_.storages.push_back(scratch_.tensors[i].storage());
    scratch_.given.push_back(input(i, scratch_.tensors[i]));
  }
  scratch_.views.resize(graph_.outputs.size());
}

void CompiledGraph::run(std::span<const CallValue> inputs, std::vector<CallValue>* results) {
  run(inputs, nullptr, results);
}

void CompiledGraph::run_and_give(std::vector<CallValue>* inputs, std::vector<CallValue>* results) {
  run(*inputs, inputs, results);
}

void CompiledGraph::run_carried(std::span<const CallValue> inputs, std::vector<CallValue>* given,
                                std::vector<CallValue>* results) {
  ve::follow_backward();
  auto call = std::make_unique<ve::Call>(graph_.name.c_str());
  std::vector<CallValue> inner;
  std::vector<at::Tensor> kept;
  for (const CallValue& one : inputs) {
    if (const auto* tensor = std::get_if<at::Tensor>(&one)) {
      inner.emplace_back(call->inner(*tensor, false));
      if (given == nullptr) kept.push_back(*tensor);
    } else if (const auto* generator = std::get_if<at::Generator>(&one)) {
      inner.emplace_back(ve::inner_generator(*generator));
    } else {
      inner.push_back(one);
    }
  }
  if (given != nullptr) {  // what nobody else holds may go: no face of it stays
    given->clear();
    call = std::make_unique<ve::Call>(graph_.name.c_str());
  }
  run(inner, given == nullptr ? nullptr : &inner, results);
  for (size_t i = 0; i < results->size(); ++i) {
    auto* const tensor = std::get_if<at::Tensor>(&(*results)[i]);
    if (tensor == nullptr) continue;
    *tensor = call->outer(*tensor);
    const compiler::ValueId value = graph_.outputs[i].value;
    const size_t input = value == kNone ? SIZE_MAX : position_[root_[value]];
    if (tensor->defined() && input < kept.size()) share_count(*tensor, kept[input]);
  }
}

void CompiledGraph::run(std::span<const CallValue> inputs, std::vector<CallValue>* given,
                        std::vector<CallValue>* results) {
  if (ve::used() && std::any_of(inputs.begin(), inputs.end(), carried)) {
    return run_carried(inputs, given, results);
  }
  const DeviceScope scope(device_of(device_));
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::impl::ExcludeDispatchKeyGuard as_written(c10::autocast_dispatch_keyset);
  const OpScope named(tag_);
  std::lock_guard lock(mutex_);
  OnStream& own = on(current_stream(device_));
  const auto emptied = c10::make_scope_exit([&] {
    own.host.forget_outputs();
    scratch_.clear();
  });
  take(inputs);
  if (given != nullptr) given->clear();
  own.host.begin(&scratch_.generators, given == nullptr ? nullptr : &scratch_.tensors,
                 &scratch_.storages);
  own.executor.run(scratch_.given, scratch_.integers, scratch_.views);
  results->clear();
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    results->push_back(result(own, i, scratch_.views[i], scratch_.tensors));
  }
}

CallValue CompiledGraph::result(OnStream& own, size_t index, const TensorView& view,
                                const std::vector<at::Tensor>& given) const {
  const Output& output = graph_.outputs[index];
  if (output.kind == Output::Kind::kNone) return {};
  if (output.kind == Output::Kind::kInteger) return own.executor.integer(index);
  const compiler::ValueId root = root_[output.value];
  if (position_[root] != SIZE_MAX) {
    const at::Tensor& source = given[position_[root]];
    if (source.device().is_cpu()) return source;
    const at::Tensor part = part_of(source.storage(), view);
    share_count(part, source);
    return part;
  }
  for (size_t i = 0; i <= index; ++i) {
    const compiler::ValueId value = graph_.outputs[i].value;
    if (value == kNone || root_[value] != root) continue;
    if (const c10::Storage storage = own.host.storage(i)) return part_of(storage, view);
  }
  return at::clone(tensor_over(view, device_));  // a constant: the caller may write the copy
}

GraphCounts CompiledGraph::counts() {
  GraphCounts counts;
  std::lock_guard lock(mutex_);
  OnStream& own = on(current_stream(device_));
  const auto number = [](size_t count) { return static_cast<int64_t>(count); };
  counts.eager = own.host.foreign();
  counts.fused = number(own.executor.compiled());
  counts.kernels = number(own.executor.launches());
  counts.vendor = number(own.executor.in_vendor_graphs());
  counts.vendor_graphs = number(own.executor.vendor_graphs());
  counts.nodes = counts.fused + counts.vendor + number(own.executor.externals());
  counts.library = number(own.executor.libraries() + own.executor.externals());
  for (const auto& [op, count] : counts.eager) counts.library -= count;
  counts.arena_bytes = own.executor.arena_bytes();
  return counts;
}

}  // namespace graft::binding
