/* tests/python/deployment/deployed_program.c: runs a model of one float32 input [rows, 3] filled
 * with 1, 2, 3, ... and prints the first result's elements. */
#include <graft/deploy.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(void) {
  fprintf(stderr, "%s\n", graft_model_message());
  return 1;
}

int main(int count, char** words) {
  if (count != 3) return 2;
  graft_model model = NULL;
  if (graft_model_open(words[1], 0, &model) != GRAFT_OK) return failed();
  const int64_t rows = atoll(words[2]);
  float* x = malloc(sizeof(float) * 3 * (size_t)rows);
  for (int64_t i = 0; i < 3 * rows; ++i) x[i] = (float)(i + 1);
  graft_array input = {sizeof(input), GRAFT_FLOAT32, 2, {rows, 3}, {3, 1}, x};
  graft_results results = NULL;
  if (graft_model_run(model, &input, 1, &results) != GRAFT_OK) return failed();
  free(x);
  graft_array output = {0};
  output.struct_size = sizeof output;
  if (graft_results_get(results, 0, &output) != GRAFT_OK) return failed();
  int64_t elements = 1;
  for (int d = 0; d < output.rank; ++d) elements *= output.sizes[d];
  for (int64_t i = 0; i < elements; ++i) printf("%.9g\n", ((const float*)output.data)[i]);
  graft_results_free(results);
  graft_model_close(model);
  return 0;
}
