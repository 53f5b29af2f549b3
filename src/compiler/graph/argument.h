// src/compiler/graph/argument.h: an argument of a node.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/graph/size.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

// Integers are sizes.
struct Argument {
  enum class Kind : uint8_t { kNone, kValue, kInteger, kFloat, kBool, kString, kWord, kList };

  Kind kind = Kind::kNone;
  bool truth = false;
  ValueId value = kNone;
  double number = 0;
  Size integer{};
  std::string text{};            // of strings and words
  std::string name{};            // of the keyword; empty: positional
  std::vector<Argument> list{};  // of kList

  static Argument of(ValueId value) { return {.kind = Kind::kValue, .value = value}; }
  static Argument of_integer(Size size) {
    return {.kind = Kind::kInteger, .integer = std::move(size)};
  }
  static Argument of_number(double number) { return {.kind = Kind::kFloat, .number = number}; }
  static Argument of_truth(bool truth) { return {.kind = Kind::kBool, .truth = truth}; }
  static Argument of_string(std::string text) {
    return {.kind = Kind::kString, .text = std::move(text)};
  }
  static Argument of_word(std::string word) {
    return {.kind = Kind::kWord, .text = std::move(word)};
  }
  static Argument of_list(std::vector<Argument> list) {
    return {.kind = Kind::kList, .list = std::move(list)};
  }
  static Argument of_sizes(const std::vector<Size>& sizes);
  // The same as a keyword.
  Argument named(std::string keyword) &&;

  bool operator==(const Argument& other) const;  // NaN equals NaN, -0.0 differs from 0.0
};

// A number as an argument: float, constant integer or bool. False for anything else.
GRAFT_EXPORT bool number_of(const Argument& argument, double* out);

// Constant integers, count of them; one alone, or a list of one, stands for all. False for anything
// else.
GRAFT_EXPORT bool integers_of(const Argument& argument, size_t count, int64_t* out);

// Calls visit(ValueId&) for every value in an argument, inside lists too.
template <class Arguments, class Visit>
void each_value(Arguments& arguments, Visit visit) {
  for (auto& argument : arguments) {
    if (argument.kind == Argument::Kind::kValue) visit(argument.value);
    if (argument.kind == Argument::Kind::kList) each_value(argument.list, visit);
  }
}

}  // namespace graft::compiler
