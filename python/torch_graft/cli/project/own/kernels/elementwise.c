/* kernels/elementwise.c: sums, products, activations, copies and fills, in float32. */
#include <math.h>

#include "kernel.h"

/* x: the inputs, s: the scalars. A number that takes an input's place stands in x. */
#define ROWS(ROW)                            \
  ROW(positive, x[0])                        \
  ROW(neg, -x[0])                            \
  ROW(sqrt, sqrtf(x[0]))                     \
  ROW(relu, x[0] <= 0 ? 0 : x[0])            \
  ROW(clamp_min, x[0] < s[0] ? s[0] : x[0])  \
  ROW(threshold, x[0] <= s[0] ? s[1] : x[1]) \
  ROW(add, x[0] + s[0] * x[1])               \
  ROW(sub, x[0] - s[0] * x[1])               \
  ROW(plain_add, x[0] + x[1])                \
  ROW(plain_sub, x[0] - x[1])                \
  ROW(mul, x[0] * x[1])                      \
  ROW(div, x[0] / x[1])

typedef float (*formula)(const float* x, const float* s);

static void run_row(const chip_word* words, formula of) {
  const kernel_call* call = words[0].address;
  const uint32_t inputs = call->tensor_count - 1;
  float x[kMaxTensors] = {0}, s[kMaxScalars] = {0};
  uint32_t numbers = 0;
  for (uint32_t i = 0; i < inputs; ++i) {
    if (!tensor_given(call, i + 1)) x[i] = scalar_value(call, words, numbers++);
  }
  for (uint32_t i = numbers; i < call->scalar_count; ++i) {
    s[i - numbers] = scalar_value(call, words, i);
  }
  float* output = words[1].address;
  for (int64_t at = 0, count = tensor_count(&call->tensors[0]); at < count; ++at) {
    for (uint32_t i = 0; i < inputs; ++i) {
      const float* input = words[2 + i].address;
      if (tensor_given(call, i + 1)) x[i] = input[tensor_place(&call->tensors[i + 1], at)];
    }
    output[tensor_place(&call->tensors[0], at)] = of(x, s);
  }
}

#define ROW(name, value)                                                                  \
  static float value_of_##name(const float* x, const float* s) { return (void)s, value; } \
  static void run_##name(const chip_word* words, uint64_t begin, uint64_t end) {          \
    (void)begin, (void)end;                                                               \
    run_row(words, value_of_##name);                                                      \
  }
ROWS(ROW)
#undef ROW

static void run_copy(const chip_word* words, uint64_t begin, uint64_t end) {
  (void)begin, (void)end;
  const kernel_call* call = words[0].address;
  float* to = words[1].address;
  const float* from = words[2].address;
  for (int64_t at = 0, count = tensor_count(&call->tensors[0]); at < count; ++at) {
    to[tensor_place(&call->tensors[0], at)] = from[tensor_place(&call->tensors[1], at)];
  }
}

static void run_fill(const chip_word* words, uint64_t begin, uint64_t end) {
  (void)begin, (void)end;
  const kernel_call* call = words[0].address;
  float* to = words[1].address;
  const float value = scalar_value(call, words, 0);
  for (int64_t at = 0, count = tensor_count(&call->tensors[0]); at < count; ++at) {
    to[tensor_place(&call->tensors[0], at)] = value;
  }
}

/* The row's only integer is the dtype that it computes in. */
static bool takes_row(const graft_operation* operation) {
  return operation->integers[0] == GRAFT_FLOAT32;
}

/* The integers say whether the copy conjugates or negates. */
static bool takes_copy(const graft_operation* operation) {
  return operation->integers[0] == 0 && operation->integers[1] == 0;
}

#define ROW(name, value) {#name, run_##name, takes_row},
const kernel elementwise_kernels[] = {
    ROWS(ROW){"copy", run_copy, takes_copy}, {"fill", run_fill, NULL}, {NULL, NULL, NULL}};
