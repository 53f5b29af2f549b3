/* include/graft/deploy.h: runs models that torch_graft.deploy() wrote, without Python and PyTorch.
 *
 *   graft_model model;
 *   if (graft_model_open("model.graft", 0, &model) != GRAFT_OK) puts(graft_model_message());
 *   graft_results results;
 *   graft_model_run(model, inputs, 1, &results);
 *   graft_results_get(results, 0, &array);
 *
 * Link libgraft.so. Any thread may call any function; calls of one model take turns. Nothing throws
 * or aborts, and a failed call leaves its out_ parameters untouched. Each handle is given back
 * exactly once; names live as long as their model, elements as long as their results.
 * Structs begin with struct_size, set by the caller to the size that it knows. */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DEPLOY_H_
#define GRAFT_DEPLOY_H_

#include "graft/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Dimensions of a tensor, at most. */
#define GRAFT_ARRAY_RANK 16

typedef struct graft_model_s* graft_model;
typedef struct graft_results_s* graft_results;
typedef struct graft_queue_s* graft_queue;
typedef struct graft_device_array_s* graft_device_array;

/* A tensor in host memory. */
typedef struct graft_array {
  uint32_t struct_size;
  uint16_t dtype; /* graft_dtype */
  uint16_t rank;
  int64_t sizes[GRAFT_ARRAY_RANK];
  int64_t strides[GRAFT_ARRAY_RANK]; /* in elements, not negative */
  void* data;                        /* the first element */
} graft_array;

/* What a model takes or gives. */
typedef struct graft_model_value {
  uint32_t struct_size;
  uint16_t dtype; /* graft_dtype */
  uint16_t rank;
  int64_t sizes[GRAFT_ARRAY_RANK]; /* -1: varies from call to call */
  const char* name;
} graft_model_value;

/* An input of a queued call: one of the two, the other is null. Does not grow. */
typedef struct graft_queue_input {
  const graft_array* host; /* in any strides, read during the call */
  graft_device_array device;
} graft_queue_input;

/* The calling thread's last failure: what was given, what was expected, what to do. */
GRAFT_DRIVER_EXPORT const char* graft_model_message(void);

/* Names a driver to load, by an absolute path, before devices are asked for. Drivers in the folder
 * "drivers" beside libgraft's folder need no name. */
GRAFT_DRIVER_EXPORT graft_status graft_model_add_driver(const char* path);

/* The number of devices. */
GRAFT_DRIVER_EXPORT uint32_t graft_model_devices(void);

/* Opens the file on a device, counted from 0. NOT_FOUND without the file, INVALID_ARGUMENT for a
 * damaged one or a device that does not exist, VERSION_MISMATCH for another major of the format,
 * UNSUPPORTED for what the device cannot compute. */
GRAFT_DRIVER_EXPORT graft_status graft_model_open(const char* path, uint32_t device,
                                                  graft_model* out_model);

/* Opens the model on a device, runs it once on zeros, and writes the file anew with the kernels of
 * this process, so that a device of the same kind compiles nothing. If it fails, with IO where the
 * file cannot be written, the file is what it was. */
GRAFT_DRIVER_EXPORT graft_status graft_model_prepare(const char* path, uint32_t device);

/* Waits for the model's commands. model may be null. */
GRAFT_DRIVER_EXPORT void graft_model_close(graft_model model);

/* What the model takes and gives, by index; NOT_FOUND past the last one. */
GRAFT_DRIVER_EXPORT graft_status graft_model_input(graft_model model, uint32_t index,
                                                   graft_model_value* out_value);
GRAFT_DRIVER_EXPORT graft_status graft_model_output(graft_model model, uint32_t index,
                                                    graft_model_value* out_value);

/* Runs the model and waits. inputs: by index, in any strides. INVALID_ARGUMENT for inputs that the
 * model does not take; the model stays usable after every failure but a lost device. */
GRAFT_DRIVER_EXPORT graft_status graft_model_run(graft_model model, const graft_array* inputs,
                                                 uint32_t count, graft_results* out_results);

/* The state: tensors of the file that calls write, a cache say, and those that programs may set, a
 * learning rate say. It begins as the file has it and lasts as long as the model; a failed run may
 * leave it partly written. By index: what it is, and NOT_FOUND past the last one; its values now,
 * as results by the same index; new values for one of them, INVALID_ARGUMENT if they do not fit;
 * and all of it as the file has it. */
