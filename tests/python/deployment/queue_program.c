/* tests/python/deployment/queue_program.c: runs a model of one float32 input [4, 3] and one float32
 * result [4, 3] twice on a queue, the second time on the first result, and prints what comes out.
 */
#include <graft/deploy.h>
#include <stdio.h>
#include <string.h>

static int failed(void) {
  fprintf(stderr, "%s\n", graft_model_message());
  return 1;
}

static int refuses(graft_model model, graft_queue queue, graft_device_array x) {
  const graft_queue_input none = {NULL, NULL};
  graft_array small = {0};
  graft_results results = NULL;
  graft_device_array array = NULL;
  small.struct_size = sizeof small;
  small.rank = 1;
  small.sizes[0] = -1;
  small.strides[0] = 1;
  if (graft_model_enqueue(model, queue, &none, 1, &results) != GRAFT_INVALID_ARGUMENT) return 0;
  if (strstr(graft_model_message(), "set one of host and device") == NULL) return 0;
  if (graft_model_enqueue(model, NULL, &none, 1, &results) != GRAFT_INVALID_ARGUMENT) return 0;
  if (graft_device_array_create(queue, &small, &array) != GRAFT_INVALID_ARGUMENT) return 0;
  small.sizes[0] = 12;
  if (graft_device_array_write(x, queue, &small) != GRAFT_INVALID_ARGUMENT) return 0;
  if (graft_queue_create(99, &queue) != GRAFT_INVALID_ARGUMENT) return 0;
  return results == NULL && array == NULL;
}

int main(int count, char** words) {
  graft_model model = NULL;
  graft_queue queue = NULL, other = NULL;
  if (count != 2) return 2;
  if (graft_model_open(words[1], 0, &model) != GRAFT_OK) return failed();
  if (graft_queue_create(0, &queue) != GRAFT_OK) return failed();
  if (graft_queue_create(0, &other) != GRAFT_OK) return failed();

  float numbers[12], copied[12];
  for (int i = 0; i < 12; ++i) numbers[i] = (float)(i + 1);
  graft_array host = {sizeof(host), GRAFT_FLOAT32, 2, {4, 3}, {3, 1}, numbers};
  graft_device_array x = NULL, middle = NULL;
  if (graft_device_array_create(queue, &host, &x) != GRAFT_OK) return failed();
  if (graft_device_array_write(x, queue, &host) != GRAFT_OK) return failed();
  memset(numbers, 0, sizeof numbers);
  if (!refuses(model, queue, x)) return failed();

  graft_queue_input input = {NULL, x};
  graft_results first = NULL, second = NULL;
  if (graft_model_enqueue(model, queue, &input, 1, &first) != GRAFT_OK) return failed();
  graft_device_array_free(x);
  if (graft_results_on_device(first, 0, &middle) != GRAFT_OK) return failed();
  if (graft_results_on_device(first, 7, &middle) != GRAFT_NOT_FOUND) return 3;
  graft_results_free(first);
  if (graft_queue_wait(other, queue) != GRAFT_OK) return failed();
  input.device = middle;
  if (graft_model_enqueue(model, other, &input, 1, &second) != GRAFT_OK) return failed();

  host.data = copied;
  if (graft_device_array_read(middle, queue, &host) != GRAFT_OK) return failed();
  if (graft_queue_synchronize(queue) != GRAFT_OK) return failed();
  graft_status status;
  while ((status = graft_queue_query(other)) == GRAFT_BUSY) {
  }
  if (status != GRAFT_OK) return failed();
  graft_model_close(model);

  graft_array output = {0};
  output.struct_size = sizeof output;
  if (graft_device_array_describe(middle, &output) != GRAFT_OK) return failed();
  if (output.rank != 2 || output.sizes[0] != 4 || output.sizes[1] != 3) return 4;
  if (graft_results_get(second, 0, &output) != GRAFT_OK) return failed();
  for (int i = 0; i < 12; ++i) printf("%.9g %.9g\n", copied[i], ((const float*)output.data)[i]);
  graft_results_free(second);
  graft_device_array_free(middle);
  graft_queue_destroy(other);
  graft_queue_destroy(queue);
  return 0;
}
