// src/compiler/nodes/moves.cpp: nodes that join, count, add up, pool and pick elements.
#include "compiler/nodes/moves.h"

#include <algorithm>
#include <optional>

#include "compiler/analysis/reduction.h"
#include "kernels/index/index.h"
#include "kernels/move/copy.h"
#include "kernels/move/range.h"
#include "kernels/norm/softmax.h"
#include "kernels/pooling/pooling.h"
#include "kernels/reduce/reduce.h"
#include "kernels/scan/scan.h"
#include "kernels/sort/sort.h"
#include "kernels/tensor/image_views.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {
namespace {

const TensorType& type_of(const Graph& graph, ValueId value) { return graph.values[value].type; }

// A dimension counted from the front.
std::optional<int> dim_of(const Node& node, size_t rank) {
  double dim = 0;
  if (argument(node, "dim") != nullptr && !number_of(node, "dim", &dim)) return std::nullopt;
  return static_cast<int>(dim < 0 ? dim + static_cast<double>(rank) : dim);
}

DirectNode cat_node(const Graph& graph, const Node& node) {
  const TensorType& to = type_of(graph, node.results[0]);
  const std::optional<int> dim = dim_of(node, to.sizes.size());
  if (!dim || is_complex(to.dtype)) return {};
  return under(node, [dim = *dim](const ExternalCall& call, Stream& stream) {
    std::vector<TensorView> parts;
    for (const TensorView& part : call.operands) {
      if (part.count() > 0) parts.push_back(part);
    }
    if (!parts.empty()) cat(stream, call.results[0], parts, dim);
  });
}

// A number of the call, whose sizes are numbers by now.
Scalar scalar_of(const Argument& argument, graft_dtype dtype) {
  if (argument.kind == Argument::Kind::kInteger) {
    return Scalar::of_integer(dtype, argument.integer.constant_part());
  }
  return Scalar::of(dtype, argument.number);
}

DirectNode range_node(const Graph& graph, const Node& node) {
  const TensorType& to = type_of(graph, node.results[0]);
  size_t numbers = 0;
  for (const Argument& one : node.arguments) {
    if (!one.name.empty()) continue;
    const bool whole = one.kind == Argument::Kind::kInteger;
    if (!whole && (one.kind != Argument::Kind::kFloat || !is_floating(to.dtype))) return {};
    ++numbers;
  }
  if (numbers < 2 || numbers > 3 || (!is_floating(to.dtype) && !is_integral(to.dtype))) return {};
  const graft_dtype dtype = is_floating(to.dtype) ? GRAFT_FLOAT64 : GRAFT_INT64;
  return unless_empty("aten::arange", [numbers, dtype](const ExternalCall& call, Stream& stream) {
    const std::vector<Argument>& given = call.node.arguments;
    const Scalar step = numbers == 3 ? scalar_of(given[2], dtype) : Scalar::of_integer(dtype, 1);
    arange(stream, call.results[0], scalar_of(given[0], dtype), step);
  });
}

DirectNode cumsum_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0);
  if (self == kNone) return {};
  const graft_dtype from = type_of(graph, self).dtype;
  const graft_dtype to = type_of(graph, node.results[0]).dtype;
  const bool whole = is_integral(from, true) && to == GRAFT_INT64;
  if (is_complex(from) || (from != to && !whole)) return {};
  const std::optional<int> dim = dim_of(node, type_of(graph, self).sizes.size());
  if (!dim) return {};
  return unless_empty(node, [dim = *dim](const ExternalCall& call, Stream& stream) {
    cumulative_sum(stream, call.results[0], call.operands[0], dim);
  });
}

DirectNode reduction_node(const Graph& graph, const Node& node, Reduction kind) {
  const ValueId self = operand(node, 0);
  const Argument* const dims = argument(node, "dim");
  if (self == kNone || (dims == nullptr && !node.is(OperatorId::kMeanOfAll))) return {};
  const graft_dtype from = type_of(graph, self).dtype;
  const graft_dtype to = type_of(graph, node.results[0]).dtype;
  const bool whole = kind == Reduction::kSum && is_integral(from, true) && to == GRAFT_INT64;
  if (is_complex(from) || (from != to && !whole)) return {};
  if (kind == Reduction::kMean && !is_floating(from)) return {};
  const size_t rank = type_of(graph, self).sizes.size();
  const std::span<const Argument> given =
      dims == nullptr ? std::span<const Argument>() : std::span(dims->list);
  std::vector<bool> reduced(rank, given.empty());
  for (const Argument& one : given) {
    double dim = 0;
    if (!number_of(one, &dim)) return {};
    const auto at = static_cast<size_t>(dim < 0 ? dim + static_cast<double>(rank) : dim);
    if (at < rank) reduced[at] = true;
  }
  const bool keep = is_true(node, "keepdim");
  return unless_empty(node, [=](const ExternalCall& call, Stream& stream) {
    TensorView wide = call.operands[0];
    wide.address = call.results[0].address, wide.dtype = call.results[0].dtype;
    int at = 0;
    for (int d = 0; d < wide.rank; ++d) {
      const bool gone = reduced[static_cast<size_t>(d)];
      wide.strides[d] = gone ? 0 : call.results[0].strides[at];
      at += !gone || keep;
    }
    reduce(stream, kind, wide, call.operands[0]);
  });
}

