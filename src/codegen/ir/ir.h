// src/codegen/ir/ir.h: the language of generated kernels: types, instructions, kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/driver.h"

namespace graft::ir {

// What kernels compute in. Storage dtypes (graft_dtype) become one of these when they are loaded:
// float16 and bfloat16 become kF32, bool becomes kBool. Complex numbers are pairs of loads. Vectors
// are for kernels that block registers by hand, in dialects that have them (Dialect::vectors):
// kSplat, loads, stores, sums, products of floats, and bits, shifts and kPairDot of integers only.
// TYPE(enumerator, bytes, text)
#define GRAFT_IR_TYPES(TYPE)  \
  TYPE(kVoid, 0, "void")      \
  TYPE(kBool, 1, "bool")      \
  TYPE(kI8, 1, "i8")          \
  TYPE(kU8, 1, "u8")          \
  TYPE(kI16, 2, "i16")        \
  TYPE(kU16, 2, "u16")        \
  TYPE(kI32, 4, "i32")        \
  TYPE(kU32, 4, "u32")        \
  TYPE(kI64, 8, "i64")        \
  TYPE(kU64, 8, "u64")        \
  TYPE(kF32, 4, "f32")        \
  TYPE(kF64, 8, "f64")        \
  TYPE(kF32x4, 16, "f32x4")   \
  TYPE(kF32x8, 32, "f32x8")   \
  TYPE(kF32x16, 64, "f32x16") \
  TYPE(kI32x8, 32, "i32x8")
#define GRAFT_ENUMERATE(name, bytes, text) name,
enum class Type : uint8_t { GRAFT_IR_TYPES(GRAFT_ENUMERATE) };
#undef GRAFT_ENUMERATE

const char* name_of(Type type);  // "f32"; static storage
uint32_t bytes_of(Type type);
inline bool is_float(Type type) { return type == Type::kF32 || type == Type::kF64; }
inline bool is_integer(Type type) { return type >= Type::kI8 && type <= Type::kU64; }
inline bool is_vector(Type type) { return type >= Type::kF32x4; }
bool is_signed(Type type);       // integers and floats
Type element_of(Type type);      // of a vector; other types are their own
Type vector_of(uint32_t lanes);  // of f32; REQUIRES: 4, 8 or 16

// The type in which values of a storage dtype are computed. For complex dtypes the part's type.
Type compute_type(graft_dtype dtype);

// Functions of floating values. Each is one instruction; the printer uses the dialect's own
// spelling or prints the definition from math.h as a function of the program. MATH(name, arity)
#define GRAFT_IR_MATH(MATH)                                              \
  /* Exact or correctly rounded in every dialect. round is half to even; \
     fma of f32 may go through f64, with a second rounding. */           \
  MATH(sqrt, 1)                                                          \
  MATH(abs, 1)                                                           \
  MATH(floor, 1)                                                         \
  MATH(ceil, 1)                                                          \
  MATH(trunc, 1)                                                         \
  MATH(round, 1)                                                         \
  MATH(copysign, 2)                                                      \
  MATH(fma, 3)                                                           \
  MATH(fmod, 2)                                                          \
  /* Error bounds: math.h. */                                            \
  MATH(exp, 1)                                                           \
  MATH(exp2, 1)                                                          \
  MATH(expm1, 1)                                                         \
  MATH(log, 1)                                                           \
  MATH(log2, 1)                                                          \
  MATH(log10, 1)                                                         \
  MATH(log1p, 1)                                                         \
  MATH(sin, 1)                                                           \
  MATH(cos, 1)                                                           \
  MATH(tan, 1)                                                           \
  MATH(asin, 1)                                                          \
  MATH(acos, 1)                                                          \
  MATH(atan, 1)                                                          \
  MATH(atan2, 2)                                                         \
  MATH(sinh, 1)                                                          \
  MATH(cosh, 1)                                                          \
  MATH(tanh, 1)                                                          \
  MATH(asinh, 1)                                                         \
  MATH(acosh, 1)                                                         \
  MATH(atanh, 1)                                                         \
  MATH(erf, 1)                                                           \
  MATH(erfc, 1)                                                          \
  MATH(lgamma, 1)                                                        \
  MATH(digamma, 1)                                                       \
  MATH(pow, 2)                                                           \
  MATH(hypot, 2)                                                         \
  /* Special functions, with loops inside: special_functions.h. gcd is   \
     of integers. */                                                     \
  MATH(zeta, 2)                                                          \
  MATH(igamma, 2)                                                        \
  MATH(igammac, 2)                                                       \
  MATH(chebyshev_t, 2)                                                   \
  MATH(chebyshev_u, 2)                                                   \
  MATH(chebyshev_v, 2)                                                   \
  MATH(chebyshev_w, 2)                                                   \
  MATH(hermite_h, 2)                                                     \
  MATH(hermite_he, 2)                                                    \
  MATH(laguerre_l, 2)                                                    \
  MATH(legendre_p, 2)                                                    \
  MATH(gcd, 2)
#define GRAFT_ENUMERATE(name, arity) k_##name,
enum class Math : uint8_t { GRAFT_IR_MATH(GRAFT_ENUMERATE) };
#undef GRAFT_ENUMERATE

const char* name_of(Math function);
int arity_of(Math function);

// OPCODE(enumerator, operands, text); what each takes is the table of verifier.cpp.
#define GRAFT_IR_OPCODES(OPCODE)                                                                   \
  OPCODE(kConstant, 0, "constant") /* bits: the value */                                           \
  OPCODE(kItem, 0, "item")         /* i64: index of this work-item in the grid */                  \
  OPCODE(kScalar, 0, "scalar")     /* index: parameter; in functions: argument */                  \
  OPCODE(kAdd, 2, "add")                                                                           \
  OPCODE(kSub, 2, "sub")                                                                           \
  OPCODE(kMul, 2, "mul")                                                                           \
  OPCODE(kDiv, 2, "div") /* integers: truncates; 0 for a divisor of 0 */                           \
  OPCODE(kRem, 2, "rem") /* integers: sign of the dividend; 0 for a divisor of 0 */                \
  OPCODE(kAnd, 2, "and")                                                                           \
  OPCODE(kOr, 2, "or")                                                                             \
  OPCODE(kXor, 2, "xor")                                                                           \
  OPCODE(kShl, 2, "shl") /* amounts within 0 .. bits - 1 */                                        \
  OPCODE(kShr, 2, "shr") /* arithmetic on signed types */                                          \
  OPCODE(kEq, 2, "eq")   /* comparisons give kBool; false for NaN, but ne true */                  \
  OPCODE(kNe, 2, "ne")                                                                             \
  OPCODE(kLt, 2, "lt")                                                                             \
  OPCODE(kLe, 2, "le")                                                                             \
  OPCODE(kNeg, 1, "neg")                                                                           \
  OPCODE(kNot, 1, "not")       /* bitwise on integers, logical on kBool */                         \
  OPCODE(kSelect, 3, "select") /* condition, then, else */                                         \
  OPCODE(kCast, 1, "cast")     /* C's rules; float to integer saturates nothing */                 \
  OPCODE(kBitcast, 1, "bitcast")                                                                   \
  OPCODE(kMath, 3, "math")         /* index: Math; bits: kOwnFunction or 0 */                      \
  OPCODE(kPick, 1, "pick")         /* one of bits parameters, the first index; a: which, an i64 */ \
  OPCODE(kLoad, 1, "load")         /* index: parameter; a: element; b: a kPick in its place */     \
  OPCODE(kStore, 2, "store")       /* index: parameter; a: element, b: value; c: a kPick */        \
  OPCODE(kPrefetch, 1, "prefetch") /* as kLoad, but no value: a is soon read, or past the end */   \
  OPCODE(kVariable, 1, "variable") /* a: first value */                                            \
  OPCODE(kGet, 1, "get")           /* a: variable */                                               \
  OPCODE(kSet, 2, "set")           /* a: variable, b: value */                                     \
  OPCODE(kLanes, 0, "lanes")       /* private array of bits elements */                            \
  OPCODE(kLaneLoad, 2, "lane_load")     /* a: array, b: position */                                \
  OPCODE(kLaneStore, 3, "lane_store")   /* a: array, b: position, c: value */                      \
  OPCODE(kLoop, 3, "loop")              /* a: begin, b: end, c: step; the value is the counter */  \
  OPCODE(kVectorLoop, 3, "vector_loop") /* as kLoop; iterations are independent */                 \
  OPCODE(kBreak, 1, "break")            /* a: condition; leaves the kLoop that holds it */         \
  OPCODE(kIf, 1, "if")                                                                             \
  OPCODE(kElse, 0, "else")                                                                         \
  OPCODE(kEnd, 0, "end")                  /* closes kLoop, kVectorLoop, kIf */                     \
  OPCODE(kReturn, 1, "return")            /* functions only */                                     \
  OPCODE(kLocalItem, 0, "local_item")     /* i64: position in the group; GPU-like only */          \
  OPCODE(kLocalMemory, 0, "local_memory") /* array of bits elements per group; GPU-like only */    \
  OPCODE(kBarrier, 0, "barrier")          /* GPU-like only */                                      \
  OPCODE(kSubGroup, 0, "sub_group")       /* bits: SubGroup; an i64; GPU-like only */              \
  OPCODE(kShuffle, 2, "shuffle")          /* a of the work-item at place ^ b; GPU-like only */     \
  OPCODE(kSplat, 1, "splat")              /* a vector of a in every lane */                        \
  OPCODE(kPairDot, 3, "pair_dot")         /* c + the products of a's and b's int16 halves */
#define GRAFT_ENUMERATE(name, operands, text) name,
enum class Opcode : uint8_t { GRAFT_IR_OPCODES(GRAFT_ENUMERATE) };
#undef GRAFT_ENUMERATE

const char* name_of(Opcode opcode);
int operands_of(Opcode opcode);

// What a kSubGroup says: the work-item's place in its sub-group, which one of the group's that is,
// and how many work-items it has.
enum class SubGroup : uint8_t { kPlace, kIndex, kSize };

// kMath of f32 that calls the language's own function and not the definition in math.h.
inline constexpr uint64_t kOwnFunction = 1;

// Names an instruction of the same kernel: its position.
using Id = uint32_t;
inline constexpr Id kNoId = 0xffffffffu;

struct Instruction {
  Opcode opcode = Opcode::kConstant;
  Type type = Type::kVoid;  // of the result; of the elements for arrays
  uint16_t index = 0;
  Id operands[3] = {kNoId, kNoId, kNoId};
  uint64_t bits = 0;

  bool operator==(const Instruction&) const = default;
};

// A parameter, in the order of the launch's arguments.
struct Parameter {
  bool is_address = false;
  graft_dtype dtype = GRAFT_FLOAT32;  // of the elements in memory; of a scalar's bits
  uint32_t access = 0;                // GRAFT_ACCESS_ bits, addresses only
};

// The device family that a kernel is written for: see docs/develop/kernels.md.
enum class Family : uint8_t { kCpuLike, kGpuLike };

// A kernel or, when result is not kVoid, a function of scalars that kernels call. Plain data:
// straight-line code with nested loops and ifs, every instruction after what it uses.
struct Kernel {
  std::string name;
  Family family = Family::kCpuLike;
  Type result = Type::kVoid;
  std::vector<Parameter> parameters;
  std::vector<Instruction> body;
  bool keeps_float64 = false;  // float32 in its place would be wrong: without_float64.h
};

}  // namespace graft::ir
