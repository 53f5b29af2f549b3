// drivers/host/collectives/collectives.cpp: graft.collectives, for ranks on this machine.
#include "collectives.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "device.h"
#include "exchange.h"
#include "graft/driver_slot.h"
#include "group.h"
#include "memory/arena.h"
#include "point_to_point.h"
#include "reduction.h"
#include "simulation/mirror.h"
#include "simulation/ring.h"
#include "simulation/simulation.h"
#include "stream/fault.h"
#include "stream/stream.h"

// Beside the ranks' common state: what the calling side keeps.
struct graft_group_s {
  std::shared_ptr<graft::host::Group> group;  // NULL: the others are mirrored, see simulation.h
  graft_device device;
  uint32_t rank, ranks;
  uint32_t sequence = 0;  // of the next collective
  // Of the batch that is open:
  bool batching = false;
  graft_stream batch_stream = nullptr;
  uint32_t batch_tag = 0;
  std::vector<graft::host::Transfer> batch;
};

namespace graft::host {
namespace {

// Some thirty years: a time that can be added to now.
constexpr int64_t kLongestTimeout = 1'000'000'000'000'000'000;

bool is_forked() { return (detours.load(std::memory_order_relaxed) & kDetourForked) != 0; }

graft_status create_mirrored(graft_device device, uint32_t rank, uint32_t size,
                             graft_group* out_group) {
  if (size > simulation().ranks) {
    return fail(GRAFT_INVALID_ARGUMENT, "group_create: " + std::to_string(size) +
                                            " ranks, but GRAFT_HOST_SIMULATE has ranks=" +
                                            std::to_string(simulation().ranks));
  }
  *out_group = new graft_group_s{nullptr, device, rank, size, 0, false, nullptr, 0, {}};
  return GRAFT_OK;
}

// OK when a command of a group may enter the stream.
graft_status check(graft_stream stream, graft_group group, const char* what) {
  if (stream == nullptr || group == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": no stream or no group given");
  }
  if (graft_status status = stream->admit(); status != GRAFT_OK) return status;
  if (stream->device != group->device) {
    return fail(GRAFT_INVALID_ARGUMENT,
                std::string(what) + ": the stream and the group belong to two devices");
  }
  return GRAFT_OK;
}

// A pointer to rows * count elements at an address, in out; it may be NULL where there are none.
graft_status place(graft_stream stream, graft_address address, uint64_t rows, uint64_t count,
                   uint32_t dtype, const char* what, char** out) {
  *out = nullptr;
  if (dtype_bytes(dtype) == 0) {
    return fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": no dtype " + std::to_string(dtype));
  }
  if (count == 0) return GRAFT_OK;
  const uint64_t element = dtype_bytes(dtype) * rows;
  void* pointer = nullptr;
  graft_device device = stream->device;
  if (count > ~uint64_t{0} / element ||
      !device->arena->owns(device->ordinal, address, count * element, &stream->known) ||
      !device->arena->translate(address, &pointer)) {
    return fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": " + std::to_string(count) + " x " +
                                            std::to_string(element) +
                                            " bytes are not inside one allocation of the device");
  }
  *out = static_cast<char*>(pointer);
  return GRAFT_OK;
}

graft_status planted_failure(graft_stream stream, uint32_t tag) {
  stream->push(tag, false, [] {
    return Outcome{GRAFT_INTERNAL, "a collective failed: planted by GRAFT_HOST_FAULTS"};
  });
  return GRAFT_OK;
}

// A command of a mirrored group. bytes: what it moves here.
template <class Mirrored>
graft_status enqueue_mirrored(graft_stream stream, uint64_t bytes, int64_t cost_ns,
                              Mirrored command, uint32_t tag) {
  if (strikes(Fault::kCollective)) return planted_failure(stream, tag);
  stream->push(tag, false,
               Timed<Mirrored>{stream, host_gives_command(), cost_ns, is_skipped(bytes),
                               std::move(command)});
  return GRAFT_OK;
}

graft_status enqueue(graft_stream stream, graft_group group, Exchange command, uint32_t tag) {
  if (command.group == nullptr) {
    const CommandRecord& record = command.record;
    const auto kind = CommandKind(record.kind);
    const bool rows = kind == CommandKind::kAllGather || kind == CommandKind::kReduceScatter;
    const uint64_t bytes = record.count * dtype_bytes(record.dtype) * (rows ? group->ranks : 1);
    return enqueue_mirrored(
        stream, bytes, collective_ns(simulation(), record, group->ranks),
        MirroredExchange{record, command.send, command.receive, group->rank, group->ranks}, tag);
  }
  if (simulated()) {
    command.clock = &stream->clock;
    command.issued_ns = host_gives_command();
  }
  command.record.sequence = group->sequence++;
  command.planted = strikes(Fault::kCollective);
  // On the calling thread only what cannot keep it waiting.
  if (detours.load(std::memory_order_relaxed) == 0 && stream->queue.idle()) {
    Outcome outcome;
    if (command.try_now(&outcome)) {
      stream->note(outcome, tag);
      return GRAFT_OK;
    }
  }
  stream->push(tag, false, std::move(command));
  return GRAFT_OK;
}

