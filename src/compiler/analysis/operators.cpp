// src/compiler/analysis/operators.cpp: what the compiler knows about ATen's operators.
#include "compiler/analysis/operators.h"

#include <unordered_map>

namespace graft::compiler {

namespace {

using enum OpClass;

constexpr Operator kRows[] = {
    {"aten.abs.default", kPointwise, "abs", "0"},
    {"aten.acos.default", kPointwise, "acos", "0"},
    {"aten.add.Scalar", kPointwise, "add", "0 1", "alpha:2=1"},
    {"aten.add.Tensor", kPointwise, "add", "0 1", "alpha:2=1"},
    {"aten.addcdiv.default", kPointwise, "addcdiv", "0 1 2", "value:3=1"},
    {"aten.addcmul.default", kPointwise, "addcmul", "0 1 2", "value:3=1"},
    {"aten.asin.default", kPointwise, "asin", "0"},
    {"aten.atan.default", kPointwise, "atan", "0"},
    {"aten.atan2.default", kPointwise, "atan2", "0 1"},
    {"aten.bitwise_and.Tensor", kPointwise, "bitwise_and", "0 1"},
    {"aten.bitwise_not.default", kPointwise, "bitwise_not", "0"},
    {"aten.bitwise_or.Tensor", kPointwise, "bitwise_or", "0 1"},
    {"aten.bitwise_xor.Tensor", kPointwise, "bitwise_xor", "0 1"},
    {"aten.ceil.default", kPointwise, "ceil", "0"},
    {"aten.clamp_max.default", kPointwise, "clamp_max", "0", "1"},
    {"aten.clamp_min.default", kPointwise, "clamp_min", "0", "1"},
    {"aten.cos.default", kPointwise, "cos", "0"},
    {"aten.cosh.default", kPointwise, "cosh", "0"},
    {"aten.div.Scalar", kPointwise, "div", "0 1"},
    {"aten.div.Tensor", kPointwise, "div", "0 1"},
    {"aten.elu.default", kPointwise, "elu", "0", "alpha:1=1 scale:2=1 input_scale:3=1"},
    {"aten.eq.Scalar", kPointwise, "eq", "0 1"},
    {"aten.eq.Tensor", kPointwise, "eq", "0 1"},
    {"aten.erf.default", kPointwise, "erf", "0"},
    {"aten.erfc.default", kPointwise, "erfc", "0"},
    {"aten.exp.default", kPointwise, "exp", "0"},
    {"aten.exp2.default", kPointwise, "exp2", "0"},
    {"aten.expm1.default", kPointwise, "expm1", "0"},
    {"aten.floor.default", kPointwise, "floor", "0"},
    {"aten.fmod.Scalar", kPointwise, "fmod", "0 1"},
    {"aten.fmod.Tensor", kPointwise, "fmod", "0 1"},
    {"aten.ge.Scalar", kPointwise, "ge", "0 1"},
    {"aten.ge.Tensor", kPointwise, "ge", "0 1"},
    {"aten.gelu.default", kPointwise, "gelu", "0"},
    {"aten.gelu_backward.default", kPointwise, "gelu_backward", "0 1"},
    {"aten.gt.Scalar", kPointwise, "gt", "0 1"},
    {"aten.gt.Tensor", kPointwise, "gt", "0 1"},
    {"aten.hardsigmoid.default", kPointwise, "hardsigmoid", "0"},
    {"aten.hardswish.default", kPointwise, "hardswish", "0"},
    {"aten.hardswish_backward.default", kPointwise, "hardswish_backward", "0 1"},
    {"aten.hardtanh.default", kPointwise, "clamp_scalar", "0", "min_val:1=-1 max_val:2=1"},
    {"aten.isnan.default", kPointwise, "isnan", "0"},
    {"aten.le.Scalar", kPointwise, "le", "0 1"},
    {"aten.le.Tensor", kPointwise, "le", "0 1"},
    {"aten.leaky_relu.default", kPointwise, "leaky_relu", "0", "negative_slope:1=0.01"},
    {"aten.lerp.Scalar", kPointwise, "lerp_scalar", "0 1", "2"},
    {"aten.log.default", kPointwise, "log", "0"},
    {"aten.log10.default", kPointwise, "log10", "0"},
    {"aten.log1p.default", kPointwise, "log1p", "0"},
    {"aten.log2.default", kPointwise, "log2", "0"},
    {"aten.logical_and.default", kPointwise, "logical_and", "0 1"},
    {"aten.logical_not.default", kPointwise, "logical_not", "0"},
    {"aten.logical_or.default", kPointwise, "logical_or", "0 1"},
    {"aten.lt.Scalar", kPointwise, "lt", "0 1"},
    {"aten.lt.Tensor", kPointwise, "lt", "0 1"},
    {"aten.masked_fill.Scalar", kPointwise, "masked_fill", "0 1", "2"},
    {"aten.maximum.default", kPointwise, "maximum", "0 1"},
    {"aten.minimum.default", kPointwise, "minimum", "0 1"},
    {"aten.mul.Scalar", kPointwise, "mul", "0 1"},
    {"aten.mul.Tensor", kPointwise, "mul", "0 1"},
    {"aten.ne.Scalar", kPointwise, "ne", "0 1"},
    {"aten.ne.Tensor", kPointwise, "ne", "0 1"},
    {"aten.neg.default", kPointwise, "neg", "0"},
    {"aten.pow.Tensor_Scalar", kPointwise, "pow_scalar", "0", "1"},
    {"aten.pow.Tensor_Tensor", kPointwise, "pow", "0 1"},
    {"aten.reciprocal.default", kPointwise, "reciprocal", "0"},
    {"aten.relu.default", kPointwise, "relu", "0"},
    {"aten.remainder.Scalar", kPointwise, "remainder", "0 1"},
    {"aten.remainder.Tensor", kPointwise, "remainder", "0 1"},
    {"aten.round.default", kPointwise, "round", "0"},
    {"aten.rsqrt.default", kPointwise, "rsqrt", "0"},
    {"aten.rsub.Scalar", kPointwise, "sub", "1 0", "alpha:2=1"},
    {"aten.sigmoid.default", kPointwise, "sigmoid", "0"},
    {"aten.sigmoid_backward.default", kPointwise, "sigmoid_backward", "0 1"},
    {"aten.sign.default", kPointwise, "sign", "0"},
    {"aten.silu.default", kPointwise, "silu", "0"},
    {"aten.silu_backward.default", kPointwise, "silu_backward", "0 1"},
    {"aten.sin.default", kPointwise, "sin", "0"},
    {"aten.sinh.default", kPointwise, "sinh", "0"},
    {"aten.sqrt.default", kPointwise, "sqrt", "0"},
    {"aten.sub.Scalar", kPointwise, "sub", "0 1", "alpha:2=1"},
    {"aten.sub.Tensor", kPointwise, "sub", "0 1", "alpha:2=1"},
    {"aten.tan.default", kPointwise, "tan", "0"},
    {"aten.tanh.default", kPointwise, "tanh", "0"},
    {"aten.tanh_backward.default", kPointwise, "tanh_backward", "0 1"},
    {"aten.threshold_backward.default", kPointwise, "threshold", "1 0", "2 =0"},
    {"aten.trunc.default", kPointwise, "trunc", "0"},
    {"aten.where.self", kPointwise, "where", "0 1 2"},

    {"aten._to_copy.default", kCopy, "positive", "0"},
    {"aten.clone.default", kCopy, "positive", "0"},

    {"aten.amax.default", kReduction},
    {"aten.amin.default", kReduction},
    {"aten.mean.dim", kReduction},
    {"aten.sum.dim_IntList", kReduction},

    {"aten._unsafe_view.default", kView},
    {"aten.alias.default", kView},
    {"aten.as_strided.default", kView},
    {"aten.detach.default", kView},
    {"aten.diagonal.default", kView},
    {"aten.expand.default", kView},
    {"aten.permute.default", kView},
    {"aten.reshape.default", kView},
    {"aten.select.int", kView},
    {"aten.slice.Tensor", kView},
    {"aten.split.Tensor", kView},
    {"aten.split_with_sizes.default", kView},
    {"aten.squeeze.dim", kView},
    {"aten.squeeze.dims", kView},
    {"aten.t.default", kView},
    {"aten.transpose.int", kView},
    {"aten.unbind.int", kView},
    {"aten.unfold.default", kView},
    {"aten.unsqueeze.default", kView},
    {"aten.view.default", kView},

    {"aten.addmm.default", kMatmul},
    {"aten.baddbmm.default", kMatmul},
    {"aten.bmm.default", kMatmul},
    {"aten.mm.default", kMatmul},
    {"aten.convolution.default", kConvolution},

    {"aten.bernoulli.default", kRandom},
    {"aten.bernoulli.p", kRandom},
    {"aten.multinomial.default", kRandom},
    {"aten.native_dropout.default", kRandom},
    {"aten.normal.float_float", kRandom},
    {"aten.rand.default", kRandom},
    {"aten.rand_like.default", kRandom},
    {"aten.randint.low", kRandom},
    {"aten.randn.default", kRandom},
    {"aten.randn_like.default", kRandom},
    {"aten.randperm.default", kRandom},
};

}  // namespace

const Operator* find_operator(std::string_view op) {
  static const auto* by_name = [] {
    auto* map = new std::unordered_map<std::string_view, const Operator*>();
    for (const Operator& row : kRows) map->emplace(row.op, &row);
    return map;
  }();
  const auto found = by_name->find(op);
  return found == by_name->end() ? nullptr : found->second;
}

OpClass class_of(const Node& node) {
  const Operator* row = find_operator(node.op);
  return row == nullptr ? kOther : row->cls;
}

}  // namespace graft::compiler
