// src/compiler/run/executor.cpp: runs a compiled graph, one step after another.
#include "compiler/run/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/analysis/constant_bytes.h"
#include "compiler/kernels/group_kernel.h"
#include "compiler/plan/step_memory.h"
#include "compiler/run/memory.h"
#include "compiler/run/sized_run.h"
#include "compiler/run/step.h"
#include "compiler/run/ungrouping.h"
#include "compiler/run/value_places.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/error.h"

namespace graft::compiler {
namespace {

// From so many bytes of inputs on, memory comes and goes with the stretches of a run.
constexpr uint64_t kWorthGiving = 256u << 10;

}  // namespace

class Executor::Frame {
 public:
  Frame(const Graph& graph, ExecutionHost& host, Stream& stream, VendorKernels vendor)
      : graph_(graph), host_(host), stream_(stream), symbols_(graph_) {
    const Effects effects(graph_);
    take_apart(effects, &graph_);
    leave_to_vendor(stream_, effects, &graph_, host_, vendor);
    take_apart_on(stream_, effects, &graph_, host_);
    for (const Symbol& symbol : graph_.symbols) {
      const bool made = symbol.value != kNone && graph_.values[symbol.value].node != kNone;
      if (made) unsupported("symbol " + symbol.name, "its size comes from a node's result");
    }
    const ScheduleUnits units(graph_, effects);
    const std::vector<UnitId> order = units.sorted();
    plan_ = plan_memory(graph_, effects, units, order);
    step_memory_ = step_memory(graph_, effects, units, order, plan_);
    root_ = effects.root;
    places_ = ValuePlaces(graph_, effects, plan_);
    outside_.resize(graph_.values.size(), false);
    for (uint32_t i = 0; i < order.size(); ++i) {
      const size_t before = steps_.size();
      add_step(effects, units.nodes(order[i]), order[i] < graph_.groups.size());
      if (steps_.size() > before) steps_.back().unit = i;
    }
    for (const Step& step : steps_) step_units_.push_back(step.unit);
    numbers_.resize(graph_.values.size());
    make_constants(effects);
  }

  ~Frame() {
    for (ValueId id : graph_.constants) {
      const bool own = graph_.values[id].external.empty() && places_[id].address != 0;
      const bool sized = std::ranges::find(sized_constants_, id) != sized_constants_.end();
      if (own && !sized) host_.release(places_[id].address, stream_);
    }
    for (const auto& [symbols, run] : sizes_) release_constants(run);
  }

  void run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
           std::span<TensorView> results) {
    if (inputs.size() != graph_.inputs.size() || results.size() != graph_.outputs.size()) {
      throw Error(
          GRAFT_INVALID_ARGUMENT,
          fmt::format("graph {} takes {} tensors and returns {}, got {} and {}", graph_.name,
                      graph_.inputs.size(), graph_.outputs.size(), inputs.size(), results.size()));
    }
    if (symbols_.bind(inputs, integers) || now_ == nullptr) resize();
    for (size_t i = 0; i < inputs.size(); ++i) {
      ValuePlaces::check_input(graph_, i, now_->views[graph_.inputs[i]], inputs[i]);
    }
    if (host_.gives_inputs() && now_->given_bytes >= kWorthGiving) {
      run_giving(inputs);
    } else {
      run_whole(inputs);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (graph_.outputs[i].value != kNone) results[i] = now_->views[graph_.outputs[i].value];
    }
  }

  const Graph& graph() const { return graph_; }
  StepCounts counts() const { return count_steps(steps_); }
  std::vector<std::string> on_host() const { return nodes_on_host(graph_, steps_); }
  int64_t integer(size_t output) const { return at(graph_.outputs.at(output).integer); }
  uint64_t arena_bytes() const {
    return now_ == nullptr ? 0 : std::max(now_->placement.total, now_->whole.arena_bytes());
  }

