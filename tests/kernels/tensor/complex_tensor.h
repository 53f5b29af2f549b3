// tests/kernels/tensor/complex_tensor.h: a complex tensor on the host device, as
// std::complex<double>.
#pragma once

#include <complex>
#include <utility>
#include <vector>

#include "kernels/tensor/complex_parts.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft::test {

using Number = std::complex<double>;

inline std::vector<double> parts_of(const std::vector<Number>& values) {
  std::vector<double> parts;
  parts.reserve(2 * values.size());
  for (const Number& z : values) {
    parts.push_back(z.real());
    parts.push_back(z.imag());
  }
  return parts;
}

// A tensor of pairs: one dimension more than the complex view of it.
class ComplexTensor {
 public:
  // Strides in complex elements.
  ComplexTensor(std::vector<int64_t> sizes, std::vector<int64_t> strides, graft_dtype dtype)
      : pairs_(with(std::move(sizes), 2), with(doubled(std::move(strides)), 1), part_of(dtype)),
        view_(pairs_.view()) {
    view_.dtype = dtype;
    --view_.rank;
    for (int d = 0; d < view_.rank; ++d) view_.strides[d] /= 2;
  }

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }

  void set(const std::vector<Number>& values) { pairs_.set(parts_of(values)); }
  std::vector<double> parts() const { return pairs_.get(); }

 private:
  static std::vector<int64_t> with(std::vector<int64_t> list, int64_t last) {
    list.push_back(last);
    return list;
  }
  static std::vector<int64_t> doubled(std::vector<int64_t> strides) {
    for (int64_t& stride : strides) stride *= 2;
    return strides;
  }

  DeviceTensor pairs_;
  TensorView view_;
};

inline std::vector<Number> complex_numbers(int64_t count, unsigned seed, graft_dtype dtype) {
  const auto parts = numbers(2 * count, seed, -2, 2, part_of(dtype));
  std::vector<Number> values;
  for (size_t i = 0; i < parts.size(); i += 2) values.emplace_back(parts[i], parts[i + 1]);
  return values;
}

}  // namespace graft::test
