// src/compiler/executor.cpp: runs a compiled graph: kernels and external nodes, one after another.
#include "compiler/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/constant_bytes.h"
#include "compiler/group_kernel.h"
#include "compiler/run_memory.h"
#include "compiler/step.h"
#include "compiler/step_memory.h"
#include "compiler/stretch.h"
#include "compiler/ungrouping.h"
#include "compiler/value_places.h"
#include "compiler/verifier.h"
#include "kernels/axes.h"
#include "runtime/dtype.h"
#include "runtime/error.h"

namespace graft::compiler {

namespace {

constexpr uint64_t kAlignment = 64;

// From so many bytes of inputs on their memory goes back while a run lasts, and its own memory
// comes and goes with the stretches.
constexpr uint64_t kWorthGiving = 256u << 10;

}  // namespace

class Executor::Frame {
 public:
  Frame(const Graph& graph, ExecutionHost& host, Stream& stream)
      : graph_(graph), host_(host), stream_(stream), symbols_(graph_) {
    verify(graph_);
    take_apart(&graph_);
    for (const Symbol& symbol : graph_.symbols) {
      const bool made = symbol.value != kNone && graph_.values[symbol.value].node != kNone;
      if (made) unsupported("symbol " + symbol.name, "a node's result decides its size");
    }
    const Effects effects(graph_);
    const Units units(graph_, effects);
    const std::vector<UnitId> order = units.sorted();
    plan_ = plan_memory(graph_, effects, units, order);
    step_memory_ = step_memory(graph_, effects, units, order, plan_);
    root_ = effects.root;
    places_ = ValuePlaces(graph_, effects, plan_);
    outside_.resize(graph_.values.size(), false);
    compile_kernels(effects);
    for (uint32_t i = 0; i < order.size(); ++i) {
      const size_t before = steps_.size();
      add_step(effects, units.nodes(order[i]), order[i] < graph_.groups.size());
      if (steps_.size() > before) steps_.back().unit = i;
    }
    views_.resize(graph_.values.size());
    numbers_.resize(graph_.values.size());
    make_constants(effects);
  }

  ~Frame() {
    for (ValueId id : graph_.constants) {
      const bool own = graph_.values[id].external.empty() && places_[id].address != 0;
      if (own) host_.release(places_[id].address, stream_);
    }
  }

  void run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
           std::span<TensorView> results) {
    if (inputs.size() != graph_.inputs.size() || results.size() != graph_.outputs.size()) {
      throw Error(
          GRAFT_INVALID_ARGUMENT,
          fmt::format("graph {} takes {} tensors and gives {}, not {} and {}", graph_.name,
                      graph_.inputs.size(), graph_.outputs.size(), inputs.size(), results.size()));
    }
    if (symbols_.bind(inputs, integers) || !sized_) resize();
    for (size_t i = 0; i < inputs.size(); ++i) {
      ValuePlaces::check_input(graph_, i, views_[graph_.inputs[i]], inputs[i]);
    }
    if (host_.gives_inputs() && given_bytes_ >= kWorthGiving) {
      run_giving(inputs);
    } else {
      const uint64_t own = CapturedRun::in_scratch(placement_.total);
      const Arena arena(host_, stream_, own + whole_.scratch_bytes());
      find_addresses(inputs, arena.address);
      bases_.assign(1, {arena.address, placement_.total});
      find_bases(Home::kArena);
      run_steps(&whole_, arena.address + own);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (graph_.outputs[i].value != kNone) results[i] = views_[graph_.outputs[i].value];
    }
  }

  size_t launches() const {
    size_t count = 0;
    for (const Step& step : steps_) count += step.launches();
    return count;
  }
  size_t libraries() const {
    return static_cast<size_t>(std::count_if(steps_.begin(), steps_.end(),
                                             [](const Step& s) { return s.library.has_value(); }));
  }
  size_t externals() const {
    return static_cast<size_t>(std::count_if(steps_.begin(), steps_.end(),
                                             [](const Step& s) { return s.external.has_value(); }));
  }
  size_t compiled() const {
    size_t count = 0;
    for (const Step& step : steps_) count += step.external ? 0 : step.nodes.size();
    return count;
  }
  int64_t integer(size_t output) const { return at(graph_.outputs.at(output).integer); }
  uint64_t arena_bytes() const { return placement_.total + whole_.scratch_bytes(); }

