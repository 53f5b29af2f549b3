// src/compiler/graph/graph.h: the graph that the compiler works on: values, nodes, effects, groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/size.h"
#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// What the parts mean: docs/develop/compiler-ir.md. A Graph is plain data with value semantics:
// copy it to keep a state. Ids are positions in its vectors and stay valid until compact().
using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = 0xffffffffu;

struct Symbol {
  std::string name;
  int64_t low = 0, high = INT64_MAX;  // both included; INT64_MAX: no limit
  int64_t hint = 0;
  ValueId value = kNone;  // its size at dim is the symbol; kNone: an integer of the call
  int64_t dim = 0;        // or which integer
};

struct TensorType {
  graft_dtype dtype = GRAFT_FLOAT32;
  std::vector<Size> sizes, strides;  // strides in elements

  bool operator==(const TensorType&) const = default;
  Size count() const { return product(sizes); }
  // Memory that it spans, in bytes: from its first to its last element (strides are not negative).
  Size extent() const;
  GRAFT_EXPORT bool row_major() const;  // strides are exactly those of row_major_strides
};
std::vector<Size> row_major_strides(const std::vector<Size>& sizes);

// An argument of a node. Integers are sizes.
struct Argument {
  enum class Kind : uint8_t { kNone, kValue, kInteger, kFloat, kBool, kString, kWord, kList };

  Kind kind = Kind::kNone;
  bool truth = false;
  ValueId value = kNone;
  double number = 0;
  Size integer;
  std::string text;            // of strings and words
  std::string name;            // of the keyword; empty: positional
  std::vector<Argument> list;  // of kList

  static Argument of(ValueId value);
  static Argument of_integer(Size integer);
  static Argument of_number(double number);
  static Argument of_truth(bool truth);
  static Argument of_word(std::string word);
  bool operator==(const Argument& other) const;  // NaN equals NaN, -0.0 differs from 0.0
};

struct Node {
  std::string op;  // "aten.add.Tensor"
  std::vector<Argument> arguments;
  std::vector<ValueId> results;  // kNone where ATen leaves one undefined
  std::vector<ValueId> writes;   // operands whose memory it changes
  ValueId views = kNone;         // the operand that its results share memory with
  bool random = false;
  bool opaque = false;
  std::string source;  // "model.py:12"; empty: not known
  std::vector<std::pair<std::string, std::string>> notes;

  bool has_effect() const { return !writes.empty() || random || opaque; }
};

enum class Origin : uint8_t { kInput, kConstant, kNode };
enum class InputKind : uint8_t { kParameter, kBuffer, kActivation, kTangent, kScalar };

struct GraphValue {
  std::string name;  // without the %; unique in the graph
  TensorType type;
  Origin origin = Origin::kNode;
  NodeId node = kNone;  // whose result it is

  InputKind kind = InputKind::kActivation;  // of inputs
  bool mutated = false;
  ValueId alias = kNone;

  std::vector<double> data{};    // of constants: all elements, or one for all; floating types, bool
  std::vector<int64_t> whole{};  // the same for integer types
  std::string external{};        // of constants that the caller brings
};

enum class GroupKind : uint8_t { kPointwise, kReduction, kMatmul, kConvolution };

struct Group {
  std::string name;
  GroupKind kind = GroupKind::kPointwise;
  std::vector<NodeId> nodes;  // in program order
};

struct Output {
  enum class Kind : uint8_t { kValue, kInteger, kNone };
  Kind kind = Kind::kValue;
  ValueId value = kNone;
  Size integer;
  bool saved = false;
  ValueId alias = kNone, mutation = kNone;
};

struct Graph {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<GraphValue> values;
  std::vector<ValueId> inputs, constants;  // in their order
  std::vector<Node> nodes;
  std::vector<NodeId> order;  // the program; nodes that are not in it are gone
  std::vector<Group> groups;
  std::vector<Output> outputs;

  // Adds a value with a name that nothing has: the wished one, or that with a number behind.
  ValueId add_value(const std::string& wished, TensorType type);
  // Adds a node with one new result, not yet in the order.
  NodeId add_node(std::string op, std::vector<Argument> arguments, const std::string& wished,
                  TensorType type, const std::string& source);

  // Drops nodes that are not in the order, and values that nothing defines. Ids change.
  void compact();

  ValueId find(std::string_view value) const;  // kNone when there is none; a search
  std::string describe(NodeId node) const;     // "%y (aten.relu.default, model.py:12)"
  int64_t hint(const Size& size) const;        // at the symbols' hints
};

// Calls visit(ValueId&) for every value in an argument, inside lists too.
template <class Arguments, class Visit>
void each_value(Arguments& arguments, Visit visit) {
  for (auto& argument : arguments) {
    if (argument.kind == Argument::Kind::kValue) visit(argument.value);
    if (argument.kind == Argument::Kind::kList) each_value(argument.list, visit);
  }
}

const char* name_of(InputKind kind);
const char* name_of(GroupKind kind);

}  // namespace graft::compiler
