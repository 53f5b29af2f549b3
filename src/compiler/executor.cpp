// src/compiler/executor.cpp: runs a compiled graph: kernels and external nodes, one after another.
#include "compiler/executor.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/program_cache.h"
#include "compiler/constant_bytes.h"
#include "compiler/group_kernel.h"
#include "compiler/memory_plan.h"
#include "compiler/verifier.h"
#include "compiler/views.h"
#include "kernels/axes.h"
#include "runtime/dtype.h"
#include "runtime/error.h"

namespace graft::compiler {

namespace {

constexpr uint64_t kAlignment = 64;
constexpr int64_t kTile = 16384;  // elements that are worth a work-item

struct Step {
  std::vector<NodeId> nodes;
  std::optional<GroupKernel> kernel;  // none: an external node
  graft_kernel handle = nullptr;
  std::vector<graft_argument> arguments;
  uint64_t grid = 0;
  Node node;  // external: with sizes as numbers
  std::vector<ValueId> operands;
  std::vector<TensorView> operand_views, result_views;
  std::vector<Scalar> scalars;
};

// Where the memory of a root comes from.
enum class Home : uint8_t { kInput, kConstant, kArena, kOutput, kNowhere };

struct Place {
  Home home = Home::kNowhere;
  size_t index = 0;
  graft_address address = 0;  // of the root in this run
  uint64_t offset = 0;        // of the value, in bytes
};

// Products run outside with their epilogue behind them; groups without a kernel fall apart.
void take_apart(Graph* graph) {
  std::vector<Group> groups;
  for (Group& group : graph->groups) {
    if (group.kind == GroupKind::kMatmul || group.kind == GroupKind::kConvolution) {
      group.nodes.erase(group.nodes.begin());
      group.kind = GroupKind::kPointwise;
    }
    if (!group.nodes.empty() && group_kernel(*graph, group.nodes)) groups.push_back(group);
  }
  graph->groups = std::move(groups);
}

}  // namespace

class Executor::Frame {
 public:
  Frame(const Graph& graph, ExecutionHost& host, Stream& stream)
      : graph_(graph), host_(host), stream_(stream) {
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
    root_ = effects.root;
    offsets_ = view_offsets(graph_, effects);
    find_homes();
    for (UnitId unit : order) add_step(units.nodes(unit), unit < graph_.groups.size());
    symbols_.resize(graph_.symbols.size());
    views_.resize(graph_.values.size());
    make_constants();
  }

  ~Frame() {
    for (graft_address address : constants_) host_.release(address, stream_);
  }

  void run(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers,
           std::span<TensorView> results) {
    if (inputs.size() != graph_.inputs.size() || results.size() != graph_.outputs.size()) {
      throw Error(
          GRAFT_INVALID_ARGUMENT,
          fmt::format("graph {} takes {} tensors and gives {}, not {} and {}", graph_.name,
                      graph_.inputs.size(), graph_.outputs.size(), inputs.size(), results.size()));
    }
    if (bind(inputs, integers)) resize();
    for (size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i]);
    const graft_address arena =
        placement_.total == 0 ? 0 : host_.allocate(placement_.total, stream_);
    find_addresses(inputs, arena);
    for (Step& step : steps_) {
      if (step.kernel)
        launch(step, inputs);
      else
        call(step, inputs);
    }
    if (arena != 0) host_.release(arena, stream_);
    for (size_t i = 0; i < results.size(); ++i) {
      if (graph_.outputs[i].value != kNone) results[i] = views_[graph_.outputs[i].value];
    }
  }

  size_t launches() const {
    return static_cast<size_t>(std::count_if(steps_.begin(), steps_.end(),
                                             [](const Step& s) { return s.kernel.has_value(); }));
  }
  size_t fused() const {
    size_t count = 0;
    for (const Step& step : steps_) count += step.kernel ? step.nodes.size() : 0;
    return count;
  }
  size_t externals() const { return steps_.size() - launches(); }
  int64_t integer(size_t output) const { return at(graph_.outputs.at(output).integer); }
  uint64_t arena_bytes() const { return placement_.total; }

