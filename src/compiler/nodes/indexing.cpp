// src/compiler/nodes/indexing.cpp: nodes that read elements at positions that come from data.
#include "compiler/nodes/indexing.h"

#include <algorithm>

#include "kernels/index/index.h"
#include "kernels/launch/workspace.h"
#include "kernels/move/copy.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {
namespace {

bool is_index(const TensorType& type) {
  return type.dtype == GRAFT_INT64 || type.dtype == GRAFT_INT32;
}

const TensorType& type_of(const Graph& graph, ValueId value) { return graph.values[value].type; }

// index_select by indices of any rank and strides, as rows side by side.
void select_rows(Stream& stream, const TensorView& to, const TensorView& table,
                 const TensorView& indices) {
  TensorView rows = to, line = indices;
  rows.rank = 2;
  rows.sizes[0] = indices.count(), rows.sizes[1] = table.sizes[1];
  rows.strides[0] = table.sizes[1], rows.strides[1] = 1;
  const uint64_t bytes = static_cast<uint64_t>(indices.count()) * size_of(indices.dtype);
  const Workspace copied(stream, indices.contiguous() ? 0 : bytes);
  if (copied.address() != 0) {
    line.address = copied.address();
    make_contiguous(line);
    copy(stream, line, indices);
  }
  line.rank = 1, line.sizes[0] = indices.count(), line.strides[0] = 1;
  index_select(stream, rows, table, 0, line);
}

DirectNode embedding_node(const Graph& graph, const Node& node) {
  const ValueId table = operand(node, 0), indices = operand(node, 1);
  if (table == kNone || indices == kNone || type_of(graph, table).sizes.size() != 2) return {};
  if (!is_index(type_of(graph, indices))) return {};
  if (!type_of(graph, node.results[0]).row_major()) return {};
  return unless_empty(node, [](const ExternalCall& call, Stream& stream) {
    select_rows(stream, call.results[0], call.operands[0], call.operands[1]);
  });
}

// Both take (self, dim, index).
DirectNode along_node(const Graph& graph, const Node& node, bool gathers) {
  double dim = 0;
  const ValueId self = operand(node, 0), indices = operand(node, 2);
  if (self == kNone || indices == kNone || !number_of(node, "dim", &dim)) return {};
  const size_t rank = type_of(graph, self).sizes.size();
  const size_t index_rank = type_of(graph, indices).sizes.size();
  if (!is_index(type_of(graph, indices)) || rank == 0) return {};
  if (gathers ? index_rank != rank : index_rank > 1) return {};
  const int at = static_cast<int>(dim < 0 ? dim + static_cast<double>(rank) : dim);
  return unless_empty(node, [at, gathers](const ExternalCall& call, Stream& stream) {
    const auto run = gathers ? gather : index_select;
    run(stream, call.results[0], call.operands[0], at, call.operands[1]);
  });
}

// Which dimensions of self have indices, as positions of the argument's list; empty where the list
// has something else than integers of one dtype.
std::vector<int> indexed_dims(const Graph& graph, const Node& node) {
  std::vector<int> dims;
  const std::vector<Argument>& list = node.arguments[1].list;
  for (size_t d = 0; d < list.size(); ++d) {
    if (list[d].kind == Argument::Kind::kNone) continue;
    if (list[d].kind != Argument::Kind::kValue) return {};
    const TensorType& type = type_of(graph, list[d].value);
    const ValueId first = list[dims.empty() ? d : static_cast<size_t>(dims[0])].value;
    if (!is_index(type) || type.dtype != type_of(graph, first).dtype) return {};
    dims.push_back(static_cast<int>(d));
  }
  return dims;
}

// The sizes of what indices at these dimensions of self name: their own, spread out, lie at the
// place of the first one, or in front where other dimensions lie between them.
struct Indexed {
  TensorView shape;  // sizes alone
  int front = 0, wide = 0;
};

Indexed indexed(const TensorView& self, std::span<const TensorView> indices,
                const std::vector<int>& dims) {
  const bool adjacent = dims.back() - dims.front() == static_cast<int>(dims.size()) - 1;
  Indexed all;
  all.front = adjacent ? dims.front() : 0;
  for (const TensorView& one : indices) all.wide = std::max(all.wide, one.rank);
  for (int d = 0; d < self.rank; ++d) {
    if (all.shape.rank == all.front) all.shape.rank += all.wide;
    if (std::ranges::find(dims, d) == dims.end()) all.shape.sizes[all.shape.rank++] = self.sizes[d];
  }
  if (all.shape.rank == all.front) all.shape.rank += all.wide;
  int64_t* const sizes = all.shape.sizes + all.front;
  std::fill_n(sizes, all.wide, 1);
  for (const TensorView& one : indices) {
    for (int d = 0; d < one.rank; ++d) {
      int64_t& size = sizes[all.wide - one.rank + d];
      if (one.sizes[d] != 1) size = one.sizes[d];
    }
  }
  return all;
}

// The views that index() and index_put() take, all of the indexed sizes.
struct Spread {
  TensorView input;
  std::vector<TensorView> indices;
  std::vector<int64_t> sizes, strides;
};

Spread spread(const TensorView& self, std::span<const TensorView> indices,
              const std::vector<int>& dims) {
  const Indexed to = indexed(self, indices, dims);
  Spread all;
  all.input = to.shape;
  all.input.address = self.address, all.input.dtype = self.dtype;
  std::fill_n(all.input.strides, to.shape.rank, 0);
  int at = 0;
  for (int d = 0; d < self.rank; ++d) {
    if (std::ranges::find(dims, d) != dims.end()) {
      all.sizes.push_back(self.sizes[d]), all.strides.push_back(self.strides[d]);
      continue;
    }
    if (at == to.front) at += to.wide;
    all.input.strides[at++] = self.strides[d];
  }
  TensorView shape = to.shape;
  shape.rank = to.front + to.wide;
  for (const TensorView& given : indices) {
    TensorView& index = all.indices.emplace_back(expanded(given, shape));
    for (int d = shape.rank; d < to.shape.rank; ++d) {
      index.sizes[d] = to.shape.sizes[d], index.strides[d] = 0;
    }
    index.rank = to.shape.rank;
  }
  return all;
}

DirectNode index_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0);
  if (self == kNone || node.arguments.size() != 2) return {};
  std::vector<int> dims = indexed_dims(graph, node);
  if (dims.empty()) return {};
  return unless_empty(
      "aten::index", [dims = std::move(dims)](const ExternalCall& call, Stream& stream) {
        const Spread all = spread(call.operands[0], call.operands.subspan(1), dims);
        index(stream, call.results[0], all.input, all.indices, all.sizes, all.strides);
      });
}

