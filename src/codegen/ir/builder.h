// src/codegen/ir/builder.h: writes kernels in C++: operators on values append instructions.
#pragma once

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "codegen/ir/ir.h"

namespace graft::ir {

class Builder;

template <class T>
concept Number = std::is_arithmetic_v<T>;

// The result of one instruction. Cheap to copy; lives as long as its Builder. Values of different
// types never mix: cast() first. Numbers of C++ take the type of the value beside them.
class Value {
 public:
  Value() = default;
  Value(Builder* builder, Id id) : builder_(builder), id_(id) {}
  Builder& builder() const { return *builder_; }
  Id id() const { return id_; }
  Type type() const;

 private:
  Builder* builder_ = nullptr;
  Id id_ = kNoId;
};

// A parameter that is an address: elements of dtype, loaded as compute_type(dtype).
struct Address {
  Builder* builder = nullptr;
  uint16_t index = 0;
  graft_dtype dtype = GRAFT_FLOAT32;
  Id picked = kNoId;  // where pick() made it

  Value load(Value element) const;               // element: i32 or i64 position
  void store(Value element, Value value) const;  // casts to dtype as PyTorch does

  // Consecutive elements from there on, of any alignment. REQUIRES: dtype is float32 or
  // int32, as the vector's elements.
  Value load_vector(Type type, Value element) const;

  // Starts to bring the element's cache line, where the language can. The element may be past the
  // end of the memory.
  void prefetch(Value element) const;
};

// The address at position which (i64, in range) of several that were declared one after another
// with one dtype and access: what is written once runs over any of them.
Address pick(const std::vector<Address>& addresses, Value which);

// A mutable scalar. Reads and writes happen in program order.
class Variable {
 public:
  explicit Variable(Value first);
  Value get() const;
  operator Value() const { return get(); }
  Variable(const Variable&) = default;
  const Variable& operator=(Value value) const;
  Variable& operator=(const Variable& other);  // copies the value, not the variable
  Type type() const { return variable_.type(); }

 private:
  Value variable_;
};

// A private array of the work-item; in vector loops, lane i of a vector accumulator.
class Lanes {
 public:
  Lanes(Builder& builder, Type type, uint32_t count);
  Value load(Value position) const;
  void store(Value position, Value value) const;  // a vector: into consecutive places
  uint32_t count() const { return count_; }

