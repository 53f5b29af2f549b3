/* kernels/kernel.c: finds kernels, and reads the layouts and numbers of their calls. */
#include "kernel.h"

#include <string.h>

const kernel* kernel_named(const char* name) {
  const kernel* const lists[] = {elementwise_kernels, matrix_kernels};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
    for (const kernel* one = lists[i]; one->name != NULL; ++one) {
      if (strcmp(one->name, name) == 0) return one;
    }
  }
  return NULL;
}

bool kernel_takes(const kernel* self, const graft_operation* operation, kernel_call* out_call) {
  if (operation->tensor_count > kMaxTensors || operation->scalar_count > kMaxScalars ||
      operation->integer_count > kMaxIntegers || operation->number_count > kMaxNumbers) {
    return false;
  }
  for (uint32_t i = 0; i < operation->tensor_count; ++i) {
    const uint32_t dtype = operation->tensors[i].dtype;
    if (dtype != GRAFT_FLOAT32 && dtype != GRAFT_NO_TENSOR) return false;
  }
  if (self->takes != NULL && !self->takes(operation)) return false;
  memset(out_call, 0, sizeof *out_call);
  out_call->tensor_count = operation->tensor_count;
  out_call->scalar_count = operation->scalar_count;
  for (uint32_t i = 0; i < operation->tensor_count; ++i) {
    out_call->tensors[i] = operation->tensors[i];
  }
  for (uint32_t i = 0; i < operation->scalar_count; ++i) {
    out_call->scalar_dtypes[i] = operation->scalar_dtypes[i];
  }
  for (uint32_t i = 0; i < operation->integer_count; ++i) {
    out_call->integers[i] = operation->integers[i];
  }
  for (uint32_t i = 0; i < operation->number_count; ++i) {
    out_call->numbers[i] = operation->numbers[i];
  }
  return true;
}

int64_t tensor_place(const graft_tensor* tensor, int64_t at) {
  int64_t place = 0;
  for (uint32_t d = tensor->rank; d-- > 0;) {
    place += at % tensor->sizes[d] * tensor->strides[d];
    at /= tensor->sizes[d];
  }
  return place;
}

int64_t tensor_count(const graft_tensor* tensor) {
  int64_t count = 1;
  for (uint32_t d = 0; d < tensor->rank; ++d) count *= tensor->sizes[d];
  return count;
}

bool tensor_given(const kernel_call* call, uint32_t i) {
  return call->tensors[i].dtype != GRAFT_NO_TENSOR;
}

float scalar_value(const kernel_call* call, const chip_word* words, uint32_t i) {
  const uint64_t bits = words[1 + call->tensor_count + i].bits;
  float single = 0;
  double wide = 0;
  switch (call->scalar_dtypes[i]) {
    case GRAFT_FLOAT32:
      memcpy(&single, &bits, sizeof single);
      return single;
    case GRAFT_FLOAT64:
      memcpy(&wide, &bits, sizeof wide);
      return (float)wide;
    default:
      return (float)(int64_t)bits;
  }
}
