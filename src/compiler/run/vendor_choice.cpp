// src/compiler/run/vendor_choice.cpp: chooses between a vendor's kernels and a fused one.
#include "compiler/run/vendor_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "compiler/analysis/op_row_binding.h"
#include "compiler/graph/subgraph.h"
#include "compiler/grouping/fusion.h"
#include "compiler/grouping/library_call.h"
#include "compiler/kernels/group_description.h"
#include "compiler/kernels/group_kernel.h"
#include "compiler/run/executor.h"
#include "compiler/run/sized_run.h"
#include "kernels/move/fill.h"
#include "kernels/operation/plans.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/open_device.h"
#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/command_capture.h"

namespace graft::compiler {
namespace {

constexpr int kRounds = 5;
constexpr double kLongEnough = 0.25;  // seconds of the rounds of one group

// Whether a fused kernel would stand in for one of the vendor's own.
bool holds_vendor_kernel(OpenDevice& device, const Graph& graph, const Group& group) {
  if (library_call(graph, group.nodes)) return false;
  return std::ranges::any_of(group.nodes, [&](NodeId node) {
    OpRowBinding binding;
    if (row_use(graph, graph.nodes[node], &binding)) return vendor_knows(device, *binding.row);
    return vendor_knows(device, Operation::reduce_sum) ||
           vendor_knows(device, Operation::reduce_max);
  });
}

bool compiles(const OpenDevice& device) {
  return device.driver().table().kernel_launch != nullptr && device.properties().dialect[0] != '\0';
}

// At the symbols' hints, without an address.
TensorView hinted_view(const Graph& graph, ValueId value) {
  return view_of(graph.values[value].type, [&](const Size& size) { return graph.hint(size); });
}

bool changes_nothing(const Graph& graph, const Group& group) {
  return std::ranges::none_of(group.nodes, [&](NodeId id) {
    const Node& node = graph.nodes[id];
    return node.has_effect() || node.op->users || !node.op->name.starts_with("aten.");
  });
}

// What the outcome depends on, beside the device.
std::string key_of(const Graph& graph, const Group& group, const GroupKernel& kernel) {
  std::string key = group_description(graph, kernel);
  const auto add = [&](ValueId value) {
    if (value == kNone) return;
    const TensorView view = hinted_view(graph, value);
    key += "|";
    for (int d = 0; d < view.rank; ++d)
      key += fmt::format("{}:{},", view.sizes[d], view.strides[d]);
  };
  for (NodeId id : group.nodes) {
    each_value(graph.nodes[id].arguments, add);
    std::ranges::for_each(graph.nodes[id].results, add);
  }
  return key;
}

struct Outcomes {
  std::mutex mutex;
  std::map<std::pair<const OpenDevice*, std::string>, bool> fused;
};
Outcomes& outcomes() {
  static Outcomes& outcomes = *new Outcomes;
  return outcomes;
}

// Memory that the stream's allocator knows nothing of, so that its figures and its cache stay; the
// nodes are another host's.
class ScratchHost final : public ExecutionHost {
 public:
  ScratchHost(std::unique_ptr<ExecutionHost> nodes, Stream& stream)
      : nodes_(std::move(nodes)),
        stream_(stream),
        memory_(std::make_unique<DirectAllocator>(stream.device())) {
    const uint64_t limit = stream.allocator().limit();
    if (limit == 0) return;
    const MemoryStatistics now = stream.allocator().statistics();
    const auto held = static_cast<uint64_t>(now.active_bytes.all().current);
    memory_->set_limit(std::max<uint64_t>(limit - std::min(limit, held), 1));
  }
  // What commands may still use is never given back.
  ~ScratchHost() override {
    if (stream_.given_up()) (void)memory_.release();
  }

  graft_address allocate(uint64_t bytes, Stream& stream) override {
    const auto idle = std::ranges::find_if(
        held_, [&](const Held& one) { return one.idle && one.block->bytes == bytes; });
    if (idle != held_.end()) {
      idle->idle = false;
      return idle->block->address;
    }
    held_.push_back({memory_->allocate(bytes, stream)});
    return held_.back().block->address;
  }
  void release(graft_address address, Stream&) override {
    const auto found =
        std::ranges::find_if(held_, [&](const Held& one) { return one.block->address == address; });
    if (found != held_.end()) found->idle = true;
  }
  // The same memory in each run.
  graft_address output(size_t index, uint64_t bytes, Stream& stream) override {
    if (bytes == 0) return 0;
    const auto found = outputs_.find(index);
    if (found != outputs_.end()) return found->second;
    return outputs_[index] = allocate(bytes, stream);
  }
  TensorView constant(const GraphValue& value) override { return nodes_->constant(value); }
  Philox draw(const Node& node, uint64_t count) override { return nodes_->draw(node, count); }
  void run(const ExternalCall& call, Stream& stream) override { nodes_->run(call, stream); }

 private:
  struct Held {
    Block* block;
    bool idle = false;
  };
  const std::unique_ptr<ExecutionHost> nodes_;
  Stream& stream_;
  std::unique_ptr<DirectAllocator> memory_;
  std::vector<Held> held_;
  std::map<size_t, graft_address> outputs_;
};

// A group alone, on memory of its own, computed in both ways.
class Trial {
 public:
  Trial(const Graph& graph, const GroupEdges& edges, const Group& group, Stream& stream,
        ExecutionHost& host)
      : host_(host),
        stream_(stream),
        part_(cut_out(graph, group.nodes, edges.outputs, graph.name).graph),
        apart_(part_, host, stream, VendorKernels::kAlways),
        fused_(as_one(part_, group), host, stream, VendorKernels::kNever),
        results_(part_.outputs.size()) {
    for (const Symbol& symbol : part_.symbols) symbols_.push_back(symbol.hint);
  }

