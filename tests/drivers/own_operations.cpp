// tests/drivers/own_operations.cpp: the host driver with a vendor's kernels for sums, products and
// negatives of float32, beside its compiler.
//
// OWN_OPERATIONS_SLOW says whose kernels take 5 ms longer: "vendor" the vendor's, "generated" those
// that its compiler made.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "graft/driver.h"
#include "graft/extensions.h"
#include "tests/drivers/base_driver.h"

namespace {

graft_driver_table base;

void be_slow(std::string_view whose) {
  const char* const slow = std::getenv("OWN_OPERATIONS_SLOW");
  if (slow != nullptr && whose == slow) std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// Inputs, then the row's own scalars.
using Formula = float (*)(const float* x, const float* s);
struct Row {
  const char* name;
  Formula formula;
};
constexpr Row kRows[] = {
    {"add", [](const float* x, const float* s) { return x[0] + s[0] * x[1]; }},
    {"plain_add", [](const float* x, const float*) { return x[0] + x[1]; }},
    {"mul", [](const float* x, const float*) { return x[0] * x[1]; }},
    {"neg", [](const float* x, const float*) { return -x[0]; }},
};

const Row* find(const char* name) {
  const auto found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return std::string_view(name) == row.name;
  });
  return found == std::end(kRows) ? nullptr : found;
}

struct Plan {
  Formula formula;
  std::vector<graft_tensor> tensors;  // the output first
};

graft_status operation_known(graft_device, const char* name) {
  return find(name) != nullptr ? GRAFT_OK : GRAFT_UNSUPPORTED;
}

graft_status operation_plan(graft_device, const graft_operation* operation, graft_plan_needs*,
                            graft_plan* out_plan) {
  const Row* const row = find(operation->name);
  if (row == nullptr || operation->integers[0] != GRAFT_FLOAT32) return GRAFT_UNSUPPORTED;
  auto plan = std::make_unique<Plan>();
  plan->formula = row->formula;
  plan->tensors.assign(operation->tensors, operation->tensors + operation->tensor_count);
  for (const graft_tensor& tensor : plan->tensors) {
    const bool fits = tensor.dtype == GRAFT_FLOAT32 || tensor.dtype == GRAFT_NO_TENSOR;
    if (!fits) return GRAFT_UNSUPPORTED;
  }
  for (uint32_t i = 0; i < operation->scalar_count; ++i) {
    if (operation->scalar_dtypes[i] != GRAFT_FLOAT32) return GRAFT_UNSUPPORTED;
  }
  *out_plan = reinterpret_cast<graft_plan>(plan.release());
  return GRAFT_OK;
}

// Element number `at`, in row-major order of the output.
float* element(const graft_tensor& tensor, graft_address memory, int64_t at) {
  auto* place = reinterpret_cast<float*>(memory);
  for (uint32_t d = tensor.rank; d-- > 0;) {
    place += at % tensor.sizes[d] * tensor.strides[d];
    at /= tensor.sizes[d];
  }
  return place;
}

graft_status operation_execute(graft_stream stream, graft_plan given, const graft_launch* launch) {
  if (const graft_status status = base.stream_synchronize(stream); status != GRAFT_OK) {
    return status;
  }
  be_slow("vendor");
  const auto& [formula, tensors] = *reinterpret_cast<const Plan*>(given);
  const graft_argument* const scalars = launch->arguments + tensors.size();
  const size_t inputs = tensors.size() - 1;
  size_t numbers = 0;  // inputs that are numbers
  float x[2] = {}, s[4] = {};
  for (size_t i = 0; i < inputs; ++i) {
    if (tensors[i + 1].dtype == GRAFT_NO_TENSOR) std::memcpy(&x[i], &scalars[numbers++].value, 4);
  }
  const size_t own = launch->argument_count - 1 - tensors.size() - numbers;
  for (size_t i = 0; i < own; ++i) std::memcpy(&s[i], &scalars[numbers + i].value, 4);
  int64_t count = 1;
  for (uint32_t d = 0; d < tensors[0].rank; ++d) count *= tensors[0].sizes[d];
  for (int64_t at = 0; at < count; ++at) {
    for (size_t i = 0; i < inputs; ++i) {
      const graft_tensor& input = tensors[i + 1];
      if (input.dtype != GRAFT_NO_TENSOR) {
        x[i] = *element(input, launch->arguments[i + 1].value, at);
      }
    }
    *element(tensors[0], launch->arguments[0].value, at) = formula(x, s);
  }
  return GRAFT_OK;
}

graft_status plan_destroy(graft_plan plan) {
  delete reinterpret_cast<Plan*>(plan);
  return GRAFT_OK;
}

graft_status launch_slowly(graft_stream stream, graft_kernel kernel, const graft_launch* launch) {
  be_slow("generated");
  return base.kernel_launch(stream, kernel, launch);
}

// Without graphs, whose kernels pass by launch_slowly.
graft_status extension(const char* name, uint32_t version, const void** out_table) {
  static const graft_ops_table operations = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS),
                                             operation_known, operation_plan, operation_execute,
                                             plan_destroy};
  if (std::strcmp(name, "graft.graphs") == 0) return GRAFT_NOT_FOUND;
  if (std::strcmp(name, "graft.ops") != 0) return base.extension(name, version, out_table);
  *out_table = &operations;
  return GRAFT_OK;
}

}  // namespace

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  setenv("GRAFT_HOST_PROTECT", "0", 1);  // the operations read device memory
  if (const graft_status status = load_base(GRAFT_BASE_DRIVER, &base); status != GRAFT_OK)
    return status;
  graft_driver_table mine = base;
  mine.name = "own_operations";
  mine.extension = extension;
  mine.kernel_launch = launch_slowly;
  return graft_driver_fill(table, &mine);
}
