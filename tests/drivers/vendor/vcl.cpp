// tests/drivers/vendor/vcl.cpp: the made-up library: the host driver does its work.
#include "vcl.h"

#include <dlfcn.h>

#include <cstdlib>

#include "graft/extensions.h"

namespace {

const graft_collectives_table& table() {
  static const graft_collectives_table* const found = [] {
    void* library = dlopen(GRAFT_BASE_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::abort();
    const auto query =
        reinterpret_cast<graft_driver_query_function>(dlsym(library, "graft_driver_query"));
    graft_driver_table driver{};
    driver.abi_major = GRAFT_ABI_MAJOR;
    driver.abi_minor = GRAFT_ABI_MINOR;
    driver.slot_count = GRAFT_SLOT_COUNT;
    const void* extension = nullptr;
    if (query(&driver) != GRAFT_OK) std::abort();
    if (driver.extension("graft.collectives", 1, &extension) != GRAFT_OK) std::abort();
    return static_cast<const graft_collectives_table*>(extension);
  }();
  return *found;
}

vcl_result result(graft_status status) {
  switch (status) {
    case GRAFT_OK:
      return VCL_SUCCESS;
    case GRAFT_TIMEOUT:
      return VCL_TIMEOUT;
    case GRAFT_INVALID_ARGUMENT:
      return VCL_INVALID;
    case GRAFT_UNSUPPORTED:
      return VCL_UNREACHABLE;
    default:
      return VCL_FAILED;
  }
}

uint32_t dtype(vcl_type type) {
  constexpr uint32_t kTypes[] = {GRAFT_INT32, GRAFT_INT64, GRAFT_FLOAT32, GRAFT_FLOAT64};
  return kTypes[type];
}

uint32_t reduction(vcl_operation operation) {
  constexpr uint32_t kReductions[] = {GRAFT_REDUCE_SUM, GRAFT_REDUCE_PRODUCT, GRAFT_REDUCE_MIN,
                                      GRAFT_REDUCE_MAX, GRAFT_REDUCE_AVERAGE};
  return kReductions[operation];
}

graft_group group(vcl_communicator* communicator) {
  return reinterpret_cast<graft_group>(communicator);
}

graft_stream stream(vcl_queue queue) { return static_cast<graft_stream>(queue); }

}  // namespace

vcl_result vcl_unique_id(void* device, char id[128]) {
  return result(
      table().group_id(static_cast<graft_device>(device), reinterpret_cast<uint8_t*>(id)));
}

vcl_result vcl_init(void* device, const char id[128], int rank, int ranks, double seconds,
                    vcl_communicator** out) {
  graft_group made = nullptr;
  const graft_status status =
      table().group_create(static_cast<graft_device>(device), reinterpret_cast<const uint8_t*>(id),
                           uint32_t(rank), uint32_t(ranks), int64_t(seconds * 1e9), &made);
  if (status == GRAFT_OK) *out = reinterpret_cast<vcl_communicator*>(made);
  return result(status);
}

vcl_result vcl_abort(vcl_communicator* c) { return result(table().group_abort(group(c))); }
vcl_result vcl_free(vcl_communicator* c) { return result(table().group_destroy(group(c))); }

vcl_result vcl_all_reduce(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                          vcl_operation operation, vcl_communicator* c, vcl_queue queue,
                          uint32_t label) {
  return result(table().all_reduce(stream(queue), group(c), send, receive, count, dtype(type),
                                   reduction(operation), label));
}

vcl_result vcl_reduce(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                      vcl_operation operation, int root, vcl_communicator* c, vcl_queue queue,
                      uint32_t label) {
  return result(table().reduce(stream(queue), group(c), send, receive, count, dtype(type),
                               reduction(operation), uint32_t(root), label));
}

vcl_result vcl_broadcast(uint64_t send, uint64_t receive, size_t count, vcl_type type, int root,
                         vcl_communicator* c, vcl_queue queue, uint32_t label) {
  return result(table().broadcast(stream(queue), group(c), send, receive, count, dtype(type),
                                  uint32_t(root), label));
}

vcl_result vcl_all_gather(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                          vcl_communicator* c, vcl_queue queue, uint32_t label) {
  return result(
      table().all_gather(stream(queue), group(c), send, receive, count, dtype(type), label));
}

vcl_result vcl_reduce_scatter(uint64_t send, uint64_t receive, size_t count, vcl_type type,
                              vcl_operation operation, vcl_communicator* c, vcl_queue queue,
                              uint32_t label) {
  return result(table().reduce_scatter(stream(queue), group(c), send, receive, count, dtype(type),
                                       reduction(operation), label));
}

vcl_result vcl_send(uint64_t address, size_t count, vcl_type type, int peer, vcl_communicator* c,
                    vcl_queue queue, uint32_t label) {
  return result(
      table().send(stream(queue), group(c), address, count, dtype(type), uint32_t(peer), label));
}

vcl_result vcl_receive(uint64_t address, size_t count, vcl_type type, int peer, vcl_communicator* c,
                       vcl_queue queue, uint32_t label) {
  return result(
      table().receive(stream(queue), group(c), address, count, dtype(type), uint32_t(peer), label));
}

vcl_result vcl_group_start(vcl_communicator* c) { return result(table().batch_begin(group(c))); }
vcl_result vcl_group_end(vcl_communicator* c) { return result(table().batch_end(group(c))); }
