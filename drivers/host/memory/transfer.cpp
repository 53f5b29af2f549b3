// drivers/host/memory/transfer.cpp: copies and fills.
#include "transfer.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "arena.h"
#include "graft/driver_slot.h"
#include "kernel/pool.h"
#include "stream/stream.h"

namespace graft::host {
namespace {

// A piece of a large transfer: several per thread, each far above a cache line.
constexpr uint64_t kPieceBytes = 512 << 10;
// What is shorter a processor packs faster than it calls memcpy.
constexpr uint64_t kShortestRow = 32;

struct Copy {
  char* to;
  const char* from;
  uint64_t bytes;

  Outcome operator()() {
    if (bytes <= kPieceBytes) {
      std::memcpy(to, from, bytes);
      return {};
    }
    auto pieces = [](void* context, uint64_t begin, uint64_t end) {
      const Copy& c = *static_cast<Copy*>(context);
      uint64_t first = begin * kPieceBytes, last = std::min(end * kPieceBytes, c.bytes);
      std::memcpy(c.to + first, c.from + first, last - first);
    };
    run_parallel((bytes + kPieceBytes - 1) / kPieceBytes, pieces, this);
    return {};
  }
};

struct StridedCopy {
  char* to;
  const char* from;
  graft_strided_copy shape;

  Outcome operator()() {
    const auto& [count, there, here] = std::tie(shape.counts, shape.to_strides, shape.from_strides);
    for (uint64_t k = 0; k < count[2]; ++k) {
      for (uint64_t j = 0; j < count[1]; ++j) {
        char* row = to + k * there[2] + j * there[1];
        const char* source = from + k * here[2] + j * here[1];
        for (uint64_t i = 0; i < count[0]; ++i, row += there[0], source += here[0]) {
          std::memcpy(row, source, shape.row_bytes);
        }
      }
    }
    return {};
  }
};

// From the first byte of a side to its last.
uint64_t span_of(const graft_strided_copy& copy, const uint64_t (&strides)[3]) {
  uint64_t span = copy.row_bytes;
  for (int i = 0; i < 3; ++i) span += (copy.counts[i] - 1) * strides[i];
  return span;
}

struct Fill {
  char* to;
  uint64_t bytes;
  uint32_t pattern_bytes;
  alignas(16) char pattern[16];  // repeated up to 16 bytes

  void run(uint64_t first, uint64_t last) const {
    if (pattern_bytes == 1) {
      std::memset(to + first, pattern[0], last - first);
      return;
    }
    for (; first + 16 <= last; first += 16) std::memcpy(to + first, pattern, 16);
    std::memcpy(to + first, pattern, last - first);
  }
  Outcome operator()() {
    if (bytes <= kPieceBytes) {
      run(0, bytes);
      return {};
    }
    auto pieces = [](void* context, uint64_t begin, uint64_t end) {
      const Fill& f = *static_cast<Fill*>(context);
      f.run(begin * kPieceBytes, std::min(end * kPieceBytes, f.bytes));
    };
    run_parallel((bytes + kPieceBytes - 1) / kPieceBytes, pieces, this);
    return {};
  }
};

// Repeats a pattern up to 16 bytes.
void repeat(char* to, const void* pattern, uint32_t pattern_bytes) {
  uint64_t words[2] = {0, 0};
  if (pattern_bytes == 4) {  // the common one, in a few instructions
    uint32_t half = 0;
    std::memcpy(&half, pattern, 4);
    words[0] = words[1] = half * 0x100000001ull;
  } else {
    for (uint32_t at = 0; at < 16; at += pattern_bytes) {
      std::memcpy(reinterpret_cast<char*>(words) + at, pattern, pattern_bytes);
    }
  }
  std::memcpy(to, words, 16);
}

// A pointer to bytes of device memory; NULL, with a message, when they are not in one allocation.
char* device_bytes(graft_stream stream, graft_device device, graft_address address, uint64_t bytes,
                   const char* what) {
  void* pointer = nullptr;
  if (device->arena->owns(device->ordinal, address, bytes, &stream->known)) {
    device->arena->translate(address, &pointer);
  } else {
    fail(GRAFT_INVALID_ARGUMENT, std::string(what) + ": " + std::to_string(bytes) +
                                     " bytes are not inside one allocation of the device");
  }
  return static_cast<char*>(pointer);
}

// cost_ns: in simulated time. always: even where large commands are skipped.
template <class Function>
graft_status enqueue_copy(graft_stream stream, Function copy, uint64_t bytes, uint32_t tag,
                          int64_t cost_ns, bool always) {
  if (strikes(Fault::kCopy)) {
    return stream->submit(tag, bytes, [] {
      return Outcome{GRAFT_INTERNAL, "copy failed: planted by GRAFT_HOST_FAULTS"};
    });
  }
  if (strikes(Fault::kHangCopy)) return stream->hang(tag);
  if (simulated()) [[unlikely]] {
    return stream->submit_timed(tag, always ? 0 : bytes, cost_ns, std::move(copy));
  }
  return stream->submit(tag, bytes, std::move(copy));
}

}  // namespace

graft_status TransferSlots::copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                                 uint32_t kind, uint32_t tag) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "copy: no stream given");
  if (kind > GRAFT_DEVICE_TO_DEVICE) {
    return fail(GRAFT_INVALID_ARGUMENT, "copy: unknown kind " + std::to_string(kind));
  }
  if (bytes == 0) return check_device(stream->device);
  char* target = reinterpret_cast<char*>(to);
  char* source = reinterpret_cast<char*>(from);
  if (kind != GRAFT_DEVICE_TO_HOST)
    target = device_bytes(stream, stream->device, to, bytes, "copy");
  if (kind != GRAFT_HOST_TO_DEVICE)
    source = device_bytes(stream, stream->device, from, bytes, "copy");
  if (target == nullptr || source == nullptr) {
    if (to == 0 || from == 0) return fail(GRAFT_INVALID_ARGUMENT, "copy: an address is 0");
    return GRAFT_INVALID_ARGUMENT;
  }
  return enqueue_copy(stream, Copy{target, source, bytes}, bytes, tag,
                      simulated() ? simulation().copy_ns(kind, bytes) : 0,
                      kind != GRAFT_DEVICE_TO_DEVICE);
}

