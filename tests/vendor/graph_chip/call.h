// tests/vendor/graph_chip/call.h: a node while it runs: its tensors and its arguments.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "text.h"

namespace chip {

using Sizes = std::vector<int64_t>;
enum class Dtype { kFloat32, kInt64, kBool };

struct Tensor {
  Dtype dtype = Dtype::kFloat32;
  Sizes sizes, strides;  // strides in elements
  char* data = nullptr;

  size_t item() const { return dtype == Dtype::kBool ? 1 : dtype == Dtype::kInt64 ? 8 : 4; }
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t count() const {
    int64_t all = 1;
    for (int64_t size : sizes) all *= size;
    return all;
  }
  float* floats() const { return reinterpret_cast<float*>(data); }
  double get(int64_t at) const {
    if (dtype == Dtype::kFloat32) return floats()[at];
    if (dtype == Dtype::kInt64) return static_cast<double>(reinterpret_cast<int64_t*>(data)[at]);
    return data[at];
  }
  void set(int64_t at, double value) const {
    if (dtype == Dtype::kFloat32)
      floats()[at] = static_cast<float>(value);
    else if (dtype == Dtype::kInt64)
      reinterpret_cast<int64_t*>(data)[at] = static_cast<int64_t>(value);
    else
      data[at] = value != 0;
  }
  // Where an index lies; one of more dimensions, by broadcasting.
  int64_t at(const Sizes& index) const {
    int64_t place = 0;
    const size_t skipped = index.size() - sizes.size();
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] != 1) place += index[d + skipped] * strides[d];
    }
    return place;
  }
};

// Calls f(index) for every index, the last dimension fastest.
template <class F>
void each(const Sizes& sizes, F f) {
  Sizes index(sizes.size(), 0);
  for (int64_t size : sizes) {
    if (size == 0) return;
  }
  for (;;) {
    f(static_cast<const Sizes&>(index));
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

class Call {
 public:
  Call(const Node& node, const std::map<std::string, Tensor>& tensors, const Symbols& symbols)
      : node_(node), tensors_(tensors), symbols_(symbols) {}

  // By position, or by ATen's name as a keyword; null where it was left out or is none.
  const Literal* find(size_t position, const char* name) const {
    size_t at = 0;
    for (const Literal& one : node_.arguments) {
      const bool found = one.name.empty() ? at++ == position : one.name == name;
      if (found) return one.kind == Literal::kNone ? nullptr : &one;
    }
    return nullptr;
  }
  const Tensor* tensor(size_t position, const char* name = "") const {
    const Literal* given = find(position, name);
    return given != nullptr && given->kind == Literal::kValue ? &tensors_.at(given->text) : nullptr;
  }
  const Tensor& operator[](size_t position) const { return *tensor(position); }
  double number(size_t position, const char* name, double otherwise) const {
    const Literal* given = find(position, name);
    if (given == nullptr) return otherwise;
    if (given->kind == Literal::kInteger)
      return static_cast<double>(evaluate(given->text, symbols_));
    return given->number;
  }
  int64_t integer(size_t position, const char* name, int64_t otherwise) const {
    return static_cast<int64_t>(number(position, name, static_cast<double>(otherwise)));
  }
  bool flag(size_t position, const char* name = "") const { return number(position, name, 0) != 0; }
  Sizes integers(size_t position, const char* name = "") const {
    Sizes all;
    const Literal* given = find(position, name);
    if (given == nullptr) return all;
    if (given->kind != Literal::kList) return {integer(position, name, 0)};
    for (const Literal& one : given->list) {
      all.push_back(one.kind == Literal::kBool ? static_cast<int64_t>(one.number)
                                               : evaluate(one.text, symbols_));
    }
    return all;
  }
  // A pair, of which one number stands for both.
  std::pair<int64_t, int64_t> pair(size_t position, const char* name, int64_t otherwise) const {
    const Sizes all = integers(position, name);
    if (all.empty()) return {otherwise, otherwise};
    return {all[0], all.back()};
  }
  std::vector<const Tensor*> tensors(size_t position) const {
    std::vector<const Tensor*> all;
    for (const Literal& one : find(position, "")->list) all.push_back(&tensors_.at(one.text));
    return all;
  }
  // Null where the node has none.
  const Tensor* maybe(size_t result) const {
    if (result >= node_.results.size() || node_.results[result].empty()) return nullptr;
    return &tensors_.at(node_.results[result]);
  }
  const Tensor& result(size_t number = 0) const { return *maybe(number); }
  const Node& node() const { return node_; }

 private:
  const Node& node_;
  const std::map<std::string, Tensor>& tensors_;
  const Symbols& symbols_;
};

using Kernel = std::function<void(const Call&)>;
using Kernels = std::map<std::string, Kernel>;

// Each file of kernels adds its own.
void add_pointwise(Kernels* kernels);
void add_reductions(Kernels* kernels);
void add_products(Kernels* kernels);
void add_convolutions(Kernels* kernels);
void add_moves(Kernels* kernels);
const Kernels& all_kernels();

}  // namespace chip
