// src/kernels/training/recurrent_kernel.h: the kernels of recurrent cells.
#pragma once

#include <string>

#include "codegen/ir/ir.h"

namespace graft {

// One kernel; its parameters are the tensors of recurrent.h in the order of the function's
// arguments without those that are missing, then rows, rows per item, hidden size.
struct RecurrentKernel {
  enum Step { kLstm, kLstmBackward, kGru, kGruBackward } step = kLstm;
  graft_dtype dtype = GRAFT_FLOAT32;
  bool first = false;   // the first optional tensor is given
  bool second = false;  // the second

  std::string key() const;
  ir::Kernel build() const;
};

}  // namespace graft
