// drivers/opencl/memory/transfer.cpp: copies and fills.
#include "transfer.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "graft/driver_slot.h"
#include "memory.h"
#include "stream/stream.h"

namespace graft::opencl {
namespace {

constexpr uint32_t kWidest = 16;

graft_status submit(Queue& queue, const char* what, cl_int code, cl_event event, uint32_t tag) {
  if (code != CL_SUCCESS) return queue.device->failed(code, what, GRAFT_INTERNAL);
  queue.note(event, tag, true);
  return GRAFT_OK;
}

template <class Work>
graft_status run_work(Queue& queue, uint32_t& tag, const void* head, const void*) {
  Work work;
  std::memcpy(&work, head, sizeof work);
  return work.run(queue, tag);
}

// Enqueues work, now or later.
template <class Work>
graft_status enter(graft_stream stream, uint32_t tag, const Work& work) {
  static_assert(sizeof work % 8 == 0);
  return stream->queue->backlog.enter(
      {run_work<Work>, nullptr, tag, 0, uint32_t{sizeof work}, 0, &work, nullptr});
}

struct CopyWork {
  graft_address to, from;
  uint64_t bytes;

  graft_status run(Queue& queue, uint32_t tag) const {
    return enqueue_copy(queue, to, from, bytes, tag);
  }
};

struct FillWork {
  graft_address to;
  uint64_t bytes;
  uint8_t pattern[kWidest];
  uint64_t width;

  graft_status run(Queue& queue, uint32_t tag) const {
    return enqueue_fill(queue, to, bytes, pattern, uint32_t(width), tag);
  }
};

// A pattern and a range that it fills, whose first byte gets the pattern's first.
struct Filling {
  Queue& queue;
  graft_address to;
  uint8_t pattern[2 * kWidest];  // twice, so that it can be read from any byte on
  uint32_t width;
  uint32_t tag;

  // Bytes from begin on, which the width divides as it divides the address there.
  graft_status run(uint64_t begin, uint64_t bytes, uint32_t unit) const {
    cl_event event = nullptr;
    const cl_int code = queue.device->memory->fill(queue.handle, to + begin, bytes,
                                                   pattern + begin % width, unit, &event);
    return submit(queue, "fill", code, event, tag);
  }

  // Less than a pattern, at any address: in units as large as the address allows.
  graft_status run_few(uint64_t begin, uint64_t bytes) const {
    while (bytes != 0) {
      const uint64_t at = to + begin;
      uint32_t unit = width / 2;
      while (unit > bytes || at % unit != 0) unit /= 2;
      if (graft_status status = run(begin, unit, unit); status != GRAFT_OK) return status;
      begin += unit;
      bytes -= unit;
    }
    return GRAFT_OK;
  }
};

// The shortest pattern that gives the same bytes: one of zeros is a single one.
uint32_t shortest(const uint8_t* pattern, uint32_t width) {
  while (width > 1 && std::memcmp(pattern, pattern + width / 2, width / 2) == 0) width /= 2;
  return width;
}

}  // namespace

graft_status check_pattern(const void* pattern, uint64_t pattern_bytes) {
  const bool power = pattern_bytes != 0 && (pattern_bytes & (pattern_bytes - 1)) == 0;
  if (pattern != nullptr && power && pattern_bytes <= kWidest) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, "fill: the pattern must have 1, 2, 4, 8 or 16 bytes, not " +
                                          std::to_string(pattern_bytes));
}

graft_status check_range(graft_device device, graft_address address, uint64_t bytes) {
  if (bytes == 0 || device->memory->find(address, bytes)) return GRAFT_OK;
  return fail(GRAFT_INVALID_ARGUMENT, std::to_string(bytes) + " bytes from " +
                                          std::to_string(address) +
                                          " on are not inside one allocation of the device");
}

graft_status enqueue_copy(Queue& queue, graft_address to, graft_address from, uint64_t bytes,
                          uint32_t tag) {
  if (bytes == 0) return GRAFT_OK;
  cl_event event = nullptr;
  const cl_int code = queue.device->memory->copy(queue.handle, to, from, bytes, &event);
  return submit(queue, "copy", code, event, tag);
}

graft_status enqueue_fill(Queue& queue, graft_address to, uint64_t bytes, const void* pattern,
                          uint32_t pattern_bytes, uint32_t tag) {
  const uint32_t width = shortest(static_cast<const uint8_t*>(pattern), pattern_bytes);
  Filling filling = {queue, to, {}, width, tag};
  std::memcpy(filling.pattern, pattern, width);
  std::memcpy(filling.pattern + width, pattern, width);
  const uint64_t lead = std::min<uint64_t>(bytes, (width - to % width) % width);
  const uint64_t body = (bytes - lead) / width * width;
  graft_status status = filling.run_few(0, lead);
  if (status == GRAFT_OK && body != 0) status = filling.run(lead, body, width);
  return status != GRAFT_OK ? status : filling.run_few(lead + body, bytes - lead - body);
}

graft_status TransferSlots::copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                                 uint32_t kind, uint32_t tag) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (bytes == 0) return GRAFT_OK;
  if (kind > GRAFT_DEVICE_TO_DEVICE) {
    return fail(GRAFT_INVALID_ARGUMENT, "copy: unknown kind " + std::to_string(kind));
  }
  if (kind != GRAFT_DEVICE_TO_HOST) {
    if (graft_status status = check_range(stream->device, to, bytes); status != GRAFT_OK)
      return status;
  }
  if (kind != GRAFT_HOST_TO_DEVICE) {
    if (graft_status status = check_range(stream->device, from, bytes); status != GRAFT_OK)
      return status;
  }
  if (kind == GRAFT_DEVICE_TO_DEVICE) return enter(stream, tag, CopyWork{to, from, bytes});
  stream->queue->backlog.drain();
  Memory& memory = *stream->device->memory;
  const cl_command_queue queue = stream->queue->handle;
  cl_event event = nullptr;
  cl_int code = CL_SUCCESS;
  if (kind == GRAFT_HOST_TO_DEVICE) {
    code = memory.upload(queue, to, reinterpret_cast<const void*>(from), bytes, &event);
  } else {
    code = memory.download(queue, reinterpret_cast<void*>(to), from, bytes, &event);
  }
  return submit(*stream->queue, "copy", code, event, tag);
}

graft_status TransferSlots::fill(graft_stream stream, graft_address to, uint64_t bytes,
                                 const void* pattern, uint32_t pattern_bytes, uint32_t tag) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (graft_status status = check_pattern(pattern, pattern_bytes); status != GRAFT_OK) {
    return status;
  }
  if (bytes == 0) return GRAFT_OK;
  if (graft_status status = check_range(stream->device, to, bytes); status != GRAFT_OK) {
    return status;
  }
  FillWork work = {to, bytes, {}, pattern_bytes};
  std::memcpy(work.pattern, pattern, pattern_bytes);
  return enter(stream, tag, work);
}

}  // namespace graft::opencl