 private:
  [[noreturn]] void unsupported(const std::string& what, const char* why) const {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("graph {}: {}: {}; run it without compiling", graph_.name, what, why));
  }

  void compile_kernels(const Effects& effects) {
    std::vector<GroupKernel> kernels;
    for (const Group& group : graph_.groups) {
      if (library_call(graph_, group.nodes)) continue;
      kernels.push_back(*group_kernel(graph_, effects, group.nodes));
    }
    compile_together(graph_, kernels, stream_.device());
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
    } else {
      const bool view = node.views != kNone && node.writes.empty() && !node.has_effect();
      for (ValueId result : node.results) {
        if (result != kNone && node.views != kNone && !places_.offset(result)) {
          unsupported("node " + graph_.describe(nodes[0]), "where its elements lie is not known");
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
      const Value& value = graph_.values[id];
      if (!value.external.empty()) {
        places_[id].address = host_.constant(value).address;
        continue;
      }
      if (is_number(value) && !outside_[id]) continue;
      if (value.type.extent().is_constant())
        write_constant(id);
      else
        sized_constants_.push_back(id);
    }
  }

  void write_constant(ValueId id) {
    const Value& value = graph_.values[id];
    if (places_[id].address != 0) host_.release(places_[id].address, stream_);
    places_[id].address = 0;
    const auto bytes =
        constant_bytes(value, static_cast<uint64_t>(std::max<int64_t>(at(value.type.extent()), 0)));
    if (bytes.empty()) return;
    places_[id].address = host_.allocate(bytes.size(), stream_);
    stream_.copy(places_[id].address, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                 GRAFT_HOST_TO_DEVICE);
    stream_.synchronize();
  }

  int64_t at(const Size& size) const { return symbols_.at(size); }

  void resize() {
    sized_ = false;
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const TensorType& type = graph_.values[id].type;
      TensorView& view = views_[id];
      view.dtype = type.dtype;
      view.rank = static_cast<int>(type.sizes.size());
      for (int i = 0; i < view.rank; ++i) {
        view.sizes[i] = at(type.sizes[static_cast<size_t>(i)]);
        view.strides[i] = at(type.strides[static_cast<size_t>(i)]);
      }
      if (const auto& offset = places_.offset(id)) {
        places_[id].offset = static_cast<uint64_t>(at(*offset)) * graft::size_of(type.dtype);
      }
    }
    placement_.bytes.clear();
    for (const PlannedBuffer& buffer : plan_.buffers) {
      placement_.bytes.push_back(static_cast<uint64_t>(at(buffer.bytes)));
    }
    placement_.room.clear();
    for (const PlannedOutput& output : plan_.outputs) {
      placement_.room.push_back(static_cast<uint64_t>(at(output.bytes)));
    }
    place(plan_, kAlignment, &placement_);
    given_bytes_ = 0;
    for (const Size& bytes : step_memory_.activations) {
      given_bytes_ += static_cast<uint64_t>(std::max<int64_t>(at(bytes), 0));
    }
    if (given_bytes_ >= kWorthGiving) {
      cut_into_stretches({});
      measured_ = false;
    }
    for (ValueId id : sized_constants_) write_constant(id);
    const auto size = [this](const Size& given) { return at(given); };
    for (Step& step : steps_) step.prepare(graph_, views_, stream_, size);
    whole_.forget();
    whole_.end = steps_.size();
    sized_ = true;
  }

  // scratch: by unit, or nothing.
  void cut_into_stretches(std::span<const uint64_t> scratch) {
    std::vector<uint64_t> given(graph_.inputs.size(), 0);
    for (size_t i = 0; i < given.size(); ++i) {
      const ValueId id = graph_.inputs[i];
      if (graph_.values[id].kind == InputKind::kActivation) given[i] = extent_bytes(views_[id]);
    }
    std::vector<uint32_t> units;
    for (const Step& step : steps_) units.push_back(step.unit);
    stretches_ = cut(step_memory_, placement_, given, scratch, units);
  }

  void find_addresses(std::span<const ExecutionInput> inputs, graft_address arena) {
    find_inputs(inputs);
    for (ValueId id = 0; id < places_.size(); ++id) {
      if (places_[id].home == Home::kOutput) make_output(id);
    }
    for (ValueId id = 0; id < places_.size(); ++id) {
      Place& place = places_[id];
      if (place.home != Home::kArena) continue;
      const uint32_t host = placement_.hosts[place.index];
      const graft_address base = host == kNone ? arena : places_[plan_.outputs[host].value].address;
      place.address = base + placement_.offsets[place.index];
    }
    for (ValueId id = 0; id < places_.size(); ++id) {
      if (places_[id].home != Home::kNowhere) places_.show(id, views_);
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
    place.address = host_.output(place.index, extent_bytes(views_[id]), stream_);
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
      if (home == Home::kInput || home == Home::kConstant) places_.show(id, views_);
    }
    for (Stretch& stretch : stretches_) {
      const std::span steps(step_memory_.steps.begin() + stretch.first_unit,
                            step_memory_.steps.begin() + stretch.past_units);
      for (const StepMemory::Step& memory : steps) begin_memory(memory, &passing);
      const Arena scratch(host_, stream_, stretch.scratch_bytes());
      bases_.clear();
      find_bases(Home::kNowhere);
      run_steps(&stretch, scratch.address);
      for (const StepMemory::Step& memory : steps) end_memory(memory, &passing);
    }
    if (!measured_ && stretches_.front().noted()) measure();
  }

  // Makes long stretches of units that were each noted alone, now that their scratch memory is
  // known.
  void measure() {
    std::vector<uint64_t> scratch;
    for (const Stretch& unit : stretches_) scratch.push_back(unit.scratch_bytes());
    cut_into_stretches(scratch);
    for (Stretch& stretch : stretches_) stretch.note_next();
    measured_ = true;
  }

  void begin_memory(const StepMemory::Step& memory, PassingBuffers* passing) {
    for (uint32_t output : memory.outputs) {
      const ValueId id = plan_.outputs[output].value;
      make_output(id);
      places_.show(id, views_);
    }
    for (uint32_t buffer : memory.buffers) {
      const graft_address address = passing->begin(buffer, placement_.bytes[buffer]);
      for (ValueId id : plan_.buffers[buffer].values) {
        places_[id].address = address;
        places_.show(id, views_);
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
      bases_.push_back({address, arena ? placement_.bytes[index] : extent_bytes(views_[id])});
    }
  }

  void run_steps(Stretch* stretch, graft_address scratch) {
    const bool whole = stream_.memory_pool() != 0 || commands_are_traced();
    stretch->run(
        stream_, whole, bases_, scratch,
        [this](size_t i) { steps_[i].run(host_, stream_, views_, numbers_); },
        [this](size_t i) { return steps_[i].repeats(); });
  }

  Graph graph_;
  ExecutionHost& host_;
  Stream& stream_;
  MemoryPlan plan_;
  StepMemory step_memory_;
  std::vector<ValueId> root_;
  ValuePlaces places_;
  std::vector<Step> steps_;
  std::vector<ValueId> sized_constants_;  // whose sizes are symbols: written when these change
  std::vector<bool> outside_;             // by value: something but a generated kernel may see it

  // Of the run.
  bool sized_ = false;  // what depends on symbols is up to date
  SymbolValues symbols_;
  std::vector<TensorView> views_;  // by value
  std::vector<Scalar> numbers_;    // by value: the call's scalars
  Placement placement_;
  uint64_t given_bytes_ = 0;  // of inputs that may go before the run ends
  std::vector<graft_address> passing_;
  std::vector<BaseMemory> bases_;
  Stretch whole_;                   // all steps
  std::vector<Stretch> stretches_;  // of runs that give memory back as they go along
  bool measured_ = false;           // whether they are as long as may be
};

Executor::Executor(const Graph& graph, ExecutionHost& host, Stream& stream)
    : frame_(std::make_unique<Frame>(graph, host, stream)) {}
Executor::~Executor() = default;

void Executor::run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
                   std::span<TensorView> results) {
  frame_->run(inputs, integers, results);
}

int64_t Executor::integer(size_t output) const { return frame_->integer(output); }
size_t Executor::launches() const { return frame_->launches(); }
size_t Executor::compiled() const { return frame_->compiled(); }
size_t Executor::libraries() const { return frame_->libraries(); }
size_t Executor::externals() const { return frame_->externals(); }
uint64_t Executor::arena_bytes() const { return frame_->arena_bytes(); }

}  // namespace graft::compiler