// How many rows of count elements a collective's buffers have on this rank; 0: it has no part.
struct Rows {
  uint64_t send, receive;
};

graft_status submit(graft_stream stream, graft_group group, const char* what, CommandKind kind,
                    graft_address send, graft_address receive, Rows rows, CommandRecord record,
                    uint32_t tag) {
  if (graft_status status = check(stream, group, what); status != GRAFT_OK) return status;
  if (group->batching) {
    return fail(GRAFT_INVALID_ARGUMENT,
                std::string(what) + ": a batch takes sends and receives only");
  }
  if (record.root >= group->ranks) {
    return fail(GRAFT_INVALID_ARGUMENT,
                std::string(what) + ": no rank " + std::to_string(record.root));
  }
  char *from = nullptr, *to = nullptr;
  graft_status status = GRAFT_OK;
  const uint64_t sent = rows.send == 0 ? 0 : record.count;
  const uint64_t received = rows.receive == 0 ? 0 : record.count;
  status = place(stream, send, rows.send, sent, record.dtype, what, &from);
  if (status != GRAFT_OK) return status;
  status = place(stream, receive, rows.receive, received, record.dtype, what, &to);
  if (status != GRAFT_OK) return status;
  record.kind = uint32_t(kind);
  return enqueue(stream, group, Exchange{group->group, record, from, to}, tag);
}

graft_status check_reduction(uint32_t dtype, uint32_t reduction, const char* what) {
  if (can_reduce(dtype, reduction)) return GRAFT_OK;
  return fail(GRAFT_UNSUPPORTED, std::string(what) + ": " + dtype_name(dtype) +
                                     " has no reduction '" + reduction_name(reduction) + "'");
}

CommandRecord record_of(uint64_t count, uint32_t dtype, uint32_t reduction, uint32_t root) {
  CommandRecord record;
  record.dtype = dtype;
  record.reduction = reduction;
  record.root = root;
  record.count = count;
  return record;
}

bool is_rank(graft_group group, uint32_t rank) { return group != nullptr && group->rank == rank; }

uint64_t size_of(graft_group group) { return group == nullptr ? 1 : group->ranks; }

graft_status enqueue_transfers(graft_stream stream, graft_group group,
                               std::vector<Transfer> transfers, uint32_t tag) {
  if (group->group == nullptr) {
    uint64_t bytes = 0;
    for (const Transfer& one : transfers) bytes += one.count * dtype_bytes(one.dtype);
    const auto ns = transfers_ns(simulation(), transfers, group->rank);
    return enqueue_mirrored(stream, bytes, ns, MirroredTransfers{std::move(transfers)}, tag);
  }
  TransferBatch batch = {group->group, std::move(transfers), strikes(Fault::kCollective)};
  if (simulated()) {
    batch.clock = &stream->clock;
    batch.issued_ns = host_gives_command();
  }
  stream->push(tag, false, std::move(batch));
  return GRAFT_OK;
}

graft_status transfer(graft_stream stream, graft_group group, graft_address address, uint64_t count,
                      uint32_t dtype, uint32_t peer, uint32_t tag, bool sends) {
  const char* what = sends ? "send" : "receive";
  if (graft_status status = check(stream, group, what); status != GRAFT_OK) return status;
  if (peer >= group->ranks || (!group->batching && is_rank(group, peer))) {
    return fail(GRAFT_INVALID_ARGUMENT,
                std::string(what) + ": rank " + std::to_string(peer) +
                    (is_rank(group, peer) ? " is this rank, which only a batch reaches"
                                          : " is not in the group"));
  }
  char* bytes = nullptr;
  if (graft_status status = place(stream, address, 1, count, dtype, what, &bytes);
      status != GRAFT_OK) {
    return status;
  }
  const Transfer one = {sends, peer, bytes, count, dtype};
  if (!group->batching) {
    return enqueue_transfers(stream, group, {one}, tag);
  }
  if (!group->batch.empty() && stream != group->batch_stream) {
    return fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": a batch takes one stream only");
  }
  if (group->batch.empty()) group->batch_tag = tag;
  group->batch_stream = stream;
  group->batch.push_back(one);
  return GRAFT_OK;
}

}  // namespace

graft_status CollectiveSlots::group_id(graft_device device, uint8_t* out_id) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_id == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "group_id: no out pointer given");
  try {
    make_group_id(out_id);
  } catch (const GroupError& error) {
    return fail(error.status, error.what());
  }
  return GRAFT_OK;
}

