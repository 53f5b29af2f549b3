// src/codegen/math/without_float64.cpp: kernels for devices that cannot compute in float64.
#include "codegen/math/without_float64.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/ir/verifier.h"
#include "codegen/math/math.h"

namespace graft::ir {
namespace {

bool is_wide(const Parameter& parameter) { return compute_type(parameter.dtype) == Type::kF64; }

bool defined_in_float64(Math function) {
  return is_defined(function, Type::kF32) && needs_float64(define(function, Type::kF32));
}

// What the body of a function computes: float32 of the bits of a float64, to nearest even.
Value rounded(Value number) {
  Builder& b = number.builder();
  const Value bits = cast(Type::kU64, number);
  const Value fraction = bits & 0xfffffffffffff;
  const Value exponent = cast(Type::kI64, (bits >> 52) & 0x7ff) - 1023;
  // Bits that fall off: more where the result is subnormal, all where it is 0.
  const Value low = select(exponent < -151, b.i64(54), -97 - exponent);
  const Value off = cast(Type::kU64, select(exponent < -126, low, b.i64(29)));
  const Value whole = fraction | 0x10000000000000;
  const Value one = like(bits, 1), half = one << (off - 1);
  const Value kept = (whole + (half - 1) + ((whole >> off) & 1)) >> off;
  const Value field = select(exponent < -126, b.i64(0), (exponent + 126) << 23);
  const Value finite = minimum(field + cast(Type::kI64, kept), b.i64(0x7f800000));
  const Value special = select(fraction == 0, b.i64(0x7f800000), b.i64(0x7fc00000));
  const Value magnitude = select(exponent == 1024, special, finite);
  const Value sign = cast(Type::kU32, bits >> 63) << 31;
  return bitcast(Type::kF32, cast(Type::kU32, magnitude) | sign);
}

class Narrowing {
 public:
  explicit Narrowing(const Kernel& kernel)
      : kernel_(kernel), new_(kernel), ids_(kernel.body.size()) {
    new_.body.clear();
    for (Parameter& parameter : new_.parameters) {
      if (!parameter.is_address && parameter.dtype == GRAFT_FLOAT64) parameter.dtype = GRAFT_INT64;
    }
  }

  // Whether the new kernel is right.
  bool run() {
    for (const Parameter& parameter : new_.parameters) {
      if (is_wide(parameter)) return false;
    }
    for (Id id = 0; id < kernel_.body.size(); ++id) {
      if (!convert(id)) return false;
    }
    verify(new_);
    return true;
  }

  Kernel take() { return std::move(new_); }

 private:
  Id append(const Instruction& it) {
    new_.body.push_back(it);
    return static_cast<Id>(new_.body.size() - 1);
  }

  bool convert(Id id) {
    Instruction it = kernel_.body[id];
    const Type from = it.operands[0] == kNoId ? Type::kVoid : kernel_.body[it.operands[0]].type;
    for (Id& operand : it.operands) {
      if (operand != kNoId) operand = ids_[operand];
    }
    const bool wide = it.type == Type::kF64;
    if (wide && kernel_.keeps_float64) return false;
    if (it.opcode == Opcode::kBitcast && (wide || from == Type::kF64)) return false;
    if (it.opcode == Opcode::kCast && from == Type::kF64 && is_integer(it.type)) return false;
    if (wide) it.type = Type::kF32;
    if (it.opcode == Opcode::kMath && it.type == Type::kF32 && !choose(it)) return false;
    const bool same = it.opcode == Opcode::kCast && it.type == Type::kF32 &&
                      new_.body[it.operands[0]].type == Type::kF32;
    if (same) {
      ids_[id] = it.operands[0];
    } else if (wide && it.opcode == Opcode::kScalar) {
      it.type = Type::kI64;
      ids_[id] = splice(append(it));
    } else {
      if (wide && it.opcode == Opcode::kConstant) {
        it.bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(it.bits)));
      }
      ids_[id] = append(it);
    }
    return true;
  }

  // Names the language's own function where ours is defined in float64.
  static bool choose(Instruction& it) {
    const Math function = static_cast<Math>(it.index);
    if (!defined_in_float64(function)) return true;
    it.bits = kOwnFunction;
    return function != Math::k_digamma && function < Math::k_zeta;
  }

  // Appends what rounded() computes of the scalar.
  Id splice(Id scalar) {
    Builder b("rounded", Family::kCpuLike, Type::kF32);
    rounded(b.scalar(GRAFT_INT64));
    std::vector<Id> places;
    for (Instruction it : b.kernel().body) {
      for (Id& operand : it.operands) {
        if (operand != kNoId) operand = places[operand];
      }
      places.push_back(it.opcode == Opcode::kScalar ? scalar : append(it));
    }
    return places.back();
  }

  const Kernel& kernel_;
  Kernel new_;
  std::vector<Id> ids_;  // by the old one
};

}  // namespace

bool needs_float64(const Kernel& kernel) {
  return kernel.result == Type::kF64 || std::ranges::any_of(kernel.parameters, is_wide) ||
         std::ranges::any_of(kernel.body, [](const Instruction& it) {
           return it.type == Type::kF64 ||
                  (it.opcode == Opcode::kMath && it.type == Type::kF32 && it.bits != kOwnFunction &&
                   defined_in_float64(static_cast<Math>(it.index)));
         });
}

std::optional<Kernel> without_float64(const Kernel& kernel) {
  if (!needs_float64(kernel)) return kernel;
  Narrowing narrowing(kernel);
  if (!narrowing.run()) return std::nullopt;
  return narrowing.take();
}

}  // namespace graft::ir
