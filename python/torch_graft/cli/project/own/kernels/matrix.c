/* kernels/matrix.c: matrix products, and sums over dimensions, in float32. */
#include "kernel.h"

enum { kColumns = 64 }; /* of one tile */

typedef struct matrix {
  float* start;
  int64_t row, column; /* strides */
} matrix;

static matrix matrix_of(const kernel_call* call, const chip_word* words, uint32_t i,
                        int64_t batch) {
  const graft_tensor* tensor = &call->tensors[i];
  if (!tensor_given(call, i)) return (matrix){NULL, 0, 0};
  const uint32_t row = tensor->rank - 2;
  float* start = words[1 + i].address;
  if (row == 1) start += batch * tensor->strides[0];
  return (matrix){start, tensor->strides[row], tensor->strides[row + 1]};
}

static void multiply(const kernel_call* call, const chip_word* words, int64_t batch) {
  const graft_tensor *output = &call->tensors[0], *left = &call->tensors[1];
  const int64_t m = output->sizes[output->rank - 2], n = output->sizes[output->rank - 1];
  const int64_t k = left->sizes[left->rank - 1];
  const matrix c = matrix_of(call, words, 0, batch), a = matrix_of(call, words, 1, batch);
  const matrix b = matrix_of(call, words, 2, batch), addend = matrix_of(call, words, 3, batch);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t first = 0; first < n; first += kColumns) {
      const int64_t count = n - first < kColumns ? n - first : kColumns;
      double sums[kColumns] = {0};
      for (int64_t p = 0; p < k; ++p) {
        const double factor = a.start[i * a.row + p * a.column];
        const float* from = b.start + p * b.row + first * b.column;
        for (int64_t j = 0; j < count; ++j) sums[j] += factor * from[j * b.column];
      }
      for (int64_t j = 0; j < count; ++j) {
        double value = call->numbers[0] * sums[j];
        if (addend.start != NULL) {
          value += call->numbers[1] * addend.start[i * addend.row + (first + j) * addend.column];
        }
        if (call->integers[0] != 0 && value < 0) value = 0;
        c.start[i * c.row + (first + j) * c.column] = (float)value;
      }
    }
  }
}

/* matmul: output, a, b, addend; relu; alpha, beta. */
static void run_matmul(const chip_word* words, uint64_t begin, uint64_t end) {
  (void)begin, (void)end;
  const kernel_call* call = words[0].address;
  const int64_t batches = call->tensors[0].rank == 3 ? call->tensors[0].sizes[0] : 1;
  for (int64_t batch = 0; batch < batches; ++batch) multiply(call, words, batch);
}

/* Some dimensions of a sum: the output's stride is 0 where the input is summed. */
typedef struct dimensions {
  uint32_t count, all[GRAFT_MAX_RANK];
  int64_t elements;
} dimensions;

static dimensions dimensions_of(const graft_tensor* output, bool summed) {
  dimensions found = {0, {0}, 1};
  for (uint32_t d = 0; d < output->rank; ++d) {
    if ((output->strides[d] == 0) != summed) continue;
    found.all[found.count++] = d;
    found.elements *= output->sizes[d];
  }
  return found;
}

static int64_t place_of(const graft_tensor* tensor, const dimensions* along, int64_t at) {
  int64_t place = 0;
  for (uint32_t i = along->count; i-- > 0;) {
    const uint32_t d = along->all[i];
    place += at % tensor->sizes[d] * tensor->strides[d];
    at /= tensor->sizes[d];
  }
  return place;
}

/* reduce_sum: output, input. */
static void run_sum(const chip_word* words, uint64_t begin, uint64_t end) {
  (void)begin, (void)end;
  const kernel_call* call = words[0].address;
  const graft_tensor *output = &call->tensors[0], *input = &call->tensors[1];
  const dimensions kept = dimensions_of(output, false), summed = dimensions_of(output, true);
  float* to = words[1].address;
  for (int64_t i = 0; i < kept.elements; ++i) {
    const float* from = words[2].address;
    from += place_of(input, &kept, i);
    double sum = 0;
    for (int64_t j = 0; j < summed.elements; ++j) sum += from[place_of(input, &summed, j)];
    to[place_of(output, &kept, i)] = (float)sum;
  }
}

const kernel matrix_kernels[] = {
    {"matmul", run_matmul, NULL}, {"reduce_sum", run_sum, NULL}, {NULL, NULL, NULL}};