 private:
  [[noreturn]] void unsupported(const std::string& what, const char* why) const {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("graph {}: {}: {}; run it without compiling", graph_.name, what, why));
  }

  void add_step(const Effects& effects, const std::vector<NodeId>& nodes, bool grouped) {
    Step step;
    step.nodes = nodes;
    const Node& node = graph_.nodes[nodes[0]];
    if (auto library = library_call(graph_, nodes)) {
      for (NodeId id : nodes) {
        each_value(graph_.nodes[id].arguments, [&](ValueId value) { outside_[value] = true; });
      }
      step.library.emplace(graph_, effects, nodes, *std::move(library));
    } else if (grouped) {
      step.kernel.emplace(graph_, *group_kernel(graph_, effects, nodes), stream_.device());
    } else if (VendorStep::runs(node)) {
      each_value(node.arguments, [&](ValueId value) { outside_[value] = true; });
      step.vendor.emplace(node, stream_.device());
    } else {
      const bool view = node.views != kNone && node.writes.empty() && !node.has_effect();
      for (ValueId result : node.results) {
        if (result != kNone && node.views != kNone && !places_.offset(result)) {
          unsupported("node " + graph_.describe(nodes[0]), "the place of its elements is unknown");
        }
      }
      if (view) return;
      each_value(node.arguments, [&](ValueId value) { outside_[value] = true; });
      step.external.emplace(graph_, nodes[0]);
    }
    steps_.push_back(std::move(step));
  }

  void make_constants(const Effects& effects) {
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      if (effects.escapes(id) || root_[id] != id) outside_[root_[id]] = true;
    }
    for (ValueId id : graph_.constants) {
      const GraphValue& value = graph_.values[id];
      if (!value.external.empty()) {
        places_[id].address = host_.constant(value).address;
        continue;
      }
      if (is_number(value) && !outside_[id]) continue;
      if (value.type.extent().is_constant())
        places_[id].address = written_constant(id);
      else
        sized_constants_.push_back(id);
    }
  }

  // In memory of its own; 0 where it has no element.
  graft_address written_constant(ValueId id) {
    const GraphValue& value = graph_.values[id];
    auto bytes =
        constant_bytes(value, static_cast<uint64_t>(std::max<int64_t>(at(value.type.extent()), 0)));
    if (bytes.empty()) return 0;
    const graft_address address = host_.allocate(bytes.size(), stream_);
    stream_.copy(address, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                 GRAFT_HOST_TO_DEVICE);
    stream_.synchronize([&] { return std::make_shared<const decltype(bytes)>(std::move(bytes)); });
    return address;
  }

  void release_constants(const SizedRun& run) {
    for (graft_address address : run.constants) {
      if (address != 0) host_.release(address, stream_);
    }
  }

  int64_t at(const Size& size) const { return symbols_.at(size); }

  void resize() {
    now_ = nullptr;
    const std::vector<int64_t> symbols(symbols_.values().begin(), symbols_.values().end());
    SizedRun* run = sizes_.find(symbols);
    if (run == nullptr) run = add_size(symbols);
    for (ValueId id = 0; id < places_.size(); ++id) places_[id].offset = run->offsets[id];
    for (size_t i = 0; i < run->constants.size(); ++i) {
      places_[sized_constants_[i]].address = run->constants[i];
    }
    now_ = run;
  }

  SizedRun* add_size(const std::vector<int64_t>& symbols) {
    SizedRun run = sized_run(graph_, places_, plan_, step_memory_, symbols_);
    run.whole.end = steps_.size();
    if (run.given_bytes >= kWorthGiving) cut_into_stretches(&run, {});
    try {
      for (ValueId id : sized_constants_) run.constants.push_back(written_constant(id));
    } catch (...) {
      release_constants(run);
      throw;
    }
    SizedRun& kept = sizes_.add(symbols, std::move(run));
    if (sizes_.size() > kKeptSizes) {
      release_constants(sizes_.drop_oldest());
      prepared_for_ = nullptr;
    }
    return &kept;
  }

  // scratch: by unit, or nothing.
  void cut_into_stretches(SizedRun* run, std::span<const uint64_t> scratch) {
    std::vector<uint64_t> given(graph_.inputs.size(), 0);
    for (size_t i = 0; i < given.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      if (graph_.values[id].kind == InputKind::kActivation) given[i] = extent_bytes(run->views[id]);
    }
    run->stretches = cut(step_memory_, run->placement, given, scratch, step_units_);
  }

  void find_addresses(std::span<const ExecutionInput> inputs, graft_address arena) {
    find_inputs(inputs);
    for (ValueId id = 0; id < places_.size(); ++id) {
      if (places_[id].home == Home::kOutput) make_output(id);
    }
    for (ValueId id = 0; id < places_.size(); ++id) {
      Place& place = places_[id];
      if (place.home != Home::kArena) continue;
      const uint32_t host = now_->placement.hosts[place.index];
      const graft_address base = host == kNone ? arena : places_[plan_.outputs[host].value].address;
      place.address = base + now_->placement.offsets[place.index];
    }
    for (ValueId id = 0; id < places_.size(); ++id) {
      if (places_[id].home != Home::kNowhere) places_.show(id, now_->views);
    }
  }

  void find_inputs(std::span<const ExecutionInput> inputs) {
    for (ValueId id = 0; id < places_.size(); ++id) {
      Place& place = places_[id];
      if (place.home != Home::kInput) continue;
      place.address = inputs[place.index].view.address;
      numbers_[id] = inputs[place.index].scalar;
    }
  }

  void make_output(ValueId id) {
    Place& place = places_[id];
    place.address = host_.output(place.index, extent_bytes(now_->views[id]), stream_);
  }

  void run_whole(std::span<const ExecutionInput> inputs) {
    const Arena arena(host_, stream_, arena_bytes());
    find_addresses(inputs, arena.address);
    bases_.assign(1, {arena.address, now_->placement.total});
    find_bases(Home::kArena);
    outputs_.clear();
    for (const PlannedOutput& output : plan_.outputs) {
      outputs_.push_back(places_[output.value].address);
    }
    const RunMemory memory{plan_, now_->placement, step_units_, outputs_};
    run_steps(&now_->whole, arena.address, &memory);
  }

  // Memory comes with the stretch that first needs it and goes after the last one, also the
  // inputs'.
  void run_giving(std::span<const ExecutionInput> inputs) {
    passing_.assign(plan_.buffers.size(), 0);
    PassingBuffers passing(host_, stream_, &passing_);
    find_inputs(inputs);
    for (ValueId id = 0; id < places_.size(); ++id) {
      const Home home = places_[id].home;
      if (home == Home::kArena || home == Home::kOutput) places_[id].address = 0;
      if (home == Home::kInput || home == Home::kConstant) places_.show(id, now_->views);
    }
    for (ReplaySegment& stretch : now_->stretches) {
      const std::span steps(step_memory_.steps.begin() + stretch.first_unit,
                            step_memory_.steps.begin() + stretch.past_units);
      for (const StepMemory::Step& memory : steps) begin_memory(memory, &passing);
      const Arena scratch(host_, stream_, stretch.arena_bytes());
      bases_.clear();
      find_bases(Home::kNowhere);
      run_steps(&stretch, scratch.address, nullptr);
      for (const StepMemory::Step& memory : steps) end_memory(memory, &passing);
    }
    if (!now_->measured && now_->stretches.front().noted()) measure();
  }

  // Makes long stretches of units that were each noted alone, now that their scratch memory is
  // known.
  void measure() {
    std::vector<uint64_t> scratch;
    for (const ReplaySegment& unit : now_->stretches) scratch.push_back(unit.arena_bytes());
    cut_into_stretches(now_, scratch);
    for (ReplaySegment& stretch : now_->stretches) stretch.note_next();
    now_->measured = true;
  }

  void begin_memory(const StepMemory::Step& memory, PassingBuffers* passing) {
    for (uint32_t output : memory.outputs) {
      const ValueId id = plan_.outputs[output].value;
      make_output(id);
      places_.show(id, now_->views);
    }
    for (uint32_t buffer : memory.buffers) {
      const graft_address address = passing->begin(buffer, now_->placement.bytes[buffer]);
      for (ValueId id : plan_.buffers[buffer].values) {
        places_[id].address = address;
        places_.show(id, now_->views);
      }
    }
  }

  void end_memory(const StepMemory::Step& memory, PassingBuffers* passing) {
    for (uint32_t buffer : memory.past_buffers) {
      passing->end(buffer);
      for (ValueId id : plan_.buffers[buffer].values) places_[id].address = 0;
    }
    for (uint32_t input : memory.past_inputs) {
      host_.input_past(input);
      places_[graph_.inputs[input]].address = 0;
    }
  }

  // Adds the memory that commands of the steps to come may name, but for that of one home.
  void find_bases(Home without) {
    for (ValueId id = 0; id < places_.size(); ++id) {
      const auto& [home, index, address, offset] = places_[id];
      if (home == Home::kNowhere || home == without) continue;
      const bool arena = home == Home::kArena;
      bases_.push_back(
          {address, arena ? now_->placement.bytes[index] : extent_bytes(now_->views[id])});
    }
  }

  void run_steps(ReplaySegment* stretch, graft_address arena, const RunMemory* memory) {
    const bool whole = stream_.memory_pool() != 0 || commands_are_traced();
    stretch->run(
        stream_, whole, bases_, arena, memory, [this](size_t i) { run_step(&steps_[i]); },
        [this](size_t i) { return steps_[i].repeats(); });
  }

  void run_step(Step* step) {
    if (prepared_for_ != now_) {
      prepared_for_ = nullptr;
      const auto size = [this](const Size& given) { return at(given); };
      for (Step& one : steps_) one.prepare(graph_, now_->views, stream_, size);
      prepared_for_ = now_;
    }
    step->run(host_, stream_, now_->views, numbers_);
  }

  Graph graph_;
  ExecutionHost& host_;
  Stream& stream_;
  MemoryPlan plan_;
  StepMemory step_memory_;
  std::vector<ValueId> root_;
  ValuePlaces places_;
  std::vector<Step> steps_;
  std::vector<uint32_t> step_units_;      // by step
  std::vector<ValueId> sized_constants_;  // whose sizes are symbols
  std::vector<bool> outside_;             // by value: something but a generated kernel may see it
  SizedRuns sizes_;

  // Of the run.
  SymbolValues symbols_;
  SizedRun* now_ = nullptr;                 // of sizes_
  const SizedRun* prepared_for_ = nullptr;  // what the steps are set up for
  std::vector<Scalar> numbers_;             // by value: the call's scalars
  std::vector<graft_address> passing_, outputs_;
  std::vector<BaseMemory> bases_;
};

