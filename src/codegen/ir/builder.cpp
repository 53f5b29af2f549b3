// src/codegen/ir/builder.cpp: writes kernels in C++: operators on values append instructions.
#include "codegen/ir/builder.h"

#include <bit>
#include <cstring>
#include <stdexcept>

#include "codegen/ir/verifier.h"

namespace graft::ir {

namespace {

[[noreturn]] void reject(const Builder& builder, const std::string& what) {
  throw std::logic_error("kernel " + builder.kernel().name + ": " + what);
}

// Where an operator was given values of two types, or none.
void require_same(const char* what, Value a, Value b) {
  if (a.type() == b.type()) return;
  reject(a.builder(), std::string(what) + " of " + name_of(a.type()) + " and " + name_of(b.type()) +
                          ": cast one of them first");
}

Type element_type(const Builder& builder, Id array) { return builder.at(array).type; }

}  // namespace

Type Value::type() const {
  if (builder_ == nullptr) throw std::logic_error("kernel: a value was used before it was set");
  return builder_->at(id_).type;
}

Value Address::load(Value element) const {
  return builder->append(
      {Opcode::kLoad, compute_type(dtype), index, {element.id(), picked, kNoId}});
}

Value Address::load_vector(Type type, Value element) const {
  return builder->append({Opcode::kLoad, type, index, {element.id(), picked, kNoId}});
}

void Address::prefetch(Value element) const {
  builder->append({Opcode::kPrefetch, compute_type(dtype), index, {element.id(), picked, kNoId}});
}

void Address::store(Value element, Value value) const {
  const Value converted = is_vector(value.type()) ? value : cast(compute_type(dtype), value);
  builder->append({Opcode::kStore, Type::kVoid, index, {element.id(), converted.id(), picked}});
}

Address pick(const std::vector<Address>& addresses, Value which) {
  Address result = addresses.at(0);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (addresses[i].index != result.index + i) {
      reject(which.builder(), "pick takes addresses of consecutive parameters");
    }
  }
  result.picked = which.builder()
                      .append({Opcode::kPick,
                               compute_type(result.dtype),
                               result.index,
                               {which.id(), kNoId, kNoId},
                               addresses.size()})
                      .id();
  return result;
}

Variable::Variable(Value first)
    : variable_(first.builder().append(
          {Opcode::kVariable, first.type(), 0, {first.id(), kNoId, kNoId}})) {}

Value Variable::get() const {
  return variable_.builder().append(
      {Opcode::kGet, variable_.type(), 0, {variable_.id(), kNoId, kNoId}});
}

const Variable& Variable::operator=(Value value) const {
  require_same("assignment", variable_, value);
  variable_.builder().append({Opcode::kSet, Type::kVoid, 0, {variable_.id(), value.id(), kNoId}});
  return *this;
}

Variable& Variable::operator=(const Variable& other) {
  static_cast<const Variable&>(*this) = other.get();
  return *this;
}

Lanes::Lanes(Builder& builder, Type type, uint32_t count)
    : array_(builder.append({Opcode::kLanes, type, 0, {kNoId, kNoId, kNoId}, count})),
      count_(count) {}

Value Lanes::load(Value position) const {
  Builder& builder = array_.builder();
  return builder.append({Opcode::kLaneLoad,
                         element_type(builder, array_.id()),
                         0,
                         {array_.id(), position.id(), kNoId}});
}

void Lanes::store(Value position, Value value) const {
  if (!is_vector(value.type())) require_same("lane store", array_, value);
  array_.builder().append(
      {Opcode::kLaneStore, Type::kVoid, 0, {array_.id(), position.id(), value.id()}});
}

Builder::Builder(std::string name, Family family, Type result) {
  kernel_.name = std::move(name);
  kernel_.family = family;
  kernel_.result = result;
}

Value Builder::append(Instruction instruction) {
  kernel_.body.push_back(instruction);
  return {this, static_cast<Id>(kernel_.body.size() - 1)};
}

Address Builder::address(graft_dtype dtype, uint32_t access) {
  kernel_.parameters.push_back({true, dtype, access});
  return {this, static_cast<uint16_t>(kernel_.parameters.size() - 1), dtype};
}

Value Builder::scalar(graft_dtype dtype) { return stored_scalar(dtype, compute_type(dtype)); }

