// src/codegen/ir/local_array.h: an array that the work-items of a group share.
#pragma once

#include "codegen/ir/builder.h"

namespace graft::ir {

// Of count elements, for kernels of the GPU-like family. Made outside of loops and ifs, as OpenCL C
// asks. What one work-item stores the others read after the next barrier, which all of them reach.
class LocalArray {
 public:
  LocalArray(Builder& builder, Type type, uint64_t count)
      : type_(type),
        array_(builder.append({Opcode::kLocalMemory, type, 0, {kNoId, kNoId, kNoId}, count})) {}

  Type type() const { return type_; }

  Value load(Value position) const {
    return array_.builder().append(
        {Opcode::kLaneLoad, type_, 0, {array_.id(), position.id(), kNoId}});
  }
  void store(Value position, Value value) const {
    array_.builder().append(
        {Opcode::kLaneStore, Type::kVoid, 0, {array_.id(), position.id(), value.id()}});
  }

 private:
  Type type_;
  Value array_;
};

}  // namespace graft::ir