 private:
  [[noreturn]] void unsupported(const std::string& what, const char* why) const {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("graph {}: {}: {}; run it without compiling", graph_.name, what, why));
  }

  void find_homes() {
    places_.resize(graph_.values.size());
    for (size_t i = 0; i < graph_.inputs.size(); ++i) places_[graph_.inputs[i]] = {Home::kInput, i};
    for (ValueId id : graph_.constants) places_[id] = {Home::kConstant, 0};
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      for (ValueId id : plan_.buffers[i].values) places_[id] = {Home::kArena, i};
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const ValueId value = graph_.outputs[i].value;
      if (value == kNone) continue;
      Place& place = places_[root_[value]];
      if (place.home == Home::kNowhere) place = {Home::kOutput, i};
    }
  }

  void add_step(const std::vector<NodeId>& nodes, bool grouped) {
    Step step;
    step.nodes = nodes;
    const Node& node = graph_.nodes[nodes[0]];
    if (grouped) {
      step.kernel = group_kernel(graph_, nodes);
      step.handle = get_kernel(stream_.device(), step.kernel->key,
                               [&] { return step.kernel->build(graph_); });
    } else {
      const bool view = node.views != kNone && node.writes.empty() && !node.has_effect();
      for (ValueId result : node.results) {
        if (result != kNone && node.views != kNone && !offsets_[result]) {
          unsupported("node " + graph_.describe(nodes[0]), "where its elements lie is not known");
        }
      }
      if (view) return;
      each_value(node.arguments, [&](ValueId value) { step.operands.push_back(value); });
      step.operand_views.resize(step.operands.size());
      step.scalars.resize(step.operands.size());
      step.result_views.resize(node.results.size());
    }
    steps_.push_back(std::move(step));
  }

  void make_constants() {
    for (ValueId id : graph_.constants) {
      const Value& value = graph_.values[id];
      if (!value.external.empty()) {
        places_[id].address = host_.constant(value).address;
        continue;
      }
      if (is_number(value) && !read_outside(id)) continue;
      if (!value.type.extent().is_constant()) {
        unsupported("constant %" + value.name, "its memory has a symbolic size");
      }
      const std::vector<uint8_t> bytes = constant_bytes(value);
      if (bytes.empty()) continue;
      constants_.push_back(host_.allocate(bytes.size(), stream_));
      places_[id].address = constants_.back();
      stream_.copy(constants_.back(), reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                   GRAFT_HOST_TO_DEVICE);
      stream_.synchronize();
    }
  }

  // Whether anything but a generated kernel sees the constant.
  bool read_outside(ValueId id) const {
    for (ValueId value = 0; value < graph_.values.size(); ++value) {
      if (root_[value] != id) continue;
      if (value != id) return true;
      for (const Step& step : steps_) {
        if (std::count(step.operands.begin(), step.operands.end(), value) > 0) return true;
      }
      for (const Output& output : graph_.outputs) {
        if (output.value == value) return true;
      }
    }
    return false;
  }

  // Whether a symbol changed.
  bool bind(std::span<const ExecutionInput> inputs, std::span<const int64_t> integers) {
    bool changed = !bound_;
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Symbol& symbol = graph_.symbols[i];
      int64_t value = 0;
      if (symbol.value != kNone) {
        const TensorView& view = inputs[places_[symbol.value].index].view;
        if (symbol.dim < view.rank) value = view.sizes[symbol.dim];
      } else if (static_cast<size_t>(symbol.dim) < integers.size()) {
        value = integers[static_cast<size_t>(symbol.dim)];
      }
      if (value < symbol.low || value > symbol.high) {
        bound_ = false;
        throw Error(GRAFT_INVALID_ARGUMENT,
                    fmt::format("graph {}: {} is {}, but the graph was compiled for {} to {}",
                                graph_.name, symbol.name, value, symbol.low, symbol.high));
      }
      changed = changed || symbols_[i] != value;
      symbols_[i] = value;
    }
    return changed;
  }

  int64_t at(const Size& size) const {
    return size.evaluate([this](std::string_view name) {
      for (size_t i = 0; i < symbols_.size(); ++i) {
        if (graph_.symbols[i].name == name) return symbols_[i];
      }
      throw Error(GRAFT_INTERNAL, "a symbol has no value");
    });
  }

  void resize() {
    bound_ = false;
    for (ValueId id = 0; id < graph_.values.size(); ++id) {
      const TensorType& type = graph_.values[id].type;
      TensorView& view = views_[id];
      view.dtype = type.dtype;
      view.rank = static_cast<int>(type.sizes.size());
      for (int i = 0; i < view.rank; ++i) {
        view.sizes[i] = at(type.sizes[static_cast<size_t>(i)]);
        view.strides[i] = at(type.strides[static_cast<size_t>(i)]);
      }
      if (offsets_[id]) {
        places_[id].offset = static_cast<uint64_t>(at(*offsets_[id])) * graft::size_of(type.dtype);
      }
    }
    placement_.bytes.clear();
    for (const PlannedBuffer& buffer : plan_.buffers) {
      placement_.bytes.push_back(static_cast<uint64_t>(at(buffer.bytes)));
    }
    place(plan_, kAlignment, &placement_);
    for (Step& step : steps_) {
      if (step.kernel)
        arrange(step);
      else
        resolve(step);
    }
    bound_ = true;
  }

  void check_input(size_t i, const ExecutionInput& input) const {
    const Value& value = graph_.values[graph_.inputs[i]];
    const TensorView& wanted = views_[graph_.inputs[i]];
    const bool scalar = value.kind == InputKind::kScalar;
    const graft_dtype dtype = scalar ? input.scalar.dtype : input.view.dtype;
    bool fits = dtype == wanted.dtype && (scalar || input.view.rank == wanted.rank);
    for (int k = 0; fits && !scalar && k < wanted.rank; ++k) {
      fits = input.view.sizes[k] == wanted.sizes[k] &&
             (wanted.sizes[k] <= 1 || input.view.strides[k] == wanted.strides[k]);
    }
    if (fits) return;
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("graph {}: input %{} has another dtype, size or stride than the graph "
                            "was compiled for: compile it anew",
                            graph_.name, value.name));
  }

  static void push_index(Step& step, int64_t value) {
    step.arguments.push_back(
        {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, static_cast<uint64_t>(value), 8});
  }

  // All arguments of a launch but addresses and numbers, which each run fills in.
  void arrange(Step& step) {
    const GroupLoops& loops = step.kernel->loops;
    step.arguments.assign(loops.tensors.size() + step.kernel->numbers.size(), {});
    std::vector<int64_t> sizes;
    int64_t rows = 1;
    for (const Size& size : loops.sizes) sizes.push_back(at(size));
    for (size_t i = 0; i < loops.inner(); ++i) rows *= sizes[i];
    const int64_t length = sizes.back();
    const bool small = rows * length <= 2 * kTile;
    const int64_t tile = small || loops.reduces ? length : std::min(length, kTile);
    const int64_t items_per_row = tile == 0 ? 1 : (length + tile - 1) / tile;
    const int64_t rows_per_item = small
                                      ? std::max<int64_t>(rows, 1)
                                      : std::max<int64_t>(1, kTile / std::max<int64_t>(length, 1));
    step.grid = static_cast<uint64_t>((rows + rows_per_item - 1) / rows_per_item * items_per_row);
    if (length == 0 && !loops.reduces) step.grid = 0;
    for (int64_t value : {length, tile, rows, rows_per_item, items_per_row})
      push_index(step, value);
    for (size_t i = 1; i < loops.inner(); ++i) push_index(step, sizes[i]);
    for (const GroupTensor& tensor : loops.tensors) {
      for (const Size& stride : tensor.strides) push_index(step, at(stride));
    }
  }

  void resolve(Step& step) {
    step.node = graph_.nodes[step.nodes[0]];
    resolve(step.node.arguments);
  }
  void resolve(std::vector<Argument>& arguments) const {
    for (Argument& argument : arguments) {
      if (argument.kind == Argument::Kind::kInteger) argument.integer = at(argument.integer);
      resolve(argument.list);
    }
  }

  void find_addresses(std::span<const ExecutionInput> inputs, graft_address arena) {
    for (ValueId id = 0; id < places_.size(); ++id) {
      Place& place = places_[id];
      if (place.home == Home::kInput) place.address = inputs[place.index].view.address;
      if (place.home == Home::kArena) place.address = arena + placement_.offsets[place.index];
      if (place.home == Home::kOutput) {
        place.address = host_.output(place.index, extent_bytes(views_[id]), stream_);
      }
    }
    for (ValueId id = 0; id < places_.size(); ++id) {
      const bool own = places_[id].home != Home::kNowhere;
      const graft_address base = own ? places_[id].address : places_[root_[id]].address;
      views_[id].address = base == 0 ? 0 : base + (own ? 0 : places_[id].offset);
    }
  }

  void launch(Step& step, std::span<const ExecutionInput> inputs) {
    if (step.grid == 0) return;
    size_t next = 0;
    for (const GroupTensor& tensor : step.kernel->loops.tensors) {
      const TensorView& view = views_[tensor.value];
      const uint8_t access = tensor.written ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
      step.arguments[next++] = {GRAFT_ARGUMENT_ADDRESS, 0, access, 0, view.address,
                                extent_bytes(view)};
    }
    for (ValueId value : step.kernel->numbers) {
      const Scalar& scalar = inputs[places_[value].index].scalar;
      step.arguments[next++] = {GRAFT_ARGUMENT_SCALAR, static_cast<uint8_t>(scalar.dtype), 0, 0,
                                scalar.bits[0],        graft::size_of(scalar.dtype)};
    }
    stream_.launch(step.handle, step.grid, step.arguments);
  }

  void call(Step& step, std::span<const ExecutionInput> inputs) {
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const ValueId value = step.operands[i];
      step.operand_views[i] = views_[value];
      const bool scalar =
          graph_.values[value].kind == InputKind::kScalar && places_[value].home == Home::kInput;
      if (scalar) step.scalars[i] = inputs[places_[value].index].scalar;
    }
    for (size_t i = 0; i < step.result_views.size(); ++i) {
      const ValueId value = step.node.results[i];
      if (value != kNone) step.result_views[i] = views_[value];
    }
    host_.run({graph_, step.node, step.operand_views, step.scalars, step.result_views}, stream_);
  }

  Graph graph_;
  ExecutionHost& host_;
  Stream& stream_;
  MemoryPlan plan_;
  std::vector<ValueId> root_;
  std::vector<std::optional<Size>> offsets_;
  std::vector<Place> places_;  // by value
  std::vector<Step> steps_;
  std::vector<graft_address> constants_;

  // Of the run.
  bool bound_ = false;
  std::vector<int64_t> symbols_;
  std::vector<TensorView> views_;  // by value
  Placement placement_;
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
size_t Executor::fused() const { return frame_->fused(); }
size_t Executor::externals() const { return frame_->externals(); }
uint64_t Executor::arena_bytes() const { return frame_->arena_bytes(); }

}  // namespace graft::compiler