DirectNode index_put_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0), values = operand(node, 2);
  if (self == kNone || values == kNone) return {};
  if (type_of(graph, self).dtype != type_of(graph, values).dtype) return {};
  std::vector<int> dims = indexed_dims(graph, node);
  if (dims.empty()) return {};
  return under(node, [dims = std::move(dims), accumulate = is_true(node, "accumulate"),
                      in_place = node.op->in_place](const ExternalCall& call, Stream& stream) {
    const TensorView& to = in_place ? call.operands[0] : call.results[0];
    if (to.count() == 0) return;
    if (!in_place) copy(stream, to, call.operands[0]);
    const Spread all = spread(to, call.operands.subspan(1, dims.size()), dims);
    if (all.input.count() == 0) return;
    index_put(stream, all.input, expanded(call.operands[1 + dims.size()], all.input), all.indices,
              all.sizes, all.strides, accumulate);
  });
}

DirectNode scatter_node(const Graph& graph, const Node& node) {
  double dim = 0;
  const ValueId self = operand(node, 0), indices = operand(node, 2), from = operand(node, 3);
  if (self == kNone || indices == kNone || from == kNone) return {};
  if (!number_of(node, "dim", &dim)) return {};
  const size_t rank = type_of(graph, self).sizes.size();
  const graft_dtype dtype = type_of(graph, self).dtype;
  if (!is_index(type_of(graph, indices)) || rank == 0) return {};
  if (type_of(graph, indices).sizes.size() != rank) return {};
  if (type_of(graph, from).sizes.size() != rank || type_of(graph, from).dtype != dtype) return {};
  const int at = static_cast<int>(dim < 0 ? dim + static_cast<double>(rank) : dim);
  return unless_empty("aten::scatter", [at](const ExternalCall& call, Stream& stream) {
    copy(stream, call.results[0], call.operands[0]);
    if (call.operands[1].count() == 0) return;
    scatter(stream, call.results[0], at, call.operands[1], call.operands[2], ScatterMode::kReplace);
  });
}

}  // namespace

DirectNode indexing_node(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || node.results[0] == kNone || node.arguments.size() < 2) return {};
  if (node.is(OperatorId::kEmbedding)) return embedding_node(graph, node);
  if (node.is(OperatorId::kGather)) return along_node(graph, node, true);
  if (node.is(OperatorId::kIndexSelect)) return along_node(graph, node, false);
  if (node.is(OperatorId::kIndex)) return index_node(graph, node);
  if (node.is(OperatorId::kIndexPut, OperatorId::kIndexPutInto)) return index_put_node(graph, node);
  if (node.is(OperatorId::kScatter)) return scatter_node(graph, node);
  return {};
}

}  // namespace graft::compiler