Executor::Executor(const Graph& graph, ExecutionHost& host, Stream& stream, VendorKernels vendor)
    : host_(host),
      stream_(stream),
      vendor_(vendor == VendorKernels::kAsSet ? vendor_kernels_as_set() : vendor) {
  if (vendor_ == VendorKernels::kMeasure && has_choice(stream.device(), graph)) {
    unmeasured_ = std::make_unique<Graph>(graph), vendor_ = VendorKernels::kAlways;
  }
  frame_ = std::make_unique<Frame>(graph, host, stream, vendor_);
}
Executor::~Executor() = default;

void Executor::run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
                   std::span<TensorView> results) {
  if (unmeasured_ != nullptr && may_measure(stream_)) {
    stream_.synchronize();  // not when made: its maker may go on without it
    frame_ = std::make_unique<Frame>(*std::exchange(unmeasured_, nullptr), host_, stream_,
                                     vendor_ = VendorKernels::kMeasure);
  }
  for (;;) {
    try {
      return frame_->run(inputs, integers, results);
    } catch (const LackingGroup& lacking) {
      host_.lacks_node(lacking.why);
      frame_ = std::make_unique<Frame>(without(frame_->graph(), lacking), host_, stream_, vendor_);
    }
  }
}

int64_t Executor::integer(size_t output) const { return frame_->integer(output); }
std::vector<std::string> Executor::on_host() const { return frame_->on_host(); }
size_t Executor::launches() const { return frame_->counts().launches; }
size_t Executor::compiled() const { return frame_->counts().compiled; }
size_t Executor::libraries() const { return frame_->counts().libraries; }
size_t Executor::externals() const { return frame_->counts().externals; }
size_t Executor::vendor_graphs() const { return frame_->counts().vendor_graphs; }
size_t Executor::in_vendor_graphs() const { return frame_->counts().in_vendor_graphs; }
uint64_t Executor::arena_bytes() const { return frame_->arena_bytes(); }

}  // namespace graft::compiler