 private:
  Value array_;
  uint32_t count_;
};

// Builds one kernel, or a function when result is given. Parameters are declared in the order of
// the launch's arguments. Throws std::logic_error, naming the instruction, on values that do not
// fit; finish() runs the verifier.
class Builder {
 public:
  explicit Builder(std::string name, Family family = Family::kCpuLike, Type result = Type::kVoid);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Parameters.
  Address read(graft_dtype dtype) { return address(dtype, GRAFT_ACCESS_READ); }
  Address write(graft_dtype dtype) { return address(dtype, GRAFT_ACCESS_WRITE); }
  Address update(graft_dtype dtype) {
    return address(dtype, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  }
  Value scalar(graft_dtype dtype);  // bits of dtype, read as compute_type(dtype)
  Value index();                    // an int64 scalar: a size, stride or position
  Value index32();                  // the same in int32 arithmetic; the argument is an int32
  // index() for each in order, or for as many values from there on.
  void indices(std::initializer_list<Value*> values, int each = 1) {
    for (Value* const value : values) {
      for (int i = 0; i < each; ++i) value[i] = index();
    }
  }

  // In functions on stored elements: the parameter as it lies in memory.
  Value stored_scalar(graft_dtype dtype, Type type);

  // Leaves. constant() converts the number to the type.
  Value item();
  template <Number T>
  Value constant(Type type, T number) {
    if constexpr (std::is_floating_point_v<T>) return constant_float(type, number);
    return constant_integer(type, static_cast<uint64_t>(static_cast<int64_t>(number)),
                            std::is_signed_v<T> && static_cast<int64_t>(number) < 0);
  }
  Value i64(int64_t number) { return constant(Type::kI64, number); }
  Value f32(double number) { return constant(Type::kF32, number); }
  Value boolean(bool value) { return constant(Type::kBool, value); }

  // Control flow. body(Value counter) runs with begin, begin + step, ... < end. In vector_loop the
  // iterations are independent of one another (a store may be what the same iteration loaded),
  // step is 1 and the body has no loop and no if: use select.
  template <class Body>
  void loop(Value begin, Value end, Body body, Value step = {}) {
    const Value counter = open_loop(Opcode::kLoop, begin, end, step);
    body(counter);
    close();
  }
  template <class Body>
  void vector_loop(Value begin, Value end, Body body) {
    const Value counter = open_loop(Opcode::kVectorLoop, begin, end, {});
    body(counter);
    close();
  }
  // Leaves the innermost loop() when the condition holds; not from inside an if_.
  void break_if(Value condition) {
    append({Opcode::kBreak, Type::kVoid, 0, {condition.id(), kNoId, kNoId}});
  }
  template <class Then>
  void if_(Value condition, Then then) {
    open_if(condition);
    then();
    close();
  }
  template <class Then, class Else>
  void if_(Value condition, Then then, Else otherwise) {
    open_if(condition);
    then();
    append({Opcode::kElse});
    otherwise();
    close();
  }

  // What is computed in float64 here may not be computed in float32 on a device that lacks float64.
  void keep_float64() { kernel_.keeps_float64 = true; }

  // GPU-like only.
  Value local_item();
  void barrier() { append({Opcode::kBarrier}); }
  // The same on devices with GRAFT_FEATURE_SHUFFLES. shuffle(): the value of the work-item whose
  // place in the sub-group is this one's ^ mask (i32); all of the sub-group get there.
  Value sub_group(SubGroup what);
  Value shuffle(Value value, Value mask);

  void return_(Value value);  // functions only, last

  // Verifies and gives the kernel away; the builder is done.
  Kernel finish();

  Value append(Instruction instruction);  // used by the operators below
  const Instruction& at(Id id) const { return kernel_.body[id]; }
  const Kernel& kernel() const { return kernel_; }

 private:
  Address address(graft_dtype dtype, uint32_t access);
  Value constant_float(Type type, double number);
  Value constant_integer(Type type, uint64_t bits, bool negative);
  Value open_loop(Opcode opcode, Value begin, Value end, Value step);
  void open_if(Value condition);
  void close() { append({Opcode::kEnd}); }

  Kernel kernel_;
};

// Operators. % on integers is C's; see floor_mod. ! and ~ are kNot. Comparisons give kBool.
Value binary(Opcode opcode, Value a, Value b);
Value unary(Opcode opcode, Value a);
#define GRAFT_IR_OPERATOR(symbol, opcode)                                                 \
  inline Value operator symbol(Value a, Value b) { return binary(Opcode::opcode, a, b); } \
  template <Number T>                                                                     \
  Value operator symbol(Value a, T b) {                                                   \
    return binary(Opcode::opcode, a, a.builder().constant(a.type(), b));                  \
  }                                                                                       \
  template <Number T>                                                                     \
  Value operator symbol(T a, Value b) {                                                   \
    return binary(Opcode::opcode, b.builder().constant(b.type(), a), b);                  \
  }
GRAFT_IR_OPERATOR(+, kAdd)
GRAFT_IR_OPERATOR(-, kSub)
GRAFT_IR_OPERATOR(*, kMul)
GRAFT_IR_OPERATOR(/, kDiv)
GRAFT_IR_OPERATOR(%, kRem)
GRAFT_IR_OPERATOR(&, kAnd)
GRAFT_IR_OPERATOR(|, kOr)
GRAFT_IR_OPERATOR(^, kXor)
GRAFT_IR_OPERATOR(<<, kShl)
GRAFT_IR_OPERATOR(>>, kShr)
GRAFT_IR_OPERATOR(==, kEq)
GRAFT_IR_OPERATOR(!=, kNe)
GRAFT_IR_OPERATOR(<, kLt)
GRAFT_IR_OPERATOR(<=, kLe)
#undef GRAFT_IR_OPERATOR
inline Value operator>(Value a, Value b) { return b < a; }
inline Value operator>=(Value a, Value b) { return b <= a; }
template <Number T>
Value operator>(Value a, T b) {
  return a.builder().constant(a.type(), b) < a;
}
template <Number T>
Value operator>=(Value a, T b) {
  return a.builder().constant(a.type(), b) <= a;
}
inline Value operator-(Value a) { return unary(Opcode::kNeg, a); }
inline Value operator!(Value a) { return unary(Opcode::kNot, a); }
inline Value operator~(Value a) { return unary(Opcode::kNot, a); }

Value select(Value condition, Value then, Value otherwise);
template <Number T>
Value select(Value condition, Value then, T otherwise) {
  return select(condition, then, then.builder().constant(then.type(), otherwise));
}
template <Number T>
Value select(Value condition, T then, Value otherwise) {
  return select(condition, otherwise.builder().constant(otherwise.type(), then), otherwise);
}
Value splat(Type type, Value value);     // a vector of value in every lane
Value cast(Type type, Value value);      // no instruction when the type is the same
Value bitcast(Type type, Value value);   // REQUIRES: same size
Value like(Value value, double number);  // a constant of value's type

// Of vectors of i32, whose elements are pairs of signed 16-bit integers: c and the products of a's
// and b's low halves and of their high halves, in int32.
Value pair_dot(Value a, Value b, Value c);

// Functions of floating values, one per GRAFT_IR_MATH; abs and pow also take integers.
Value math(Math function, Value a, Value b = {}, Value c = {});
#define GRAFT_IR_FUNCTION(name, arity) GRAFT_IR_FUNCTION_##arity(name)
#define GRAFT_IR_FUNCTION_1(name) \
  inline Value name(Value a) { return math(Math::k_##name, a); }
#define GRAFT_IR_FUNCTION_2(name) \
  inline Value name(Value a, Value b) { return math(Math::k_##name, a, b); }
#define GRAFT_IR_FUNCTION_3(name) \
  inline Value name(Value a, Value b, Value c) { return math(Math::k_##name, a, b, c); }
GRAFT_IR_MATH(GRAFT_IR_FUNCTION)

// Compositions that several kernels share.
Value is_nan(Value a);            // false on integers
Value is_inf(Value a);            // false on integers
Value maximum(Value a, Value b);  // NaN when either is, as torch.maximum
Value minimum(Value a, Value b);
Value fmax(Value a, Value b);  // the other one when one is NaN, as torch.fmax
Value fmin(Value a, Value b);
Value floor_div(Value a, Value b);  // rounds to minus infinity; integers: 0 for a divisor of 0
Value floor_mod(Value a, Value b);  // sign of the divisor, as torch.remainder
Value sigmoid(Value a);
Value rsqrt(Value a);

// Folds step over begin <= i < end with many independent accumulators, so that vectors run:
//   acc = step(acc, i) in each of lanes lanes, then acc = combine(acc, lane) over the lanes.
// first is the neutral start of every lane; several accumulators fold together (value and index,
// Welford's three). step and combine return as many values as first has. The order of the terms
// depends on the length and lanes alone. lanes: a power of two; 64 suits long runs of float32, 16
// short ones. step has no loop and no if.
using Values = std::vector<Value>;
Values fold(const Values& first, Value begin, Value end,
            const std::function<Values(const Values& acc, Value i)>& step,
            const std::function<Values(const Values& a, const Values& b)>& combine,
            uint32_t lanes = 64);

// The same with one accumulator that combine joins both with body(i) and with other lanes.
Value reduce(Value first, Value begin, Value end, const std::function<Value(Value i)>& body,
             const std::function<Value(Value a, Value b)>& combine, uint32_t lanes = 64);

}  // namespace graft::ir
