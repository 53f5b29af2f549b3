// src/compiler/graph/graph.h: the graph that the compiler works on: values, nodes, effects, groups.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/graph/argument.h"
#include "compiler/graph/operators.h"
#include "compiler/graph/size.h"
#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// What the parts mean: docs/develop/compiler-ir.md. A Graph is plain data with value semantics:
// copy it to keep a state. Ids are positions in its vectors and stay valid until compact().
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

  static TensorType row_major(graft_dtype dtype, std::vector<Size> sizes);
  bool operator==(const TensorType&) const = default;
  Size count() const { return product(sizes); }
  // Memory that it spans, in bytes: from its first to its last element (strides are not negative).
  Size extent() const;
  GRAFT_EXPORT bool row_major() const;  // strides are exactly those of row_major_strides
};
std::vector<Size> row_major_strides(const std::vector<Size>& sizes);

struct Node {
  const Operator* op = nullptr;
  std::vector<Argument> arguments;
  std::vector<ValueId> results;  // kNone where ATen leaves one undefined
  std::vector<ValueId> writes;   // operands whose memory it changes
  ValueId views = kNone;         // the operand that its results share memory with
  bool random = false;
  bool opaque = false;
  std::string source;  // "model.py:12"; empty: not known
  std::vector<std::pair<std::string, std::string>> notes;

  bool has_effect() const { return !writes.empty() || random || opaque; }
  // Null where the node has none of that key.
  GRAFT_EXPORT const std::string* note(std::string_view key) const;
  template <class... Ids>
  bool is(Ids... ids) const {
    return ((op->id == ids) || ...);
  }
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
  NodeId add_node(const Operator* op, std::vector<Argument> arguments, const std::string& wished,
                  TensorType type, const std::string& source);

  // Drops nodes that are not in the order, and values that nothing defines. Ids change.
  void compact();

  ValueId find(std::string_view value) const;  // kNone when there is none; a search
  std::string describe(NodeId node) const;     // "%y (aten.relu.default, model.py:12)"
  int64_t hint(const Size& size) const;        // at the symbols' hints
};

// An argument by ATen's name, given as a keyword or at its position; null where it was left out or
// the operator is not known to have it.
GRAFT_EXPORT const Argument* argument(const Node& node, std::string_view name);
// The argument at a position, or else with that keyword; null where it was left out.
const Argument* argument(const Node& node, size_t position, std::string_view keyword = {});
GRAFT_EXPORT ValueId operand(const Node& node, size_t position);        // kNone: no tensor
GRAFT_EXPORT ValueId operand(const Node& node, std::string_view name);  // the same

// A number, or its default where it was left out. False where it is no number, or has no default.
GRAFT_EXPORT bool number_of(const Node& node, std::string_view name, double* out);
// Whether it was given, and true.
GRAFT_EXPORT bool is_true(const Node& node, std::string_view name);

const char* name_of(InputKind kind);
const char* name_of(GroupKind kind);

}  // namespace graft::compiler
