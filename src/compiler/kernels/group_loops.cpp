// src/compiler/kernels/group_loops.cpp: the loops of a generated kernel and its tensors' strides
// along them.
#include "compiler/kernels/group_loops.h"

#include <algorithm>

#include "compiler/analysis/reduction.h"

namespace graft::compiler {

namespace {

// Strides along the domain; of what a reduction of the group gives without the reduced dimensions,
// along the rest.
std::vector<Size> spread(const Graph& graph, ValueId value, const Loops& loops, bool made) {
  const TensorType& type = graph.values[value].type;
  std::vector<Size> strides(loops.domain.size(), Size());
  LastReduction reduction;
  const bool dropped = made &&
                       last_reduction(graph, graph.nodes[graph.values[value].node], &reduction) &&
                       !reduction.keeps;
  const size_t shift = dropped ? 0 : loops.domain.size() - type.sizes.size();
  for (size_t i = 0; i < type.sizes.size(); ++i) {
    if (!type.sizes[i].is(1)) strides[i + shift] = type.strides[i];
  }
  return strides;
}

bool joins(const GroupLoops& loops, size_t outer) {
  return std::all_of(loops.tensors.begin(), loops.tensors.end(), [&](const GroupTensor& tensor) {
    return tensor.strides[outer] == tensor.strides[outer + 1] * loops.sizes[outer + 1];
  });
}

void drop(GroupLoops* loops, size_t loop) {
  loops->sizes.erase(loops->sizes.begin() + static_cast<int64_t>(loop));
  for (GroupTensor& tensor : loops->tensors) {
    tensor.strides.erase(tensor.strides.begin() + static_cast<int64_t>(loop));
  }
}

// Joins loops begin .. end - 1 where it can; returns how many are left of them.
size_t join(GroupLoops* loops, size_t begin, size_t end) {
  for (size_t i = end; i-- > begin;) {
    if (loops->sizes[i].is(1)) drop(loops, i), --end;
  }
  for (size_t i = end; i-- > begin + 1;) {
    if (!joins(*loops, i - 1)) continue;
    loops->sizes[i] = loops->sizes[i] * loops->sizes[i - 1];
    drop(loops, i - 1);
    --end;
  }
  return end - begin;
}

// Sorts the first loops so that the first tensor is walked through as it lies in memory. Sizes of
// symbols count as typical.
void sort_loops(const Graph& graph, GroupLoops* loops, size_t count) {
  std::vector<int64_t> strides;
  for (const Size& stride : loops->tensors[0].strides) strides.push_back(graph.hint(stride));
  std::vector<size_t> order(loops->sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.begin() + static_cast<int64_t>(count),
                   [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  auto arrange = [&](std::vector<Size>* items) {
    const std::vector<Size> given = *items;
    for (size_t i = 0; i < order.size(); ++i) (*items)[i] = given[order[i]];
  };
  arrange(&loops->sizes);
  for (GroupTensor& tensor : loops->tensors) arrange(&tensor.strides);
}

void add_inner(GroupLoops* loops) {
  loops->sizes.push_back(1);
  for (GroupTensor& tensor : loops->tensors) tensor.strides.push_back(Size());
}

// Whether a node that does not reverse it reads a value.
bool read_forwards(const Graph& graph, const std::vector<NodeId>& nodes, ValueId value) {
  return std::ranges::any_of(nodes, [&](NodeId id) {
    bool reads = false;
    each_value(graph.nodes[id].arguments, [&](ValueId operand) { reads |= operand == value; });
    return reads && !reversal(graph, graph.nodes[id]);
  });
}

AccessPattern walk_of(const GroupTensor& tensor) {
  const Size& stride = tensor.strides.back();
  if (stride.is(0)) return AccessPattern::kUniform;
  if (stride.is(1)) return AccessPattern::kDense;
  if (stride.is(-1)) return AccessPattern::kReversed;
  return stride.is(2) && !tensor.written ? AccessPattern::kSecond : AccessPattern::kStrided;
}

}  // namespace

bool is_number(const GraphValue& value) {
  if (value.origin == Origin::kInput) return value.kind == InputKind::kScalar;
  return value.origin == Origin::kConstant && value.external.empty() &&
         value.data.size() + value.whole.size() == 1;
}

Axes GroupLoops::axes(const std::function<int64_t(const Size&)>& at) const {
  Axes axes;
  axes.operands = static_cast<int>(tensors.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    Axis axis;
    axis.size = at(sizes[i]);
    for (size_t t = 0; t < tensors.size(); ++t) axis.strides[t] = at(tensors[t].strides[i]);
    axes.push(axis);
  }
  return axes;
}

NestShape GroupLoops::shape(WorkMapping deal) const {
  NestShape shape;
  shape.deal = deal;
  shape.outer = static_cast<int>(inner());
  shape.lines = reduces;
  shape.count = static_cast<int>(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    NestShape::Operand& operand = shape.operands[t];
    operand.walk = walk_of(tensors[t]);
    operand.shifted = tensors[t].reversed_by != kNone;
    for (size_t i = 0; i < inner(); ++i) {
      if (tensors[t].strides[i].is(0)) operand.still |= static_cast<uint16_t>(1u << i);
    }
  }
  return shape;
}

std::optional<Loops> domain_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<Loops> parts;
  for (NodeId id : nodes) {
    const auto loops = group_loops_of(graph, graph.nodes[id]);
    if (!loops) return std::nullopt;
    parts.push_back(*loops);
  }
  // Those that reduce say what a row is.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Loops& a, const Loops& b) { return a.reduced > b.reduced; });
  std::optional<Loops> all = parts[0];
  for (size_t i = 1; i < parts.size() && all; ++i) all = joined(*all, parts[i]);
  return all;
}

std::optional<GroupLoops> group_loops(const Graph& graph, const Effects& effects,
                                      const std::vector<NodeId>& nodes) {
  const auto domain = domain_of(graph, nodes);
  if (!domain) return std::nullopt;
  const GroupEdges edges = edges_of(graph, effects, nodes);
  GroupLoops loops;
  loops.sizes = domain->domain;
  loops.reduces = domain->reduced > 0;
  for (ValueId value : edges.outputs) {
    loops.tensors.push_back({value, true, spread(graph, value, *domain, true)});
  }
  for (ValueId value : edges.inputs) {
    if (!is_number(graph.values[value]) && read_forwards(graph, nodes, value)) {
      loops.tensors.push_back({value, false, spread(graph, value, *domain, false)});
    }
  }
  for (NodeId id : nodes) {
    const auto reversed = reversal(graph, graph.nodes[id]);
    if (!reversed) continue;
    const bool outside = std::ranges::find(edges.inputs, reversed->input) != edges.inputs.end();
    if (!outside || is_number(graph.values[reversed->input])) return std::nullopt;
    std::vector<Size> strides = spread(graph, reversed->input, *domain, false);
    const size_t shift = strides.size() - reversed->dims.size();
    for (size_t i = 0; i < reversed->dims.size(); ++i) {
      if (reversed->dims[i]) strides[i + shift] = strides[i + shift] * Size(-1);
    }
    loops.tensors.push_back({reversed->input, false, std::move(strides), id});
  }
  if (loops.tensors.size() > kMaxGroupTensors) return std::nullopt;
  const size_t kept = loops.sizes.size() - domain->reduced;
  if (!loops.tensors.empty() && !loops.reduces) sort_loops(graph, &loops, kept);
  if (loops.reduces) {
    const size_t left = join(&loops, kept, loops.sizes.size());
    if (left > 1) return std::nullopt;
    if (left == 0) add_inner(&loops);
  }
  join(&loops, 0, kept);
  if (loops.sizes.empty()) add_inner(&loops);
  return loops;
}

}  // namespace graft::compiler
