// src/kernels/pointwise/kernel.cpp: the generated kernel of a row of the op table.
#include "kernels/pointwise/kernel.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/math/math.h"
#include "runtime/driver/dtype.h"

namespace graft {

namespace {

using namespace ir;

class Writer {
 public:
  explicit Writer(const PointwiseSpec& spec)
      : spec_(spec),
        op_(op_table()[spec.op]),
        complex_(is_complex(static_cast<graft_dtype>(spec.compute))),
        bits_(works_on_bits(spec)),
        type_(ir::compute_type(bits_ ? GRAFT_INT16 : static_cast<graft_dtype>(spec.compute))),
        b_(pointwise_key(spec)) {
    b_.keep_float64();  // formulas take it for their accuracy
  }

  ir::Kernel write() {
    declare();
    nest_.emplace(b_, nest_shape(spec_));
    nest_->each([&] { load_uniform(); }, [&](Value position) { compute(position); });
    return b_.finish();
  }

 private:
  struct Operand {
    Address address;
    Value part[2];  // of scalars, and of uniform operands once they are loaded
  };

  // The row has a formula for the bits, and every operand is memory of one half type.
  static bool works_on_bits(const PointwiseSpec& spec) {
    bool bits = static_cast<bool>(op_table()[spec.op].half_formula) && is_half(spec.dtype(0));
    for (int i = 0; i < spec.operands; ++i) {
      bits = bits && spec.dtype(i) == spec.dtype(0) && spec.walk(i) != AccessPattern::kScalar;
    }
    return bits;
  }

  // Memory of complex numbers is addressed as their parts.
  graft_dtype part_dtype(graft_dtype dtype) const {
    if (bits_) return GRAFT_INT16;
    if (!is_complex(dtype)) return dtype;
    return dtype == GRAFT_COMPLEX64 ? GRAFT_FLOAT32 : GRAFT_FLOAT64;
  }

  static bool is_set(Value value) { return value.id() != ir::kNoId; }

  void declare_scalar(Value out[2]) {
    const graft_dtype dtype = part_dtype(scalar_dtype(static_cast<graft_dtype>(spec_.compute)));
    out[0] = b_.scalar(dtype);
    if (complex_) out[1] = b_.scalar(dtype);
  }

  void declare() {
    operands_.resize(spec_.operands);
    for (int i = 0; i < spec_.operands; ++i) {
      if (spec_.walk(i) == AccessPattern::kScalar) {
        declare_scalar(operands_[i].part);
      } else {
        const graft_dtype dtype = part_dtype(spec_.dtype(i));
        operands_[i].address = i < op_.outputs ? b_.write(dtype) : b_.read(dtype);
      }
    }
    for (int i = 0; i < op_.scalars; ++i) {
      Value parts[2];
      declare_scalar(parts);
      scalars_.push_back(parts[0]);
      if (complex_) scalars_.push_back(parts[1]);
    }
  }

  void load(int i, Value element, Value out[2]) {
    const Address& from = operands_[i].address;
    if (!is_complex(spec_.dtype(i))) {
      out[0] = from.load(element);
    } else {
      out[0] = from.load(element * 2);
      out[1] = from.load(element * 2 + 1);
    }
  }

  // The parts of an input as the formula takes them.
  void append_input(int i, const Value loaded[2], std::vector<Value>* inputs) {
    const bool condition = op_.conditions >> (i - op_.outputs) & 1;
    const ir::Type type = condition ? ir::Type::kBool : type_;
    const Value first = cast(type, loaded[0]);
    inputs->push_back(condition ? first : taken(i, first));
    if (!complex_) return;
    const bool pair = is_set(loaded[1]);
    inputs->push_back(pair ? cast(type, loaded[1]) : b_.constant(type, 0));
  }

  // What a half type does not hold is rounded to it, as PyTorch's promotion does first.
  Value taken(int i, Value input) const {
    const auto compute = static_cast<graft_dtype>(spec_.compute);
    const bool wide = spec_.walk(i) != AccessPattern::kScalar && spec_.dtype(i) != compute &&
                      size_of(spec_.dtype(i)) > 1;
    return is_half(compute) && wide ? ir::rounded_to(compute, input) : input;
  }

  void store(int i, const Results& results, size_t parts_each, Value element) {
    const Address& to = operands_[i].address;
    const Value re = rounded(i, results[static_cast<size_t>(i) * parts_each]);
    if (!is_complex(spec_.dtype(i))) return to.store(element, re);
    to.store(element * 2, re);
    to.store(element * 2 + 1,
             parts_each == 2 ? rounded(i, results[static_cast<size_t>(i) * 2 + 1]) : like(re, 0));
  }

  // A result goes to outputs of other dtypes by way of the formula's, whatever it was computed in.
  Value rounded(int i, Value result) const {
    const auto compute = static_cast<graft_dtype>(spec_.compute);
    if (result.type() == ir::Type::kF64 && type_ == ir::Type::kF32) result = cast(type_, result);
    const bool narrow = is_half(compute) && result.type() == ir::Type::kF32;
    return narrow && spec_.dtype(i) != compute ? ir::rounded_to(compute, result) : result;
  }

  // What is one element for the whole row.
  void load_uniform() {
    for (int i = op_.outputs; i < spec_.operands; ++i) {
      if (spec_.walk(i) != AccessPattern::kUniform) continue;
      load(i, nest_->first(i), operands_[i].part);
    }
  }

  void compute(Value position) {
    std::vector<Value> inputs;
    for (int i = op_.outputs; i < spec_.operands; ++i) {
      if (spec_.walk(i) != AccessPattern::kScalar && spec_.walk(i) != AccessPattern::kUniform) {
        operands_[i].part[1] = Value();
        load(i, nest_->element(i, position), operands_[i].part);
      }
      append_input(i, operands_[i].part, &inputs);
    }
    const Formula& formula = bits_      ? op_.half_formula
                             : complex_ ? op_.complex_formula
                                        : op_.formula;
    const Results results = formula(inputs, scalars_);
    const size_t parts_each = results.size() / op_.outputs;
    for (int i = 0; i < op_.outputs; ++i) {
      store(i, results, parts_each, nest_->element(i, position));
    }
  }

  const PointwiseSpec& spec_;
  const Op& op_;
  const bool complex_, bits_;
  const ir::Type type_;
  Builder b_;
  std::vector<Operand> operands_;
  std::vector<Value> scalars_;
  std::optional<LoopNest> nest_;
};

}  // namespace

graft_dtype scalar_dtype(graft_dtype compute) { return is_half(compute) ? GRAFT_FLOAT32 : compute; }

NestShape nest_shape(const PointwiseSpec& spec) {
  NestShape shape;
  shape.deal = spec.deal;
  shape.outer = spec.outer;
  shape.count = spec.operands;
  for (int i = 0; i < spec.operands; ++i) shape.operands[i] = {spec.walk(i), spec.shifted(i)};
  return shape;
}

ir::Kernel pointwise_kernel(const PointwiseSpec& spec) { return Writer(spec).write(); }

std::string pointwise_key(const PointwiseSpec& spec) {
  std::string key = fmt::format("{}_{}_{}", op_table()[spec.op].name,
                                name_of(static_cast<graft_dtype>(spec.compute)), spec.outer);
  for (int i = 0; i < spec.operands; ++i) {
    key += fmt::format("_{}{}{}", name_of(spec.dtype(i)), "vudxrp"[static_cast<int>(spec.walk(i))],
                       spec.shifted(i) ? "s" : "");
  }
  return key + suffix_of(spec.deal);
}

}  // namespace graft
