// drivers/host/simulation/mirror.cpp: collectives of a rank whose peers are thought to do as it
// does.
#include "mirror.h"

#include <algorithm>
#include <cstring>

#include "collectives/reduction.h"

namespace graft::host {
namespace {

constexpr uint64_t kPieceBytes = 16 << 10;

void copy_bytes(char* to, const char* from, uint64_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

// How often an element takes part in a reduction; of the others once is as good.
uint32_t times(const CommandRecord& record, uint32_t ranks) {
  const bool counts = record.reduction == GRAFT_REDUCE_SUM ||
                      record.reduction == GRAFT_REDUCE_PRODUCT ||
                      record.reduction == GRAFT_REDUCE_BIT_XOR;
  return counts ? ranks : 1;
}

// to = the reduction of n times own, by doubling.
void fold(const CommandRecord& record, char* to, const char* own, uint64_t count, uint32_t n) {
  if (n == 1) return copy_bytes(to, own, count * dtype_bytes(record.dtype));
  fold(record, to, own, count, n / 2);
  const void* twice[] = {to, to};
  reduce(record.dtype, record.reduction, to, twice, 2, count);
  if (n % 2 == 0) return;
  const void* more[] = {to, own};
  reduce(record.dtype, record.reduction, to, more, 2, count);
}

// In pieces that stay in the cache; to may be from.
void reduce_mirrored(const CommandRecord& record, char* to, const char* from, uint32_t ranks) {
  const uint64_t element = dtype_bytes(record.dtype), chunk = kPieceBytes / element;
  const uint32_t n = times(record, ranks);
  if (n == 1) return copy_bytes(to, from, record.count * element);
  alignas(64) char own[kPieceBytes];
  for (uint64_t done = 0; done < record.count; done += chunk) {
    const uint64_t count = std::min(chunk, record.count - done);
    std::memcpy(own, from + done * element, count * element);
    fold(record, to + done * element, own, count, n);
  }
}

}  // namespace

Outcome MirroredExchange::operator()() const {
  const uint64_t row = record.count * dtype_bytes(record.dtype);
  switch (CommandKind(record.kind)) {
    case CommandKind::kAllReduce:
      reduce_mirrored(record, receive, send, ranks);
      break;
    case CommandKind::kReduce:
      if (record.root == rank) reduce_mirrored(record, receive, send, ranks);
      break;
    case CommandKind::kBroadcast:
      if (record.root == rank) copy_bytes(receive, send, row);
      break;
    case CommandKind::kAllGather:
      for (uint32_t i = 0; i < ranks; ++i) copy_bytes(receive + i * row, send, row);
      break;
    case CommandKind::kReduceScatter:
      reduce_mirrored(record, receive, send + rank * row, ranks);
      break;
    default:
      return {GRAFT_INTERNAL, "unknown collective"};
  }
  return {};
}

Outcome MirroredTransfers::operator()() const {
  auto from = transfers.begin();
  for (const Transfer& to : transfers) {
    if (to.sends) continue;
    from = std::find_if(from, transfers.end(), [](const Transfer& t) { return t.sends; });
    if (from == transfers.end()) break;
    const uint64_t bytes =
        std::min(to.count * dtype_bytes(to.dtype), from->count * dtype_bytes(from->dtype));
    if (bytes != 0 && to.bytes != from->bytes) std::memmove(to.bytes, from->bytes, bytes);
    ++from;
  }
  return {};
}

}  // namespace graft::host
