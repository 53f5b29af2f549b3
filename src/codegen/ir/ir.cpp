// src/codegen/ir/ir.cpp: names and sizes of the kernel language.
#include "codegen/ir/ir.h"

namespace graft::ir {

const char* name_of(Type type) {
#define GRAFT_NAME(name, bytes, text) text,
  static constexpr const char* names[] = {GRAFT_IR_TYPES(GRAFT_NAME)};
#undef GRAFT_NAME
  return names[static_cast<int>(type)];
}

uint32_t bytes_of(Type type) {
#define GRAFT_BYTES(name, bytes, text) bytes,
  static constexpr uint32_t sizes[] = {GRAFT_IR_TYPES(GRAFT_BYTES)};
#undef GRAFT_BYTES
  return sizes[static_cast<int>(type)];
}

bool is_signed(Type type) {
  return is_float(type) || type == Type::kI8 || type == Type::kI16 || type == Type::kI32 ||
         type == Type::kI64;
}

Type element_of(Type type) {
  if (type == Type::kI32x8) return Type::kI32;
  return is_vector(type) ? Type::kF32 : type;
}

Type vector_of(uint32_t lanes) {
  return lanes == 16 ? Type::kF32x16 : lanes == 8 ? Type::kF32x8 : Type::kF32x4;
}

Type compute_type(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_BOOL:
      return Type::kBool;
    case GRAFT_UINT8:
      return Type::kU8;
    case GRAFT_INT8:
      return Type::kI8;
    case GRAFT_INT16:
      return Type::kI16;
    case GRAFT_INT32:
      return Type::kI32;
    case GRAFT_INT64:
      return Type::kI64;
    case GRAFT_FLOAT64:
    case GRAFT_COMPLEX128:
      return Type::kF64;
    default:
      return Type::kF32;
  }
}

const char* name_of(Math function) {
#define GRAFT_NAME(name, arity) #name,
  static constexpr const char* names[] = {GRAFT_IR_MATH(GRAFT_NAME)};
#undef GRAFT_NAME
  return names[static_cast<int>(function)];
}

int arity_of(Math function) {
#define GRAFT_ARITY(name, arity) arity,
  static constexpr int arities[] = {GRAFT_IR_MATH(GRAFT_ARITY)};
#undef GRAFT_ARITY
  return arities[static_cast<int>(function)];
}

const char* name_of(Opcode opcode) {
#define GRAFT_NAME(name, operands, text) text,
  static constexpr const char* names[] = {GRAFT_IR_OPCODES(GRAFT_NAME)};
#undef GRAFT_NAME
  return names[static_cast<int>(opcode)];
}

int operands_of(Opcode opcode) {
#define GRAFT_OPERANDS(name, operands, text) operands,
  static constexpr int counts[] = {GRAFT_IR_OPCODES(GRAFT_OPERANDS)};
#undef GRAFT_OPERANDS
  return counts[static_cast<int>(opcode)];
}

}  // namespace graft::ir
