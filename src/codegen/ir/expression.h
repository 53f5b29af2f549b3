// src/codegen/ir/expression.h: one operation as an expression of every C-like language.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/ir/ir.h"

namespace graft::ir {

// a and b are names or constants, which need no parentheses.

// The value that these bits are in the type.
std::string constant_text(Type type, uint64_t bits);

// The unsigned integer type of the same size: "u8" to "u64".
const char* unsigned_of(Type type);

// The sign of an arithmetic, bit or comparison opcode: "+" to "<=".
const char* symbol(Opcode opcode);

// Signed arithmetic wraps: the languages promise that for unsigned types only.
std::string arithmetic(Opcode opcode, Type type, const std::string& a, const std::string& b);

// Quotient or remainder; of integers it never traps: by 0 it is 0.
std::string division(Opcode opcode, Type type, const std::string& a, const std::string& b);

std::string cast_text(Type to, Type from, const std::string& a);

}  // namespace graft::ir
