// src/kernels/linalg/matrix_batch.h: a batch of matrices as the kernels of linear algebra take it.
#pragma once

#include <string>

#include "codegen/ir/builder.h"
#include "kernels/launch/arguments.h"
#include "kernels/linalg/matrix_number.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"

namespace graft {

// Batches are views [batch, rows, columns] of floating (not half) or complex numbers with any
// strides; stride 0 of the batch dimension repeats a matrix that is read. Where rows are dense
// (stride 1: column-major, as LAPACK stores them) the vector loops along a column take whole
// vectors.

// Throws Error INVALID_ARGUMENT when view is no such batch, UNSUPPORTED for other dtypes.
void require_matrices(const TensorView& view, const char* what);

// The same batch with each matrix transposed.
GRAFT_EXPORT TensorView transposed(const TensorView& matrices);

inline bool has_dense_rows(const TensorView& matrices) { return matrices.strides[1] == 1; }

// The key of a kernel for such a batch.
std::string batch_key(const char* what, const TensorView& matrices);

// Appends the batch as the three strides that MatrixParameter declares after the address.
void append_strides(Arguments& arguments, const TensorView& matrices);

// Appends a batch that the kernel writes over: its address, then its strides.
void append_updated(Arguments& arguments, const TensorView& matrices);

// The kernel's side of one batch: an address of its numbers' parts, then its strides.
template <class Number>
class MatrixParameter {
 public:
  // dense_rows: the stride of rows is the constant 1. conjugate: elements are read as conjugates.
  MatrixParameter(ir::Builder& b, const ir::Address& parts, bool dense_rows, bool conjugate = false)
      : parts_(parts), conjugate_(conjugate), batch_(b.index()), row_(b.index()) {
    column_ = b.index();
    if (dense_rows) row_ = b.i64(1);
  }

  // Where matrix number index begins.
  Value matrix(Value index) const { return index * batch_; }
  // Where its element lies, or its column.
  Value at(Value matrix, Value row, Value column) const {
    return matrix + row * row_ + column * column_;
  }
  Value column(Value matrix, Value column) const { return matrix + column * column_; }
  // Where a row of a column lies.
  Value down(Value column, Value row) const { return column + row * row_; }

  Number load(Value element) const { return load_number<Number>(parts_, element, conjugate_); }
  void store(Value element, Number value) const { store_number(parts_, element, value); }

 private:
  ir::Address parts_;
  bool conjugate_;
  Value batch_, row_, column_;
};

// Launches the kernel of that key that make<Number>() gives for the numbers of dtype.
template <class Make>
void launch_for_numbers(Stream& stream, graft_dtype dtype, const std::string& key, int64_t grid,
                        const Arguments& arguments, const Make& make) {
  launch_kernel(stream, key, grid, arguments, [&] {
    return is_complex(dtype) ? make.template operator()<ComplexValue>()
                             : make.template operator()<Value>();
  });
}

}  // namespace graft