GRAFT_DRIVER_EXPORT graft_status graft_model_state(graft_model model, uint32_t index,
                                                   graft_model_value* out_value);
GRAFT_DRIVER_EXPORT graft_status graft_model_read_state(graft_model model,
                                                        graft_results* out_results);
GRAFT_DRIVER_EXPORT graft_status graft_model_write_state(graft_model model, uint32_t index,
                                                         const graft_array* value);
GRAFT_DRIVER_EXPORT graft_status graft_model_reset(graft_model model);

/* A result in host memory, row-major; NOT_FOUND past the last one. Of a queued call the first call
 * for each waits, copies it, and returns what failed of the call. */
GRAFT_DRIVER_EXPORT graft_status graft_results_get(graft_results results, uint32_t index,
                                                   graft_array* out_array);

/* results may be null. */
GRAFT_DRIVER_EXPORT void graft_results_free(graft_results results);

/* Random numbers of later runs are those of a generator with this seed; 0 at first. */
GRAFT_DRIVER_EXPORT graft_status graft_model_seed(graft_model model, uint64_t seed);

/* Calls that do not wait
 *
 * A queue is an order of commands on a device: copies, and calls of any of its models. Commands of
 * two queues run in any order, unless one queue waits for the other. What fails after its function
 * returned OK is reported once by the queue's next synchronize, query or read, with the model's
 * name; of several failures the first. All calls of a model that may not be done then report it. */
GRAFT_DRIVER_EXPORT graft_status graft_queue_create(uint32_t device, graft_queue* out_queue);

/* Queues a call; may wait where sizes are new to the model. The results are on the device until
 * the host asks for them. Inputs on the device are those of the queue's device, row-major, and may
 * be freed at once; a queue that writes them waits for this one first. Fails as graft_model_run. */
GRAFT_DRIVER_EXPORT graft_status graft_model_enqueue(graft_model model, graft_queue queue,
                                                     const graft_queue_input* inputs,
                                                     uint32_t count, graft_results* out_results);

/* A result of a queued call on the device, which shares the memory of results and may outlive them;
 * does not wait. NOT_FOUND past the last one, INVALID_ARGUMENT for results of graft_model_run. */
GRAFT_DRIVER_EXPORT graft_status graft_results_on_device(graft_results results, uint32_t index,
                                                         graft_device_array* out_array);

/* Later commands of queue run after those that other has by now. Both are of one device. */
GRAFT_DRIVER_EXPORT graft_status graft_queue_wait(graft_queue queue, graft_queue other);

/* Waits for the commands so far, and for other calls that their models have by then. */
GRAFT_DRIVER_EXPORT graft_status graft_queue_synchronize(graft_queue queue);

/* BUSY while graft_queue_synchronize would wait, else what that returns. Does not wait. */
GRAFT_DRIVER_EXPORT graft_status graft_queue_query(graft_queue queue);

/* Waits for the commands. queue may be null. */
GRAFT_DRIVER_EXPORT void graft_queue_destroy(graft_queue queue);

/* Memory on the queue's device for later commands of the queue: an array of form's dtype and sizes,
 * row-major. form's strides and data mean nothing; the elements are undefined. */
GRAFT_DRIVER_EXPORT graft_status graft_device_array_create(graft_queue queue,
                                                           const graft_array* form,
                                                           graft_device_array* out_array);

/* data: the address on the device, which only commands can use. */
GRAFT_DRIVER_EXPORT graft_status graft_device_array_describe(graft_device_array array,
                                                             graft_array* out_array);

/* Queue a copy of host memory with the array's dtype and sizes. from: in any strides, read during
 * the call. to: row-major, and in place until the command is done. */
GRAFT_DRIVER_EXPORT graft_status graft_device_array_write(graft_device_array array,
                                                          graft_queue queue,
                                                          const graft_array* from);
GRAFT_DRIVER_EXPORT graft_status graft_device_array_read(graft_device_array array,
                                                         graft_queue queue, const graft_array* to);

/* Does not wait; the memory goes back when commands are done with it. array may be null. */
GRAFT_DRIVER_EXPORT void graft_device_array_free(graft_device_array array);

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_DEPLOY_H_ */
