// src/deploy/api/queues.cpp: the functions of graft/deploy.h for queues and memory of devices.
#include <fmt/format.h>

#include "deploy/api/entry.h"
#include "deploy/api/objects.h"
#include "deploy/host_tensor.h"
#include "runtime/driver/dtype.h"

namespace graft::deploy {
namespace {

// The caller's dtype and sizes. Throws Error INVALID_ARGUMENT where these are none.
TensorView form_of(const graft_array& given) {
  const TensorView view = view_of(given, "array", 0);
  uint64_t bytes = given.dtype > GRAFT_COMPLEX128 ? 0 : size_of(view.dtype);
  bool fits = bytes > 0;
  for (int d = 0; fits && d < view.rank; ++d) {
    fits = view.sizes[d] >= 0 &&
           !__builtin_mul_overflow(bytes, static_cast<uint64_t>(view.sizes[d]), &bytes) &&
           bytes <= INT64_MAX;
  }
  if (fits) return row_major(view);
  throw Error(GRAFT_INVALID_ARGUMENT,
              fmt::format("an array of dtype number {} and {} sizes: expected a graft_dtype, sizes "
                          "that are not negative, and as many bytes as a device has",
                          given.dtype, given.rank));
}

}  // namespace
}  // namespace graft::deploy

namespace deploy = graft::deploy;

graft_status graft_queue_create(uint32_t device, graft_queue* out_queue) {
  return deploy::guarded({{out_queue, "a place for the queue"}}, [&] {
    *out_queue = new graft_queue_s{deploy::Queue(deploy::device_at(device))};
  });
}

graft_status graft_queue_wait(graft_queue queue, graft_queue other) {
  return deploy::guarded({{queue != nullptr && other != nullptr, "two queues"}},
                         [&] { queue->queue.wait(other->queue); });
}

graft_status graft_queue_synchronize(graft_queue queue) {
  return deploy::guarded({{queue, "a queue"}}, [&] { queue->queue.synchronize(); });
}

graft_status graft_queue_query(graft_queue queue) {
  bool done = true;
  const graft_status status =
      deploy::guarded({{queue, "a queue"}}, [&] { done = queue->queue.query(); });
  return done ? status : GRAFT_BUSY;
}

void graft_queue_destroy(graft_queue queue) { delete queue; }

graft_status graft_device_array_create(graft_queue queue, const graft_array* form,
                                       graft_device_array* out_array) {
  const auto create = [&] {
    *out_array = new graft_device_array_s{queue->queue.allocate(deploy::form_of(*form))};
  };
  return deploy::guarded(
      {{queue, "a queue"}, {form, "a graft_array"}, {out_array, "a place for the array"}}, create);
}

graft_status graft_device_array_describe(graft_device_array array, graft_array* out_array) {
  return deploy::guarded({{array, "an array"}, {out_array, "a graft_array"}},
                         [&] { deploy::give_view(array->array.view(), out_array); });
}

graft_status graft_device_array_write(graft_device_array array, graft_queue queue,
                                      const graft_array* from) {
  return deploy::guarded({{array, "an array"}, {queue, "a queue"}, {from, "a graft_array"}}, [&] {
    queue->queue.write(array->array, deploy::view_of(*from, "array", 0));
  });
}

graft_status graft_device_array_read(graft_device_array array, graft_queue queue,
                                     const graft_array* to) {
  return deploy::guarded({{array, "an array"}, {queue, "a queue"}, {to, "a graft_array"}}, [&] {
    queue->queue.read(array->array, deploy::view_of(*to, "array", 0));
  });
}

void graft_device_array_free(graft_device_array array) { delete array; }
