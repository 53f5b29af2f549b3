// tests/drivers/vendor/driver.cpp: the worked example of docs/drivers/collectives.md: a
// driver that offers its vendor's collective library. The device itself is the host driver's.
#include <dlfcn.h>

#include "graft/driver_slot.h"
#include "graft/extensions.h"
#include "vcl.h"

// What one rank keeps of its group.
struct graft_group_s {
  vcl_communicator* communicator;
};

namespace {

graft_driver_table base;

graft_status status_of(vcl_result result) {
  switch (result) {
    case VCL_SUCCESS:
      return GRAFT_OK;
    case VCL_TIMEOUT:
      return GRAFT_TIMEOUT;
    case VCL_INVALID:
      return GRAFT_INVALID_ARGUMENT;
    case VCL_UNREACHABLE:
      return GRAFT_UNSUPPORTED;
    default:
      return GRAFT_INTERNAL;
  }
}

bool find_type(uint32_t dtype, vcl_type* out) {
  switch (dtype) {
    case GRAFT_INT32:
      return *out = VCL_INT32, true;
    case GRAFT_INT64:
      return *out = VCL_INT64, true;
    case GRAFT_FLOAT32:
      return *out = VCL_FLOAT32, true;
    case GRAFT_FLOAT64:
      return *out = VCL_FLOAT64, true;
    default:
      return false;
  }
}

bool find_operation(uint32_t reduction, vcl_operation* out) {
  switch (reduction) {
    case GRAFT_REDUCE_SUM:
      return *out = VCL_SUM, true;
    case GRAFT_REDUCE_PRODUCT:
      return *out = VCL_PRODUCT, true;
    case GRAFT_REDUCE_MIN:
      return *out = VCL_MIN, true;
    case GRAFT_REDUCE_MAX:
      return *out = VCL_MAX, true;
    case GRAFT_REDUCE_AVERAGE:
      return *out = VCL_MEAN, true;
    default:
      return false;
  }
}

vcl_queue queue_of(graft_stream stream) {
  uint64_t handle = 0;
  base.stream_native_handle(stream, &handle);
  return reinterpret_cast<vcl_queue>(handle);
}

struct CollectiveSlots {
  static graft_status group_id(graft_device device, uint8_t* out_id) {
    return status_of(vcl_unique_id(device, reinterpret_cast<char*>(out_id)));
  }

  static graft_status group_create(graft_device device, const uint8_t* id, uint32_t rank,
                                   uint32_t size, int64_t timeout_ns, graft_group* out_group) {
    vcl_communicator* communicator = nullptr;
    const vcl_result result = vcl_init(device, reinterpret_cast<const char*>(id), int(rank),
                                       int(size), double(timeout_ns) * 1e-9, &communicator);
    if (result == VCL_SUCCESS) *out_group = new graft_group_s{communicator};
    return status_of(result);
  }

  static graft_status group_abort(graft_group group) {
    return status_of(vcl_abort(group->communicator));
  }

  static graft_status group_destroy(graft_group group) {
    const graft_status status = status_of(vcl_free(group->communicator));
    delete group;
    return status;
  }

  static graft_status all_reduce(graft_stream stream, graft_group group, graft_address send,
                                 graft_address receive, uint64_t count, uint32_t dtype,
                                 uint32_t reduction, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    vcl_operation operation = VCL_SUM;
    if (!find_type(dtype, &type) || !find_operation(reduction, &operation)) {
      return GRAFT_UNSUPPORTED;
    }
    return status_of(vcl_all_reduce(send, receive, count, type, operation, group->communicator,
                                    queue_of(stream), tag));
  }

  static graft_status reduce(graft_stream stream, graft_group group, graft_address send,
                             graft_address receive, uint64_t count, uint32_t dtype,
                             uint32_t reduction, uint32_t root, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    vcl_operation operation = VCL_SUM;
    if (!find_type(dtype, &type) || !find_operation(reduction, &operation)) {
      return GRAFT_UNSUPPORTED;
    }
    return status_of(vcl_reduce(send, receive, count, type, operation, int(root),
                                group->communicator, queue_of(stream), tag));
  }

  static graft_status broadcast(graft_stream stream, graft_group group, graft_address send,
                                graft_address receive, uint64_t count, uint32_t dtype,
                                uint32_t root, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    if (!find_type(dtype, &type)) return GRAFT_UNSUPPORTED;
    return status_of(vcl_broadcast(send, receive, count, type, int(root), group->communicator,
                                   queue_of(stream), tag));
  }

  static graft_status all_gather(graft_stream stream, graft_group group, graft_address send,
                                 graft_address receive, uint64_t count, uint32_t dtype,
                                 uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    if (!find_type(dtype, &type)) return GRAFT_UNSUPPORTED;
    return status_of(
        vcl_all_gather(send, receive, count, type, group->communicator, queue_of(stream), tag));
  }

  static graft_status reduce_scatter(graft_stream stream, graft_group group, graft_address send,
                                     graft_address receive, uint64_t count, uint32_t dtype,
                                     uint32_t reduction, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    vcl_operation operation = VCL_SUM;
    if (!find_type(dtype, &type) || !find_operation(reduction, &operation)) {
      return GRAFT_UNSUPPORTED;
    }
    return status_of(vcl_reduce_scatter(send, receive, count, type, operation, group->communicator,
                                        queue_of(stream), tag));
  }

  static graft_status send(graft_stream stream, graft_group group, graft_address address,
                           uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    if (!find_type(dtype, &type)) return GRAFT_UNSUPPORTED;
    return status_of(
        vcl_send(address, count, type, int(peer), group->communicator, queue_of(stream), tag));
  }

  static graft_status receive(graft_stream stream, graft_group group, graft_address address,
                              uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag) {
    vcl_type type = VCL_FLOAT32;
    if (!find_type(dtype, &type)) return GRAFT_UNSUPPORTED;
    return status_of(
        vcl_receive(address, count, type, int(peer), group->communicator, queue_of(stream), tag));
  }

  static graft_status batch_begin(graft_group group) {
    return status_of(vcl_group_start(group->communicator));
  }

  static graft_status batch_end(graft_group group) {
    return status_of(vcl_group_end(group->communicator));
  }
};

constexpr auto kCollectives = graft::extension_of<graft_collectives_table, CollectiveSlots>();

graft_status extension(const char* name, uint32_t version, const void** out_table) {
  const graft_status status = graft::find_extension(name, version, out_table, kCollectives);
  return status == GRAFT_NOT_FOUND ? base.extension(name, version, out_table) : status;
}

}  // namespace

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  if (base.name == nullptr) {
    void* library = dlopen(GRAFT_BASE_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return GRAFT_INTERNAL;
    const auto query =
        reinterpret_cast<graft_driver_query_function>(dlsym(library, "graft_driver_query"));
    base.abi_major = GRAFT_ABI_MAJOR;
    base.abi_minor = GRAFT_ABI_MINOR;
    base.slot_count = GRAFT_SLOT_COUNT;
    if (const graft_status status = query(&base); status != GRAFT_OK) return status;
  }
  graft_driver_table mine = base;
  mine.name = "vendor";
  mine.extension = extension;
  return graft_driver_fill(table, &mine);
}
