// src/kernels/operation/vocabulary.h: the operators that a vendor may bring kernels for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ops/op_table.h"
#include "kernels/operation/operators.def"
#include "runtime/driver/export.h"

namespace graft {

// The operators of the kernel library; every row of the op table is one, too.
// OPERATION(name, tensors written, tensors read, integers, numbers, scalars, header that says what
// it computes). Words stand in the order of a call; behind a word, "?" is: may be missing, "+":
// read as well as written, "*": any number of them.
// The table is in operators.def.

enum class Operation : uint16_t {
#define GRAFT_OPERATION_NAME(name, ...) name,
  GRAFT_OPERATIONS(GRAFT_OPERATION_NAME)
#undef GRAFT_OPERATION_NAME
};

#define GRAFT_OPERATION_ONE(...) +1
inline constexpr uint16_t kOperators = GRAFT_OPERATIONS(GRAFT_OPERATION_ONE);
#undef GRAFT_OPERATION_ONE

// A place in the vocabulary: operators of the kernel library first, then the op table's rows.
struct OperationId {
  OperationId(Operation which) : at(static_cast<uint16_t>(which)) {}
  OperationId(const Op& row) : at(static_cast<uint16_t>(kOperators + row.id)) {}

  uint16_t at;
};

// What a call of an operator has, in order.
struct Signature {
  struct Word {
    std::string name;
    bool optional = false;  // may be missing
    bool updated = false;   // read as well as written
    bool repeated = false;  // any number of them
  };

  std::string name;
  std::vector<Word> written, read, integers, numbers, scalars;
  std::string header;  // of src/kernels that says what it computes; empty: a row of the op table
};

// The vocabulary, by OperationId::at. Static storage, any thread.
GRAFT_EXPORT const std::vector<Signature>& vocabulary();

// The same for programs that read it: [{"name", "written": ["to+"], "read", "integers", "numbers",
// "scalars", "header"}, ...].
GRAFT_EXPORT std::string vocabulary_json();

}  // namespace graft