graft_status CollectiveSlots::group_create(graft_device device, const uint8_t* id, uint32_t rank,
                                           uint32_t size, int64_t timeout_ns,
                                           graft_group* out_group) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (id == nullptr || out_group == nullptr || rank >= size || timeout_ns <= 0) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "group_create: no id, no out pointer, no timeout, or rank " + std::to_string(rank) +
                    " of " + std::to_string(size));
  }
  if (simulation().mirrored()) return create_mirrored(device, rank, size, out_group);
  if (size > SharedSegment::kMostRanks) {
    return fail(GRAFT_UNSUPPORTED, "group_create: " + std::to_string(size) +
                                       " ranks, but the host driver takes at most " +
                                       std::to_string(SharedSegment::kMostRanks));
  }
  const std::chrono::nanoseconds timeout(std::min(timeout_ns, kLongestTimeout));
  try {
    auto group = std::make_shared<Group>(id, rank, size, timeout);
    *out_group = new graft_group_s{std::move(group), device, rank, size, 0, false, nullptr, 0, {}};
  } catch (const GroupError& error) {
    return fail(error.status, error.what());
  }
  return GRAFT_OK;
}

graft_status CollectiveSlots::group_abort(graft_group group) {
  if (group == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "group_abort: no group given");
  if (!is_forked() && group->group != nullptr) group->group->abort();
  return GRAFT_OK;
}

graft_status CollectiveSlots::group_destroy(graft_group group) {
  if (group == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "group_destroy: no group given");
  // A forked child has no part in it, nor the memory where its state lies.
  if (!is_forked()) delete group;
  return GRAFT_OK;
}

graft_status CollectiveSlots::all_reduce(graft_stream stream, graft_group group, graft_address send,
                                         graft_address receive, uint64_t count, uint32_t dtype,
                                         uint32_t reduction, uint32_t tag) {
  if (graft_status status = check_reduction(dtype, reduction, "all_reduce"); status != GRAFT_OK) {
    return status;
  }
  return submit(stream, group, "all_reduce", CommandKind::kAllReduce, send, receive, {1, 1},
                record_of(count, dtype, reduction, 0), tag);
}

graft_status CollectiveSlots::reduce(graft_stream stream, graft_group group, graft_address send,
                                     graft_address receive, uint64_t count, uint32_t dtype,
                                     uint32_t reduction, uint32_t root, uint32_t tag) {
  if (graft_status status = check_reduction(dtype, reduction, "reduce"); status != GRAFT_OK) {
    return status;
  }
  const Rows rows = {1, is_rank(group, root) ? 1u : 0u};
  return submit(stream, group, "reduce", CommandKind::kReduce, send, receive, rows,
                record_of(count, dtype, reduction, root), tag);
}

graft_status CollectiveSlots::broadcast(graft_stream stream, graft_group group, graft_address send,
                                        graft_address receive, uint64_t count, uint32_t dtype,
                                        uint32_t root, uint32_t tag) {
  const Rows rows = {is_rank(group, root) ? 1u : 0u, 1};
  return submit(stream, group, "broadcast", CommandKind::kBroadcast, send, receive, rows,
                record_of(count, dtype, 0, root), tag);
}

graft_status CollectiveSlots::all_gather(graft_stream stream, graft_group group, graft_address send,
                                         graft_address receive, uint64_t count, uint32_t dtype,
                                         uint32_t tag) {
  return submit(stream, group, "all_gather", CommandKind::kAllGather, send, receive,
                {1, size_of(group)}, record_of(count, dtype, 0, 0), tag);
}

graft_status CollectiveSlots::reduce_scatter(graft_stream stream, graft_group group,
                                             graft_address send, graft_address receive,
                                             uint64_t count, uint32_t dtype, uint32_t reduction,
                                             uint32_t tag) {
  const graft_status status = check_reduction(dtype, reduction, "reduce_scatter");
  if (status != GRAFT_OK) return status;
  return submit(stream, group, "reduce_scatter", CommandKind::kReduceScatter, send, receive,
                {size_of(group), 1}, record_of(count, dtype, reduction, 0), tag);
}

graft_status CollectiveSlots::send(graft_stream stream, graft_group group, graft_address address,
                                   uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag) {
  return transfer(stream, group, address, count, dtype, peer, tag, true);
}

graft_status CollectiveSlots::receive(graft_stream stream, graft_group group, graft_address address,
                                      uint64_t count, uint32_t dtype, uint32_t peer, uint32_t tag) {
  return transfer(stream, group, address, count, dtype, peer, tag, false);
}

graft_status CollectiveSlots::batch_begin(graft_group group) {
  if (group == nullptr || group->batching) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "batch_begin: no group given, or the group has an open batch");
  }
  group->batching = true;
  return GRAFT_OK;
}

graft_status CollectiveSlots::batch_end(graft_group group) {
  if (group == nullptr || !group->batching) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "batch_end: no group given, or the group has no open batch");
  }
  group->batching = false;
  std::vector<Transfer> batch = std::exchange(group->batch, {});
  if (batch.empty()) return GRAFT_OK;
  if (graft_status status = group->batch_stream->admit(); status != GRAFT_OK) return status;
  return enqueue_transfers(group->batch_stream, group, std::move(batch), group->batch_tag);
}

}  // namespace graft::host