std::optional<PoolWindow> window_of(const Node& node) {
  PoolWindow window;
  const auto pair = [&](std::string_view name, int64_t* to) {
    const Argument* const given = argument(node, name);
    return given == nullptr || integers_of(*given, 2, to);
  };
  if (!pair("kernel_size", window.kernel)) return std::nullopt;
  std::copy_n(window.kernel, 2, window.stride);
  const Argument* const stride = argument(node, "stride");
  const bool given = stride != nullptr && !stride->list.empty();
  if (given && !pair("stride", window.stride)) return std::nullopt;
  if (!pair("padding", window.padding) || !pair("dilation", window.dilation)) return std::nullopt;
  return window;
}

DirectNode max_pool_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0);
  if (self == kNone || node.results.size() != 2 || node.results[1] == kNone) return {};
  const TensorType& image = type_of(graph, self);
  if (image.sizes.size() < 3 || image.dtype == GRAFT_BOOL || is_complex(image.dtype)) return {};
  const std::optional<PoolWindow> window = window_of(node);
  if (!window) return {};
  return unless_empty(node, [window = *window](const ExternalCall& call, Stream& stream) {
    max_pool2d(stream, call.results[0], call.results[1], call.operands[0], window);
  });
}

DirectNode max_pool_gradient_node(const Graph& graph, const Node& node) {
  const ValueId gradient = operand(node, "grad_output"), places = operand(node, "indices");
  if (gradient == kNone || operand(node, "self") == kNone || places == kNone) return {};
  const TensorType& image = type_of(graph, node.results[0]);
  if (image.sizes.size() < 3 || !is_floating(image.dtype)) return {};
  if (type_of(graph, gradient).dtype != image.dtype) return {};
  const std::optional<PoolWindow> window = window_of(node);
  if (!window) return {};
  return unless_empty(node, [window = *window](const ExternalCall& call, Stream& stream) {
    max_pool2d_backward(stream, call.results[0], call.operands[0], call.operands[2], window);
  });
}

DirectNode top_k_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0);
  if (self == kNone || node.results.size() != 2 || node.results[1] == kNone) return {};
  const TensorType& line = type_of(graph, self);
  if (line.sizes.empty() || is_complex(line.dtype)) return {};
  double dim = -1, largest = 1;
  if (argument(node, "dim") != nullptr && !number_of(node, "dim", &dim)) return {};
  if (argument(node, "largest") != nullptr && !number_of(node, "largest", &largest)) return {};
  const int at = static_cast<int>(dim < 0 ? dim + static_cast<double>(line.sizes.size()) : dim);
  return unless_empty(node, [at, largest](const ExternalCall& call, Stream& stream) {
    top_k(stream, call.results[0], call.results[1], call.operands[0], at, largest != 0);
  });
}

// copy_: its result is self, whose memory it writes.
DirectNode copy_node(const Graph& graph, const Node& node) {
  const ValueId from = operand(node, 1);
  if (operand(node, 0) == kNone || from == kNone || graph.values[from].kind == InputKind::kScalar)
    return {};
  return under(node, [](const ExternalCall& call, Stream& stream) {
    const TensorView& to = call.operands[0];
    if (to.count() == 0) return;
    copy(stream, to, expanded(call.operands[1], to));
  });
}

// A reshape that is no view: the same elements in row-major order.
DirectNode reshape_node(const Graph& graph, const Node& node) {
  const ValueId self = operand(node, 0);
  const bool rows = type_of(graph, node.results[0]).row_major();
  if (self == kNone || !rows || graph.values[node.results[0]].alias != kNone) return {};
  return unless_empty(node, [](const ExternalCall& call, Stream& stream) {
    TensorView to = call.operands[0];
    to.address = call.results[0].address;
    make_contiguous(to);
    copy(stream, to, call.operands[0]);
  });
}

// What composites.cpp does not write as smaller nodes: other dimensions than the last.
DirectNode softmax_node(const Graph& graph, const Node& node, bool log) {
  const ValueId self = operand(node, 0);
  if (self == kNone || is_true(node, "half_to_float")) return {};
  const TensorType& line = type_of(graph, self);
  if (!is_floating(line.dtype) || line.dtype != type_of(graph, node.results[0]).dtype) return {};
  const std::optional<int> dim = dim_of(node, line.sizes.size());
  if (!dim) return {};
  return unless_empty(node, [dim = *dim, log](const ExternalCall& call, Stream& stream) {
    softmax(stream, call.results[0], call.operands[0], dim, log);
  });
}

}  // namespace

DirectNode move_node(const Graph& graph, const Node& node) {
  if (node.results.empty() || node.results[0] == kNone) return {};
  if (node.is(OperatorId::kCat)) return cat_node(graph, node);
  if (node.is(OperatorId::kArange)) return range_node(graph, node);
  if (node.is(OperatorId::kCumsum)) return cumsum_node(graph, node);
  if (node.is(OperatorId::kSum)) return reduction_node(graph, node, Reduction::kSum);
  if (node.is(OperatorId::kMean, OperatorId::kMeanOfAll))
    return reduction_node(graph, node, Reduction::kMean);
  if (node.is(OperatorId::kMaxPool)) return max_pool_node(graph, node);
  if (node.is(OperatorId::kMaxPoolBackward)) return max_pool_gradient_node(graph, node);
  if (node.is(OperatorId::kCopyInto)) return copy_node(graph, node);
  if (node.is(OperatorId::kReshape)) return reshape_node(graph, node);
  if (node.is(OperatorId::kSoftmax)) return softmax_node(graph, node, false);
  if (node.is(OperatorId::kLogSoftmax)) return softmax_node(graph, node, true);
  if (node.is(OperatorId::kTopK)) return top_k_node(graph, node);
  return {};
}

}  // namespace graft::compiler
