// include/graft/deploy_array.hpp: tensors in host memory, and failures, for graft/deploy.hpp, which
// includes it; inline only.
//
//   const std::vector<float> x(12);
//   const graft::deployed::Array array(x.data(), {3, 4});
//   array.count();          // 12
//   array.data<double>();   // throws Error: the elements are floats
//
// An Array is a value: it may be copied, and any thread may use it. It owns no elements. An Error
// may be kept.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DEPLOY_ARRAY_HPP_
#define GRAFT_DEPLOY_ARRAY_HPP_

#include <algorithm>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "graft/deploy.h"

#pragma GCC visibility push(hidden)

namespace graft::deployed {

// What every function of deploy.hpp throws, beside std::bad_alloc. what(): what was given, what
// was expected and what to do. A copy may be kept, and may go to another thread.
class Error : public std::runtime_error {
 public:
  Error(graft_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  // The status of the function of graft/deploy.h that failed, never GRAFT_OK: GRAFT_NOT_FOUND for a
  // file or a name that is missing, GRAFT_INVALID_ARGUMENT for a damaged file or an input that does
  // not fit, GRAFT_VERSION_MISMATCH for a file of another major, and others as deploy.h states.
  graft_status status() const noexcept { return status_; }

 private:
  graft_status status_;
};

// For a program that calls functions of graft/deploy.h itself, on the c() of a model or an array:
// makes an exception of their failure.
// Throws Error unless the status is GRAFT_OK. REQUIRES: it is of this thread's last call.
inline void check(graft_status status) {
  if (status != GRAFT_OK) throw Error(status, graft_model_message());
}

// The dtype whose elements are a T, for the types of the list below. A program that asks for
// another type does not compile. C++17 has no type for the elements of float16 and bfloat16: give
// and take these as void*, with the dtype beside them.
template <class T>
extern const graft_dtype dtype_of;
// Integers of other names, such as long long, are none of these types: convert the pointer.
#define GRAFT_DTYPE_OF(type, dtype) \
  template <>                       \
  inline constexpr graft_dtype dtype_of<type> = dtype
GRAFT_DTYPE_OF(bool, GRAFT_BOOL);
GRAFT_DTYPE_OF(uint8_t, GRAFT_UINT8);
GRAFT_DTYPE_OF(int8_t, GRAFT_INT8);
GRAFT_DTYPE_OF(int16_t, GRAFT_INT16);
GRAFT_DTYPE_OF(int32_t, GRAFT_INT32);
GRAFT_DTYPE_OF(int64_t, GRAFT_INT64);
GRAFT_DTYPE_OF(float, GRAFT_FLOAT32);
GRAFT_DTYPE_OF(double, GRAFT_FLOAT64);
GRAFT_DTYPE_OF(std::complex<float>, GRAFT_COMPLEX64);
GRAFT_DTYPE_OF(std::complex<double>, GRAFT_COMPLEX128);
#undef GRAFT_DTYPE_OF

// A tensor in host memory: dtype, sizes, strides and where its elements are. A value type that
// borrows the elements: those of an input stay as they are during run(), those of a result live as
// long as their Results.
class Array {
 public:
  // Row-major elements of a type that dtype_of knows.
  // data: the first element; null only if a size is 0. sizes: none of a tensor without dimensions,
  // no more than GRAFT_ARRAY_RANK, or Error INVALID_ARGUMENT.
  template <class T>
  Array(const T* data, const std::vector<int64_t>& sizes) : Array(data, dtype_of<T>, sizes) {}
  // The same for any dtype, such as GRAFT_BFLOAT16. The elements are little-endian and have the
  // dtype's size, without gaps.
  Array(const void* data, graft_dtype dtype, const std::vector<int64_t>& sizes)
      : Array(data, dtype, sizes, row_major(sizes)) {}
  // Elements at any places, such as a transposed or a repeated tensor: element (i, j, ...) is i *
  // strides[0] + j * strides[1] + ... elements behind the first.
  // strides: not negative, as many as sizes, or Error INVALID_ARGUMENT.
  Array(const void* data, graft_dtype dtype, const std::vector<int64_t>& sizes,
        const std::vector<int64_t>& strides)
      : array_{} {
    if (sizes.size() > GRAFT_ARRAY_RANK || strides.size() != sizes.size()) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  "an array of " + std::to_string(sizes.size()) + " sizes and " +
                      std::to_string(strides.size()) + " strides: expected as many strides as " +
                      "sizes, and at most " + std::to_string(GRAFT_ARRAY_RANK));
    }
    array_.struct_size = sizeof array_;
    array_.dtype = static_cast<uint16_t>(dtype);
    array_.rank = static_cast<uint16_t>(sizes.size());
    std::copy(sizes.begin(), sizes.end(), array_.sizes);
    std::copy(strides.begin(), strides.end(), array_.strides);
    array_.data = const_cast<void*>(data);  // nothing writes an input
  }
  // The tensor that a function of graft/deploy.h described.
  explicit Array(const graft_array& array) : array_(array) {}

  // As they were given, or as the model made them; sizes() and strides() have one number for each
  // dimension, the outermost first.
  graft_dtype dtype() const { return static_cast<graft_dtype>(array_.dtype); }
  std::vector<int64_t> sizes() const { return {array_.sizes, array_.sizes + array_.rank}; }
  std::vector<int64_t> strides() const { return {array_.strides, array_.strides + array_.rank}; }
  // The number of elements: the product of the sizes, 1 without dimensions. It fits, for each array
  // that a model gave; of an array that a caller made, the sizes say what is in memory.
  size_t count() const {
    size_t count = 1;
    for (int64_t size : sizes()) count *= static_cast<size_t>(size);
    return count;
  }

  // The first element. The others are where the strides say; those of a result are one behind
  // another, row-major, so that count() elements from here on are all of them.
  const void* data() const { return array_.data; }
  // The same as a T, which protects from reading a float64 as a float.
  // Throws Error INVALID_ARGUMENT if the dtype is not the one of T.
  template <class T>
  const T* data() const {
    if (dtype() == dtype_of<T>) return static_cast<const T*>(array_.data);
    throw Error(GRAFT_INVALID_ARGUMENT, "the array's elements have dtype number " +
                                            std::to_string(array_.dtype) + ", asked for number " +
                                            std::to_string(dtype_of<T>) +
                                            ": ask for the type that dtype() says");
  }

  // For the functions of graft/deploy.h; it lives as long as this, and borrows the elements.
  const graft_array& c() const { return array_; }

 private:
  static std::vector<int64_t> row_major(const std::vector<int64_t>& sizes) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
    return strides;
  }

  graft_array array_;
};

}  // namespace graft::deployed

#pragma GCC visibility pop

#endif  // GRAFT_DEPLOY_ARRAY_HPP_
