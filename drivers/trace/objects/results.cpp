// drivers/trace/objects/results.cpp: what the host gets from the device.
#include "objects/results.h"

namespace graft::trace {
namespace {

constexpr uint64_t kMostBytes = 64 << 20;  // of a collective

bool wants_results(const TraceCall& call) {
  return call.layer.results.is_open() && call.stream != nullptr && call.command != 0 &&
         !call.planted;
}

}  // namespace

void expect_result(TraceCall& call, uint64_t to, uint64_t bytes) {
  if (!wants_results(call) || bytes == 0) return;
  const std::lock_guard lock(call.layer.mutex);
  forget_results(call.layer.ledger, to, bytes);
  call.stream->results.push_back(
      {call.command, to, bytes, "stream" + std::to_string(call.stream->id), nullptr});
}

void expect_same(TraceCall& call, graft_group group, graft_address address, uint64_t bytes) {
  if (!wants_results(call) || bytes == 0 || bytes > kMostBytes) return;
  const auto room = std::make_shared<std::vector<uint8_t>>(bytes);
  const auto to = reinterpret_cast<uint64_t>(room->data());
  if (call.layer.driver().copy(call.stream_handle, to, address, bytes, GRAFT_DEVICE_TO_HOST, 0) !=
      GRAFT_OK) {
    call.layer.forget_failure();
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto found = call.layer.ledger.others.find(group);
  if (found == call.layer.ledger.others.end()) return call.layer.ledger.lent.push_back(room);
  call.stream->results.push_back({call.command, to, bytes, "group" + found->second.name, room});
}

void forget_results(ObjectLedger& ledger, uint64_t begin, uint64_t bytes) {
  for (const auto& [id, stream] : ledger.stream_ids) {
    std::erase_if(stream->results, [&](const Result& one) {
      return one.kept == nullptr && one.to < begin + bytes && begin < one.to + one.bytes;
    });
  }
}

}  // namespace graft::trace
