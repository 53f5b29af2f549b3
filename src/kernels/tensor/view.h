// src/kernels/tensor/view.h: what kernels work on: strided views, scalars, operands.
#pragma once

#include <cstdint>
#include <cstring>

#include "graft/driver.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/export.h"

namespace graft {

inline constexpr int kMaxRank = 16;

// Elements of dtype at address; element (i0, i1, ...) lies i0 * strides[0] + ... elements further.
// A stride of 0 repeats an element (broadcast). Strides are negative only where a function takes
// that, as pointwise and copy do of their inputs. A view owns nothing.
struct TensorView {
  graft_address address = 0;
  graft_dtype dtype = GRAFT_FLOAT32;
  int rank = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank];

  int64_t count() const {
    int64_t count = 1;
    for (int i = 0; i < rank; ++i) count *= sizes[i];
    return count;
  }
  // Row-major without gaps; strides of dimensions of size 1 do not matter.
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (sizes[i] != 1 && strides[i] != expected) return false;
      expected *= sizes[i];
    }
    return true;
  }
};

// The view with shape's sizes: dimensions that it lacks, or has once, repeat. REQUIRES: the sizes
// broadcast.
GRAFT_EXPORT TensorView expanded(const TensorView& view, const TensorView& shape);

// One number of a dtype: its bits in the low bytes. Complex: real part in bits[0], imaginary part
// in bits[1], each as a number of the part's type.
struct GRAFT_EXPORT Scalar {
  graft_dtype dtype = GRAFT_FLOAT32;
  uint64_t bits[2] = {0, 0};

  // The dtype that stands for T: float, double, bool, int64_t and the other integers.
  template <class T>
  static Scalar of(T value) {
    Scalar scalar;
    scalar.dtype = dtype_of<T>;
    std::memcpy(scalar.bits, &value, sizeof(T));
    return scalar;
  }
  // value as a scalar of dtype (half types are rounded to nearest even).
  static Scalar of(graft_dtype dtype, double value);
  static Scalar of_integer(graft_dtype dtype, int64_t value);

  // The number in another dtype, with C's conversions; complex to real drops the imaginary part.
  Scalar to(graft_dtype dtype) const;
  double real() const;  // as a double; exact but for large integers
};

// An input of a kernel: a view, or a number that stands for a tensor of one element.
struct Operand {
  Operand() : is_scalar(false), view() {}  // a view to be filled in
  Operand(const TensorView& view) : is_scalar(false), view(view) {}
  Operand(const graft::Scalar& scalar) : is_scalar(true), scalar(scalar) {}

  bool is_scalar;
  union {
    TensorView view;
    graft::Scalar scalar;
  };
  graft_dtype dtype() const { return is_scalar ? scalar.dtype : view.dtype; }
};

}  // namespace graft
