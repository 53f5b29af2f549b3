// src/codegen/ir/expression.cpp: one operation as an expression of every C-like language.
#include "codegen/ir/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace graft::ir {

namespace {

std::string float_text(double value, Type type) {
  const char* suffix = type == Type::kF32 ? "f" : "";
  if (std::isnan(value)) return fmt::format("(0.0{0} / 0.0{0})", suffix);
  if (std::isinf(value)) return fmt::format("({1}1.0{0} / 0.0{0})", suffix, value < 0 ? "-" : "");
  std::string text =
      type == Type::kF32 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return value < 0 || std::signbit(value) ? "(" + text + suffix + ")" : text + suffix;
}

}  // namespace

std::string constant_text(Type type, uint64_t bits) {
  if (type == Type::kF32) {
    return float_text(std::bit_cast<float>(static_cast<uint32_t>(bits)), type);
  }
  if (type == Type::kF64) return float_text(std::bit_cast<double>(bits), type);
  if (bits < 0x80000000u && bytes_of(type) >= 4) return fmt::format("({}){}", name_of(type), bits);
  return fmt::format("({}){:#x}u{}", name_of(type), bits, bits > 0xffffffffu ? "l" : "");
}

const char* unsigned_of(Type type) {
  static constexpr const char* kNames[] = {"u8", "u16", "u32", "u64"};
  return kNames[std::min(std::bit_width(bytes_of(type)), 4u) - 1];
}

const char* symbol(Opcode opcode) {
  static constexpr const char* symbols[] = {"+", "-",  "*",  "/",  "%",  "&", "|",
                                            "^", "<<", ">>", "==", "!=", "<", "<="};
  return symbols[static_cast<int>(opcode) - static_cast<int>(Opcode::kAdd)];
}

std::string arithmetic(Opcode opcode, Type type, const std::string& a, const std::string& b) {
  if (type == Type::kBool) return fmt::format("(bool)({} {} {})", a, symbol(opcode), b);
  if (!is_integer(type)) return fmt::format("{} {} {}", a, symbol(opcode), b);
  const bool shifts = opcode == Opcode::kShl;
  return fmt::format("({0})(({1}){2} {3} {4}{5})", name_of(type), unsigned_of(type), a,
                     symbol(opcode), shifts ? "" : fmt::format("({})", unsigned_of(type)), b);
}

std::string division(Opcode opcode, Type type, const std::string& a, const std::string& b) {
  const char* s = symbol(opcode);
  if (!is_integer(type)) return fmt::format("{} {} {}", a, s, b);
  if (!is_signed(type)) return fmt::format("{1} == 0 ? 0 : {0} {2} {1}", a, b, s);
  if (opcode == Opcode::kRem) return fmt::format("{1} == 0 || {1} == -1 ? 0 : {0} % {1}", a, b);
  return fmt::format("{1} == 0 ? 0 : {1} == -1 ? ({2})(0 - ({3}){0}) : {0} / {1}", a, b,
                     name_of(type), unsigned_of(type));
}

std::string cast_text(Type to, Type from, const std::string& a) {
  if (to == Type::kBool) return a + " != 0";
  // gcc 12 does not vectorise the cast itself.
  if (from == Type::kBool && is_float(to)) return a + " ? 1.0f : 0.0f";
  const bool narrows = is_float(from) && is_integer(to) && bytes_of(to) < 4;
  return fmt::format("({}){}{}", name_of(to), narrows ? "(i32)" : "", a);
}

}  // namespace graft::ir