  // Allocates the inputs, all ones.
  void fill_inputs() {
    for (ValueId id : part_.inputs) {
      ExecutionInput input;
      if (part_.values[id].kind == InputKind::kScalar) {
        input.scalar = Scalar::of(part_.values[id].type.dtype, 1.0);
      } else {
        input.view = hinted_view(part_, id);
        input.view.address = host_.allocate(extent_bytes(input.view), stream_);
        fill(stream_, input.view, Scalar::of(1.0));
      }
      inputs_.push_back(input);
    }
  }

  // Whether the device has a kernel for the whole group.
  bool fuses() const { return fused_.launches() == 1 && fused_.externals() == 0; }

  bool fused_is_faster() {
    seconds(&fused_), seconds(&apart_);  // the first runs plan
    double fused = seconds(&fused_), apart = seconds(&apart_), total = fused + apart;
    for (int i = 1; i < kRounds && total < kLongEnough; ++i) {
      const double one = seconds(&fused_), others = seconds(&apart_);
      fused = std::min(fused, one), apart = std::min(apart, others);
      total += one + others;
    }
    return fused < apart;
  }

 private:
  static Graph as_one(Graph part, const Group& group) {
    Group whole = group;
    std::iota(whole.nodes.begin(), whole.nodes.end(), NodeId{0});
    part.groups = {std::move(whole)};
    return part;
  }

  double seconds(Executor* executor) {
    const auto begin = std::chrono::steady_clock::now();
    executor->run(inputs_, symbols_, results_);
    stream_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  ExecutionHost& host_;
  Stream& stream_;
  const Graph part_;
  Executor apart_, fused_;
  std::vector<ExecutionInput> inputs_;
  std::vector<int64_t> symbols_;
  std::vector<TensorView> results_;
};

// Every failure is one of the measurement's own; an interrupt comes a little later.
void forget_failures(Stream& stream) noexcept {
  postpone_interrupt(std::current_exception());
  if (stream.given_up()) return;
  try {
    stream.synchronize();
  } catch (...) {
    postpone_interrupt(std::current_exception());
  }
}

// REQUIRES: nothing is left on the stream.
std::optional<bool> try_both(Stream& stream, const Effects& effects, const Graph& graph,
                             const Group& group, ExecutionHost& host) {
  const GroupEdges edges = edges_of(graph, effects, group.nodes);
  const auto empty = [&](ValueId value) {
    return value != kNone && hinted_view(graph, value).count() == 0;
  };
  if (edges.outputs.empty() || std::ranges::any_of(edges.inputs, empty) ||
      std::ranges::any_of(edges.outputs, empty)) {
    return std::nullopt;
  }
  std::unique_ptr<ExecutionHost> nodes = host.beside();
  if (nodes == nullptr) return std::nullopt;
  try {
    ScratchHost scratch(std::move(nodes), stream);
    Trial trial(graph, edges, group, stream, scratch);
    if (!trial.fuses()) return std::nullopt;
    trial.fill_inputs();
    return trial.fused_is_faster();
  } catch (...) {
    forget_failures(stream);
    return std::nullopt;
  }
}

}  // namespace

VendorKernels vendor_kernels_as_set() {
  static const VendorKernels set = [] {
    const char* const value = std::getenv("GRAFT_VENDOR_KERNELS");
    const std::string given = value == nullptr ? "" : value;
    if (given.empty() || given == "always") return VendorKernels::kAlways;
    if (given == "never") return VendorKernels::kNever;
    if (given == "measure") return VendorKernels::kMeasure;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "GRAFT_VENDOR_KERNELS is \"" + given + "\"; give always, never or measure");
  }();
  return set;
}

bool has_choice(OpenDevice& device, const Graph& graph) {
  return device.operations() != nullptr &&
         std::ranges::any_of(graph.groups, [&](const Group& group) {
           return holds_vendor_kernel(device, graph, group);
         });
}

bool may_measure(const Stream& stream) {
  return stream.memory_pool() == 0 && CommandCapture::current() == nullptr;
}

std::optional<bool> fused_is_faster(Stream& stream, const Effects& effects, const Graph& graph,
                                    const Group& group, ExecutionHost& host) {
  OpenDevice& device = stream.device();
  const auto kernel = group_kernel(graph, effects, group.nodes);
  if (!kernel || !compiles(device) || !changes_nothing(graph, group)) return std::nullopt;
  const std::pair key(&std::as_const(device), key_of(graph, group, *kernel));
  {
    const std::lock_guard lock(outcomes().mutex);
    const auto found = outcomes().fused.find(key);
    if (found != outcomes().fused.end()) return found->second;
  }
  if (!may_measure(stream) || !stream.settle()) return std::nullopt;
  stream.synchronize();
  const std::optional<bool> fused = try_both(stream, effects, graph, group, host);
  if (!fused) return std::nullopt;
  const std::lock_guard lock(outcomes().mutex);
  outcomes().fused[key] = *fused;
  return fused;
}

void leave_to_vendor(Stream& stream, const Effects& effects, Graph* graph, ExecutionHost& host,
                     VendorKernels choice) {
  OpenDevice& device = stream.device();
  if (device.operations() == nullptr) return;
  if (choice == VendorKernels::kAsSet) choice = vendor_kernels_as_set();
  if (choice == VendorKernels::kNever) return;
  std::vector<Group> groups;
  for (const Group& group : graph->groups) {
    const bool fused = !holds_vendor_kernel(device, *graph, group) ||
                       (choice == VendorKernels::kMeasure &&
                        fused_is_faster(stream, effects, *graph, group, host) == true);
    if (fused) groups.push_back(group);
  }
  graph->groups = std::move(groups);
}

}  // namespace graft::compiler
