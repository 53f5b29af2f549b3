// drivers/trace/rules/copy.cpp: rules of copies and fills.
#include <algorithm>
#include <bit>

#include "objects/guard.h"
#include "objects/landing.h"
#include "objects/results.h"
#include "objects/rows_witness.h"
#include "objects/trials.h"
#include "objects/witness.h"
#include "rules/checks.h"
#include "rules/hooks.h"

namespace graft::trace {
namespace {

bool is_range(uint64_t bytes) { return bytes != 0; }

void use_host(TraceCall& call, uint64_t pointer) {
  const std::lock_guard lock(call.layer.mutex);
  const auto device = call.layer.ledger.devices.find(call.device);
  if (device == call.layer.ledger.devices.end() || call.command == 0) return;
  uint64_t begin = 0;
  HostBlock* const block = ObjectLedger::pinned(device->second, pointer, &begin);
  if (block == nullptr) return;
  call.layer.ledger.use(block->uses, {call.stream->id, call.command});
  call.touched_host = begin;
}

// What copies and fills have in common that go the same way in a driver: what, how the addresses
// are aligned, and about how long.
uint64_t kind_of(uint64_t what, uint64_t to, uint64_t from, uint64_t bytes) {
  const auto alignment = [](uint64_t value) {
    return std::min(std::countr_zero(value | 4096), 12);
  };
  uint64_t kind = what;
  for (const int part : {alignment(to), alignment(from), alignment(bytes),
                         static_cast<int>(std::bit_width(bytes))}) {
    kind = kind * 128 + static_cast<uint64_t>(part);
  }
  return kind;
}

// Whether the command is looked at closely.
bool is_chosen(TraceCall& call, uint64_t kind) {
  if (call.broken_by_caller || call.stream == nullptr) return false;
  bool idle = false;
  {
    const std::lock_guard lock(call.layer.mutex);
    idle = call.stream->done == call.stream->queued && call.stream->waits.empty();
  }
  return call.layer.sampling.verifies(kind, idle);
}

void land_and_use(TraceCall& call, uint32_t kind, uint64_t host, uint64_t bytes) {
  if (kind == GRAFT_DEVICE_TO_HOST && call.stream != nullptr && !call.broken_by_caller) {
    const std::lock_guard lock(call.layer.mutex);
    put_signs(call, host, bytes);
  }
  use_host(call, host);
}

// What the driver may not refuse: a command whose arguments keep to the rules.
void check_refused(TraceCall& call, graft_status status) {
  if (status != GRAFT_INVALID_ARGUMENT || call.broken_by_caller || call.planted) return;
  if (call.stream == nullptr) return;
  call.driver_broke("refused", "refused arguments that keep to the rules with INVALID_ARGUMENT",
                    "Accept every address inside an allocation, and every size.");
}

template <class Witness>
void compare_witness(TraceCall& call, graft_status status) {
  if (status != GRAFT_OK || call.witness == nullptr || call.planted) return;
  call.stream->queued = call.command;
  std::static_pointer_cast<Witness>(call.witness)->compare(call);
}

// The first peer_copy between two devices: their order shows in a trial.
void check_peers(TraceCall& call, graft_device from) {
  if (call.stream == nullptr || call.broken_by_caller) return;
  const auto first = [from](DeviceRecord& device) {
    return device.tried_peers.insert(from).second;
  };
  if (!may_try(call, call.device, first)) return;
  const std::string wrong = try_peer_copies(call.layer.driver(), call.device, from);
  call.layer.forget_failure();
  if (wrong.empty()) return;
  call.driver_broke("unordered", "a copy of the layer's own between these devices " + wrong,
                    "Queue the copy on its stream, and hold it back until the stream's marks are "
                    "passed.");
}

void check_empty(TraceCall& call, graft_status status, uint64_t bytes) {
  if (bytes != 0 || status == GRAFT_OK || status == GRAFT_DEVICE_LOST || call.planted) return;
  call.driver_broke("refused", "failed for 0 bytes", "Return OK and do nothing.");
}

}  // namespace

void CopyBefore::copy(TraceCall& call, graft_stream, uint64_t to, uint64_t from, uint64_t bytes,
                      uint32_t kind, uint32_t) {
  if (kind > GRAFT_DEVICE_TO_DEVICE) {
    call.caller_broke("copy-kind", "the kind is unknown", "Use a graft_copy_kind.");
    return;
  }
  if (!is_range(bytes)) return;
  if (kind != GRAFT_HOST_TO_DEVICE) use_range(call, call.device, from, bytes, "from");
  if (kind != GRAFT_DEVICE_TO_HOST) use_range(call, call.device, to, bytes, "to");
  const uint64_t host = kind == GRAFT_HOST_TO_DEVICE ? from : to;
  if (kind == GRAFT_DEVICE_TO_DEVICE) {
    if (to < from + bytes && from < to + bytes) {
      call.caller_broke("overlapping-copy", "the two ranges overlap", "Copy by way of a buffer.");
    }
  } else if (host == 0) {
    call.caller_broke("null-host", "the host's memory is at 0", "Give a pointer.");
  } else {
    land_and_use(call, kind, host, bytes);
  }
  if (is_chosen(call, kind_of(kind, to, from, bytes))) {
    call.witness =
        std::make_shared<CopyWitness>(call, to, from, bytes, kind, std::vector<uint8_t>());
  }
}

void CopyAfter::copy(TraceCall& call, graft_status status, graft_stream, uint64_t to, uint64_t,
                     uint64_t bytes, uint32_t kind, uint32_t) {
  check_refused(call, status);
  check_empty(call, status, bytes);
  if (status != GRAFT_OK) take_signs_back(call);
  if (status == GRAFT_OK && kind == GRAFT_DEVICE_TO_HOST) expect_result(call, to, bytes);
  compare_witness<CopyWitness>(call, status);
}

void CopyBefore::copy_strided(TraceCall& call, graft_stream, const graft_strided_copy*& copy,
                              uint32_t) {
  if (copy->kind > GRAFT_DEVICE_TO_DEVICE) {
    call.caller_broke("copy-kind", "the kind is unknown", "Use a graft_copy_kind.");
    return;
  }
  if (copy->row_bytes == 0 || copy->counts[0] == 0 || copy->counts[1] == 0 ||
      copy->counts[2] == 0) {
    call.caller_broke("no-bytes", "copies no rows", "Copy at least one byte of one row.");
    return;
  }
  const uint64_t from = extent_of(*copy, copy->from_strides),
                 to = extent_of(*copy, copy->to_strides);
  if (copy->kind != GRAFT_HOST_TO_DEVICE) use_range(call, call.device, copy->from, from, "from");
  if (copy->kind != GRAFT_DEVICE_TO_HOST) use_range(call, call.device, copy->to, to, "to");
  if (copy->kind != GRAFT_DEVICE_TO_DEVICE) {
    const uint64_t host = copy->kind == GRAFT_HOST_TO_DEVICE ? copy->from : copy->to;
    if (host == 0)
      return call.caller_broke("null-host", "the host's memory is at 0", "Give a pointer.");
    use_host(call, host);
  }
  const uint64_t kind = kind_of(8 + copy->kind, copy->to | copy->to_strides[0],
                                copy->from | copy->from_strides[0], copy->row_bytes);
  if (!is_chosen(call, kind)) return;
  call.witness = std::make_shared<RowsWitness>(call, *copy);
}

void CopyAfter::copy_strided(TraceCall& call, graft_status status, graft_stream,
                             const graft_strided_copy* copy, uint32_t) {
  check_refused(call, status);
  if (status == GRAFT_OK && copy->kind == GRAFT_DEVICE_TO_HOST) {
    expect_result(call, copy->to, extent_of(*copy, copy->to_strides));
  }
  compare_witness<RowsWitness>(call, status);
}

void CopyBefore::fill(TraceCall& call, graft_stream, graft_address to, uint64_t bytes,
                      const void*& pattern, uint32_t pattern_bytes, uint32_t) {
  const bool known =
      pattern_bytes <= 16 && pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (!known) {
    call.caller_broke("pattern-bytes", "the pattern's size is none of 1, 2, 4, 8 and 16",
                      "Use one of these.");
    return;
  }
  if (!is_range(bytes)) return;
  use_range(call, call.device, to, bytes, "to");
  const auto* const first = static_cast<const uint8_t*>(pattern);
  if (is_chosen(call, kind_of(16 + pattern_bytes, to, 0, bytes))) {
    call.witness =
        std::make_shared<CopyWitness>(call, to, 0, bytes, GRAFT_HOST_TO_DEVICE,
                                      std::vector<uint8_t>(first, first + pattern_bytes));
  }
  pattern = guarded_bytes(call, pattern, pattern_bytes);
}

void CopyAfter::fill(TraceCall& call, graft_status status, graft_stream, graft_address,
                     uint64_t bytes, const void*, uint32_t, uint32_t) {
  check_refused(call, status);
  check_empty(call, status, bytes);
  compare_witness<CopyWitness>(call, status);
}

void CopyBefore::peer_copy(TraceCall& call, graft_stream, graft_address to,
                           graft_device from_device, graft_address from, uint64_t bytes, uint32_t) {
  if (!is_range(bytes)) return;
  use_range(call, call.device, to, bytes, "to");
  use_range(call, from_device, from, bytes, "from");
  check_peers(call, from_device);
}

}  // namespace graft::trace
