// drivers/host/collectives/collectives.h: graft.collectives, for ranks on this machine.
#ifndef GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_
#define GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_

#include "graft/extensions.h"

namespace graft::host {

// Slots of graft.collectives.
struct CollectiveSlots {
  static graft_status group_id(graft_device device, uint8_t* out_id);
  static graft_status group_create(graft_device device, const uint8_t* id, uint32_t rank,
                                   uint32_t size, int64_t timeout_ns, graft_group* out_group);
  static graft_status group_abort(graft_group group);
  static graft_status group_destroy(graft_group group);
  static graft_status all_reduce(graft_stream stream, graft_group group, graft_address send,
                                 graft_address receive, uint64_t count, uint32_t dtype,
                                 uint32_t reduction, uint32_t tag);
  static graft_status reduce(graft_stream stream, graft_group group, graft_address send,
                             graft_address receive, uint64_t count, uint32_t dtype,
                             uint32_t reduction, uint32_t root, uint32_t tag);
  static graft_status broadcast(graft_stream stream, graft_group group, graft_address send,
                                graft_address receive, uint64_t count, uint32_t dtype,
                                uint32_t root, uint32_t tag);
  static graft_status all_gather(graft_stream stream, graft_group group, graft_address send,
                                 graft_address receive, uint64_t count, uint32_t dtype,
                                 uint32_t tag);
  static graft_status reduce_scatter(graft_stream stream, graft_group group, graft_address send,
                                     graft_address receive, uint64_t count, uint32_t dtype,
                                     uint32_t reduction, uint32_t tag);
  static graft_status send(graft_stream stream, graft_group group, graft_address address,
                           uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag);
  static graft_status receive(graft_stream stream, graft_group group, graft_address address,
                              uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag);
  static graft_status batch_begin(graft_group group);
  static graft_status batch_end(graft_group group);
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_COLLECTIVES_COLLECTIVES_H_
