// src/kernels/matrix_batch.h: a batch of matrices as the kernels of linear algebra take it.
#pragma once

#include <string>

#include "codegen/builder.h"
#include "kernels/arguments.h"
#include "kernels/tensor_view.h"
#include "runtime/export.h"

namespace graft {

// Batches are views [batch, rows, columns] of float32 or float64 with any strides; stride 0 of the
// batch dimension repeats a matrix that is read. Where rows are dense (stride 1: column-major, as
// LAPACK stores them) the vector loops along a column take whole vectors.

// Throws Error INVALID_ARGUMENT when view is no such batch, UNSUPPORTED for other dtypes.
void require_matrices(const TensorView& view, const char* what);

// The same batch with each matrix transposed.
GRAFT_EXPORT TensorView transposed(const TensorView& matrices);

inline bool has_dense_rows(const TensorView& matrices) { return matrices.strides[1] == 1; }

// Appends the batch as the three strides that MatrixParameter declares after the address.
void append_strides(Arguments& arguments, const TensorView& matrices);

// The kernel's side of one batch: an address, then its strides.
class MatrixParameter {
 public:
  // dense_rows: the stride of rows is the constant 1.
  MatrixParameter(ir::Builder& b, const ir::Address& elements, bool dense_rows)
      : elements_(elements), batch_(b.index()), row_(b.index()), column_(b.index()) {
    if (dense_rows) row_ = b.i64(1);
  }

  // Where matrix number index begins.
  ir::Value matrix(ir::Value index) const { return index * batch_; }
  // Where its element lies, or its column.
  ir::Value at(ir::Value matrix, ir::Value row, ir::Value column) const {
    return matrix + row * row_ + column * column_;
  }
  ir::Value column(ir::Value matrix, ir::Value column) const { return matrix + column * column_; }
  // Where a row of a column lies.
  ir::Value down(ir::Value column, ir::Value row) const { return column + row * row_; }

  ir::Value load(ir::Value element) const { return elements_.load(element); }
  void store(ir::Value element, ir::Value value) const { elements_.store(element, value); }

 private:
  ir::Address elements_;
  ir::Value batch_, row_, column_;
};

}  // namespace graft
