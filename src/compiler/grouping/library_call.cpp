// src/compiler/grouping/library_call.cpp: a product or convolution with what follows it, as one
// library call.
#include "compiler/grouping/library_call.h"

#include "compiler/analysis/convolution_node.h"
#include "runtime/driver/dtype.h"

namespace graft::compiler {

namespace {

using enum OperatorId;

class Recognizer {
 public:
  explicit Recognizer(const Graph& graph) : graph_(graph) {}

  std::optional<LibraryCall> recognize(const std::vector<NodeId>& nodes) {
    if (!first(graph_.nodes[nodes[0]])) return std::nullopt;
    call_.own = call_.epilogue.size();
    for (size_t i = 1; i < nodes.size(); ++i) {
      const Node& node = graph_.nodes[nodes[i]];
      const bool plain = node.results.size() == 1 && node.results[0] != kNone &&
                         !node.has_effect() && node.views == kNone;
      if (!plain) return std::nullopt;
      if (!cast(node) && !next(node)) return std::nullopt;
      call_.result = node.results[0];
    }
    if (call_.epilogue.size() > GRAFT_MAX_EPILOGUES) return std::nullopt;
    return call_;
  }

 private:
  const TensorType& type(ValueId value) const { return graph_.values[value].type; }

  bool first(const Node& node) {
    if (node.results.size() != 1 || node.results[0] == kNone || node.has_effect()) return false;
    call_.product = call_.result = node.results[0];
    const graft_dtype dtype = type(call_.product).dtype;
    if (!is_floating(dtype)) return false;
    const bool known = node.is(kConvolution) ? convolution(node) : product(node);
    return known && call_.left != kNone && call_.right != kNone &&
           type(call_.left).dtype == dtype && type(call_.right).dtype == dtype;
  }

  bool product(const Node& node) {
    if (node.op->cls != OpClass::kMatmul) return false;
    const bool adds = node.is(kAddmm, kBaddbmm);
    call_.left = operand(node, adds ? 1 : 0);
    call_.right = operand(node, adds ? 2 : 1);
    if (!adds) return node.arguments.size() == 2;
    double beta, alpha;
    if (!number_of(node, "beta", &beta) || !number_of(node, "alpha", &alpha)) return false;
    if (alpha != 1) call_.epilogue.push_back({GRAFT_EPILOGUE_SCALE, alpha, kNone});
    return add(operand(node, 0), beta);
  }

  bool convolution(const Node& node) {
    const auto parameters = convolution_parameters(graph_, node);
    if (!parameters || parameters->transposed) return false;
    call_.convolves = true;
    call_.parameters = *parameters;
    call_.left = operand(node, "input");
    call_.right = operand(node, "weight");
    if (type(call_.product).sizes.size() != type(call_.left).sizes.size()) return false;
    const ValueId bias = operand(node, "bias");
    if (bias == kNone) return true;
    const TensorType& vector = type(bias);
    call_.epilogue.push_back({GRAFT_EPILOGUE_BIAS, 1, bias});
    return vector.row_major() && vector.dtype == type(call_.product).dtype;
  }

  // Whether a value is one number for each column of a product, or for each channel.
  bool is_vector(ValueId value) const {
    const std::vector<Size>& to = type(call_.product).sizes;
    const std::vector<Size>& from = type(value).sizes;
    const graft_dtype dtype = type(value).dtype;
    if (dtype != type(call_.product).dtype && dtype != type(call_.result).dtype) return false;
    const size_t channel = call_.convolves ? 1 : to.size() - 1;
    if (from.size() > to.size() || !type(value).row_major()) return false;
    const size_t shift = to.size() - from.size();
    if (channel < shift) return false;
    for (size_t i = 0; i < from.size(); ++i) {
      if (i + shift == channel ? !(from[i] == to[channel]) : !from[i].is(1)) return false;
    }
    return true;
  }

  bool add(ValueId value, double factor) {
    if (value == kNone) return false;
    if (factor == 1 && is_vector(value)) {
      call_.epilogue.push_back({GRAFT_EPILOGUE_BIAS, 1, value});
      return true;
    }
    const bool alike = type(value).dtype == type(call_.product).dtype &&
                       type(value).sizes == type(call_.product).sizes &&
                       type(value).strides == type(call_.product).strides;
    call_.epilogue.push_back({GRAFT_EPILOGUE_ADD, factor, value});
    return alike;
  }

  bool next(const Node& node) {
    if (type(node.results[0]) != type(call_.result)) return false;
    const bool leads = operand(node, 0) == call_.result;
    double number;
    if (const auto kind = activation(node)) {
      call_.epilogue.push_back({*kind, 0, kNone});
      return leads;
    }
    if (double most; clamps(node, &most)) {
      call_.epilogue.push_back({GRAFT_EPILOGUE_RELU, 0, kNone});
      call_.epilogue.push_back({GRAFT_EPILOGUE_MINIMUM, most, kNone});
      return leads;
    }
    const Argument* second = argument(node, 1);
    if (second == nullptr) return false;
    const ValueId other = operand(node, leads ? 1 : 0);
    if (node.is(kMulTensor, kMulScalar)) {
      const bool numeral = leads && number_of(*second, &number);
      const bool vector = other != kNone && other != call_.result && is_vector(other);
      if (numeral) call_.epilogue.push_back({GRAFT_EPILOGUE_SCALE, number, kNone});
      if (vector) call_.epilogue.push_back({GRAFT_EPILOGUE_CHANNEL_SCALE, 1, other});
      return numeral || vector;
    }
    if (!node.is(kAddTensor) || !number_of(node, "alpha", &number)) return false;
    if (other == call_.result || (!leads && number != 1)) return false;
    return add(other, number);
  }

  static std::optional<graft_epilogue_kind> activation(const Node& node) {
    if (node.is(kRelu)) return GRAFT_EPILOGUE_RELU;
    if (node.is(kSilu)) return GRAFT_EPILOGUE_SILU;
    if (!node.is(kGelu)) return std::nullopt;
    const Argument* how = argument(node, "approximate");
    const bool tanh = how != nullptr && how->kind == Argument::Kind::kString && how->text == "tanh";
    return tanh ? GRAFT_EPILOGUE_GELU_TANH : GRAFT_EPILOGUE_GELU;
  }

  // Whether it clamps between 0 and something larger.
  static bool clamps(const Node& node, double* most) {
    double least;
    return node.is(kHardtanh) && number_of(node, "min_val", &least) &&
           number_of(node, "max_val", most) && least == 0 && *most >= 0;
  }

  // From a half type to float32, or back to the product's.
  bool cast(const Node& node) const {
    const TensorType &from = type(call_.result), &to = type(node.results[0]);
    const graft_dtype half = type(call_.product).dtype;
    const bool wider = from.dtype == half && to.dtype == GRAFT_FLOAT32;
    const bool back = from.dtype == GRAFT_FLOAT32 && to.dtype == half;
    return node.is(kToCopy) && operand(node, 0) == call_.result && is_half(half) &&
           (wider || back) && to.sizes == from.sizes && to.strides == from.strides;
  }

  const Graph& graph_;
  LibraryCall call_;
};

}  // namespace

std::optional<LibraryCall> library_call(const Graph& graph, const std::vector<NodeId>& nodes) {
  return Recognizer(graph).recognize(nodes);
}

}  // namespace graft::compiler