Value Builder::stored_scalar(graft_dtype dtype, Type type) {
  kernel_.parameters.push_back({false, dtype, 0});
  return append({Opcode::kScalar, type, static_cast<uint16_t>(kernel_.parameters.size() - 1)});
}

Value Builder::index() { return scalar(GRAFT_INT64); }
Value Builder::index32() { return scalar(GRAFT_INT32); }
Value Builder::item() { return append({Opcode::kItem, Type::kI64}); }
Value Builder::local_item() { return append({Opcode::kLocalItem, Type::kI64}); }

Value Builder::sub_group(SubGroup what) {
  return append(
      {Opcode::kSubGroup, Type::kI64, 0, {kNoId, kNoId, kNoId}, static_cast<uint64_t>(what)});
}
Value Builder::shuffle(Value value, Value mask) {
  const Type type = value.type();
  const bool narrow = type == Type::kBool || bytes_of(type) < 4;  // no language hands these over
  const Value sent = narrow ? cast(Type::kI32, value) : value;
  const Value got = append({Opcode::kShuffle, sent.type(), 0, {sent.id(), mask.id(), kNoId}});
  return cast(type, got);
}

Value Builder::constant_float(Type type, double number) {
  if (!is_float(type)) {
    return constant_integer(type, static_cast<uint64_t>(static_cast<int64_t>(number)), number < 0);
  }
  const uint64_t bits = type == Type::kF32 ? std::bit_cast<uint32_t>(static_cast<float>(number))
                                           : std::bit_cast<uint64_t>(number);
  return append({Opcode::kConstant, type, 0, {kNoId, kNoId, kNoId}, bits});
}

Value Builder::constant_integer(Type type, uint64_t bits, bool negative) {
  if (is_float(type)) {
    return constant_float(type, negative ? static_cast<double>(static_cast<int64_t>(bits))
                                         : static_cast<double>(bits));
  }
  if (type == Type::kBool) bits = bits != 0;
  const uint32_t width = bytes_of(type) * 8;
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return append({Opcode::kConstant, type, 0, {kNoId, kNoId, kNoId}, bits});
}

Value Builder::open_loop(Opcode opcode, Value begin, Value end, Value step) {
  require_same("loop", begin, end);
  if (step.id() == kNoId) step = constant(begin.type(), 1);
  return append({opcode, begin.type(), 0, {begin.id(), end.id(), step.id()}});
}

void Builder::open_if(Value condition) {
  append({Opcode::kIf, Type::kVoid, 0, {condition.id(), kNoId, kNoId}});
}

void Builder::return_(Value value) {
  append({Opcode::kReturn, Type::kVoid, 0, {value.id(), kNoId, kNoId}});
}

Kernel Builder::finish() {
  verify(kernel_);
  return std::move(kernel_);
}

Value binary(Opcode opcode, Value a, Value b) {
  require_same(name_of(opcode), a, b);
  const bool compares = opcode >= Opcode::kEq && opcode <= Opcode::kLe;
  return a.builder().append(
      {opcode, compares ? Type::kBool : a.type(), 0, {a.id(), b.id(), kNoId}});
}

Value unary(Opcode opcode, Value a) {
  return a.builder().append({opcode, a.type(), 0, {a.id(), kNoId, kNoId}});
}

Value select(Value condition, Value then, Value otherwise) {
  require_same("select", then, otherwise);
  return then.builder().append(
      {Opcode::kSelect, then.type(), 0, {condition.id(), then.id(), otherwise.id()}});
}

Value splat(Type type, Value value) {
  return value.builder().append({Opcode::kSplat, type, 0, {value.id(), kNoId, kNoId}});
}

Value pair_dot(Value a, Value b, Value c) {
  return a.builder().append({Opcode::kPairDot, a.type(), 0, {a.id(), b.id(), c.id()}});
}

Value cast(Type type, Value value) {
  if (value.type() == type) return value;
  return value.builder().append({Opcode::kCast, type, 0, {value.id(), kNoId, kNoId}});
}

Value bitcast(Type type, Value value) {
  if (value.type() == type) return value;
  return value.builder().append({Opcode::kBitcast, type, 0, {value.id(), kNoId, kNoId}});
}

Value like(Value value, double number) { return value.builder().constant(value.type(), number); }

Value math(Math function, Value a, Value b, Value c) {
  const uint16_t index = static_cast<uint16_t>(function);
  return a.builder().append({Opcode::kMath, a.type(), index, {a.id(), b.id(), c.id()}});
}

}  // namespace graft::ir
