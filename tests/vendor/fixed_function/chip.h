// tests/vendor/fixed_function/chip.h: the operators of the fixed-function chip.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graft/extensions.h"

namespace chip {

// A tensor of a running plan: its layout and its memory.
struct Tensor {
  const graft_tensor* layout;
  char* memory;

  bool given() const { return layout->dtype != GRAFT_NO_TENSOR; }
  int64_t size(uint32_t d) const { return layout->sizes[d]; }
  int64_t stride(uint32_t d) const { return layout->strides[d]; }
  int64_t count() const;
  // Where element number `at`, in row-major order, lies.
  int64_t place(int64_t at) const;
  float& real(int64_t place) const { return reinterpret_cast<float*>(memory)[place]; }
  int64_t& whole(int64_t place) const { return reinterpret_cast<int64_t*>(memory)[place]; }
  // The same by row-major number.
  float& at(int64_t number) const { return real(place(number)); }
};

struct Operation;

// What operation_plan keeps of a call.
struct Plan {
  const Operation* operation;
  std::vector<graft_tensor> tensors;
  std::vector<uint32_t> scalars;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
};

// One execution.
struct Run {
  const Plan& plan;
  std::vector<Tensor> tensors;
  std::vector<double> scalars;
  int64_t integer(size_t i) const { return plan.integers[i]; }
  double number(size_t i) const { return plan.numbers[i]; }
  const Tensor& operator[](size_t i) const { return tensors[i]; }
};

// wholes: which tensors, by bits, hold int64; the others hold float32.
struct Operation {
  std::string name;
  void (*run)(const Run&);
  uint64_t wholes = 0;
  bool (*takes)(const Plan&) = nullptr;
};

// The operator of a name, null where the chip has none.
const Operation* find(const std::string& name);

// The families; each file has one.
std::vector<Operation> elementwise();
std::vector<Operation> moves();
std::vector<Operation> products();
std::vector<Operation> norms();
std::vector<Operation> networks();

// Calls each(begin, end) for parts of [0, count), on all cores.
void parallel(int64_t count, void (*each)(void* context, int64_t begin, int64_t end),
              void* context);

template <class Each>
void shared(int64_t count, const Each& each) {
  const auto call = [](void* context, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) (*static_cast<const Each*>(context))(i);
  };
  parallel(count, call, const_cast<Each*>(&each));
}

}  // namespace chip