graft_status TransferSlots::copy_strided(graft_stream stream, const graft_strided_copy* copy,
                                         uint32_t tag) {
  if (stream == nullptr || copy == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "copy_strided: no stream or no copy given");
  const graft_strided_copy& c = *copy;
  if (c.struct_size < sizeof c || c.kind > GRAFT_DEVICE_TO_DEVICE || c.row_bytes == 0 ||
      c.counts[0] == 0 || c.counts[1] == 0 || c.counts[2] == 0) {
    return fail(GRAFT_INVALID_ARGUMENT, "copy_strided: an unknown kind, no row, or a count of 0");
  }
  if (c.row_bytes < kShortestRow)
    return fail(GRAFT_UNSUPPORTED,
                "copy_strided: rows of " + std::to_string(c.row_bytes) + " bytes");
  char* target = reinterpret_cast<char*>(c.to);
  char* source = reinterpret_cast<char*>(c.from);
  if (c.kind != GRAFT_DEVICE_TO_HOST)
    target = device_bytes(stream, stream->device, c.to, span_of(c, c.to_strides), "copy_strided");
  if (c.kind != GRAFT_HOST_TO_DEVICE)
    source =
        device_bytes(stream, stream->device, c.from, span_of(c, c.from_strides), "copy_strided");
  if (target == nullptr || source == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "copy_strided: an address is 0 or not in one allocation");
  const uint64_t bytes = c.row_bytes * c.counts[0] * c.counts[1] * c.counts[2];
  return enqueue_copy(stream, StridedCopy{target, source, c}, bytes, tag,
                      simulated() ? simulation().copy_ns(c.kind, bytes) : 0,
                      c.kind != GRAFT_DEVICE_TO_DEVICE);
}

graft_status TransferSlots::fill(graft_stream stream, graft_address to, uint64_t bytes,
                                 const void* pattern, uint32_t pattern_bytes, uint32_t tag) {
  if (stream == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "fill: no stream given");
  bool power = pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (pattern == nullptr || !power || pattern_bytes > 16 || bytes % pattern_bytes != 0) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "fill: the pattern must have 1, 2, 4, 8 or 16 bytes that divide " +
                    std::to_string(bytes) + ", got " + std::to_string(pattern_bytes));
  }
  if (bytes == 0) return check_device(stream->device);
  char* target = device_bytes(stream, stream->device, to, bytes, "fill");
  if (target == nullptr) return GRAFT_INVALID_ARGUMENT;
  Fill command = {target, bytes, pattern_bytes, {}};
  repeat(command.pattern, pattern, pattern_bytes);
  if (simulated()) [[unlikely]] {
    return stream->submit_timed(tag, bytes, simulation().kernel_ns(bytes), command);
  }
  return stream->submit(tag, bytes, command);
}

graft_status TransferSlots::peer_copy(graft_stream stream, graft_address to,
                                      graft_device from_device, graft_address from, uint64_t bytes,
                                      uint32_t tag) {
  if (stream == nullptr || from_device == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "peer_copy: no stream or device given");
  }
  if (graft_status status = check_device(from_device); status != GRAFT_OK) return status;
  if (bytes == 0) return check_device(stream->device);
  char* target = device_bytes(stream, stream->device, to, bytes, "peer_copy");
  char* source = device_bytes(stream, from_device, from, bytes, "peer_copy");
  if (target == nullptr || source == nullptr) return GRAFT_INVALID_ARGUMENT;
  return enqueue_copy(stream, Copy{target, source, bytes}, bytes, tag,
                      simulated() ? simulation().peer_copy_ns(bytes) : 0, false);
}

}  // namespace graft::host
