// drivers/veda/transfer.cpp: copies and fills.
#include "transfer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "graft/driver_slot.h"
#include "memory.h"
#include "stream.h"

namespace graft::veda {
namespace {

constexpr uint32_t kWidest = 16;

class Upload final : public Work {
 public:
  Upload(VEDAdeviceptr to, const void* from, uint64_t bytes)
      : to_(to), from_(from), bytes_(bytes) {}
  Called issue(VEDAstream stream) override {
    return GRAFT_VEDA_CALL(MemcpyHtoDAsync, to_, from_, bytes_, stream);
  }
  std::string text() const override {
    return "the copy of " + std::to_string(bytes_) + " bytes to the device";
  }

 private:
  VEDAdeviceptr to_;
  const void* from_;
  uint64_t bytes_;
};

class Download final : public Work {
 public:
  Download(void* to, VEDAdeviceptr from, uint64_t bytes) : to_(to), from_(from), bytes_(bytes) {}
  Called issue(VEDAstream stream) override {
    return GRAFT_VEDA_CALL(MemcpyDtoHAsync, to_, from_, bytes_, stream);
  }
  std::string text() const override {
    return "the copy of " + std::to_string(bytes_) + " bytes to the host";
  }

 private:
  void* to_;
  VEDAdeviceptr from_;
  uint64_t bytes_;
};

// Between two devices VEDA copies through the host, and waits for the first half at the call.
class DeviceCopy final : public Work {
 public:
  DeviceCopy(VEDAdeviceptr to, VEDAdeviceptr from, uint64_t bytes, graft_device other)
      : to_(to), from_(from), bytes_(bytes), other_(other) {}
  Called issue(VEDAstream stream) override {
    return GRAFT_VEDA_CALL(MemcpyDtoDAsync, to_, from_, bytes_, stream);
  }
  std::string text() const override {
    return "the copy of " + std::to_string(bytes_) + " bytes " +
           (other_ != nullptr ? "between devices" : "on the device");
  }
  graft_device other_device() const override { return other_; }

 private:
  VEDAdeviceptr to_, from_;
  uint64_t bytes_;
  graft_device other_;
};

// A pattern of width bytes, again and again. REQUIRES: width divides both to and bytes.
class Fill final : public Work {
 public:
  Fill(VEDAdeviceptr to, uint64_t bytes, const uint8_t* pattern, uint32_t width)
      : to_(to), count_(bytes / width), width_(width) {
    std::memcpy(pattern_.data(), pattern, width);
  }
  Called issue(VEDAstream stream) override {
    switch (width_) {
      case 1:
        return GRAFT_VEDA_CALL(MemsetD8Async, to_, word<uint8_t>(), count_, stream);
      case 2:
        return GRAFT_VEDA_CALL(MemsetD16Async, to_, word<uint16_t>(), count_, stream);
      case 4:
        return GRAFT_VEDA_CALL(MemsetD32Async, to_, word<uint32_t>(), count_, stream);
      case 8:
        return GRAFT_VEDA_CALL(MemsetD64Async, to_, word<uint64_t>(), count_, stream);
      default:
        return GRAFT_VEDA_CALL(MemsetD128Async, to_, word<uint64_t>(), word<uint64_t>(8), count_,
                               stream);
    }
  }
  std::string text() const override {
    return "the fill of " + std::to_string(count_ * width_) + " bytes";
  }

 private:
  template <class Word>
  Word word(size_t from = 0) const {
    Word value;
    std::memcpy(&value, pattern_.data() + from, sizeof value);
    return value;
  }

  VEDAdeviceptr to_;
  uint64_t count_;
  uint32_t width_;
  std::array<uint8_t, kWidest> pattern_;
};

void push(graft_stream stream, std::unique_ptr<Work> work, uint32_t tag) {
  work->tag = tag;
  stream->queue.push(std::move(work));
}

// The shortest pattern that gives the same bytes: one of zeros is a single one.
uint32_t shortest(const uint8_t* pattern, uint32_t width) {
  while (width > 1 && std::memcmp(pattern, pattern + width / 2, width / 2) == 0) width /= 2;
  return width;
}

void push_bytes(graft_stream stream, VEDAdeviceptr to, uint64_t begin, uint64_t end,
                const uint8_t* pattern, uint32_t width, uint32_t tag) {
  for (uint64_t i = begin; i < end; ++i) {
    push(stream, std::make_unique<Fill>(advanced(to, i), 1, pattern + i % width, 1), tag);
  }
}

}  // namespace

graft_status TransferSlots::copy(graft_stream stream, uint64_t to, uint64_t from, uint64_t bytes,
                                 uint32_t kind, uint32_t tag) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (bytes == 0) return GRAFT_OK;
  if (kind > GRAFT_DEVICE_TO_DEVICE) {
    return fail(GRAFT_INVALID_ARGUMENT, "copy: unknown kind " + std::to_string(kind));
  }
  if ((kind == GRAFT_HOST_TO_DEVICE ? from : to) == 0) {
    return fail(GRAFT_INVALID_ARGUMENT, "copy: the host's pointer or an address is 0");
  }
  VEDAdeviceptr target = nullptr, source = nullptr;
  if (kind != GRAFT_DEVICE_TO_HOST) {
    const graft_status status = check_range(stream->device, to, bytes, &target);
    if (status != GRAFT_OK) return status;
  }
  if (kind != GRAFT_HOST_TO_DEVICE) {
    const graft_status status = check_range(stream->device, from, bytes, &source);
    if (status != GRAFT_OK) return status;
  }
  std::unique_ptr<Work> work;
  if (kind == GRAFT_HOST_TO_DEVICE) {
    work = std::make_unique<Upload>(target, reinterpret_cast<const void*>(from), bytes);
  } else if (kind == GRAFT_DEVICE_TO_HOST) {
    work = std::make_unique<Download>(reinterpret_cast<void*>(to), source, bytes);
  } else {
    work = std::make_unique<DeviceCopy>(target, source, bytes, nullptr);
  }
  push(stream, std::move(work), tag);
  return GRAFT_OK;
}

graft_status TransferSlots::peer_copy(graft_stream stream, graft_address to,
                                      graft_device from_device, graft_address from, uint64_t bytes,
                                      uint32_t tag) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (graft_status status = check_device(from_device); status != GRAFT_OK) return status;
  if (bytes == 0) return GRAFT_OK;
  VEDAdeviceptr target = nullptr, source = nullptr;
  graft_status status = check_range(stream->device, to, bytes, &target);
  if (status == GRAFT_OK) status = check_range(from_device, from, bytes, &source);
  if (status != GRAFT_OK) return status;
  push(stream, std::make_unique<DeviceCopy>(target, source, bytes, from_device), tag);
  return GRAFT_OK;
}

graft_status TransferSlots::fill(graft_stream stream, graft_address to, uint64_t bytes,
                                 const void* pattern, uint32_t pattern_bytes, uint32_t tag) {
  if (graft_status status = check_stream(stream); status != GRAFT_OK) return status;
  if (pattern == nullptr || !std::has_single_bit(pattern_bytes) || pattern_bytes > kWidest) {
    return fail(GRAFT_INVALID_ARGUMENT, "fill: the pattern must have 1, 2, 4, 8 or 16 bytes, not " +
                                            std::to_string(pattern_bytes));
  }
  if (bytes == 0) return GRAFT_OK;
  VEDAdeviceptr target = nullptr;
  const graft_status status = check_range(stream->device, to, bytes, &target);
  if (status != GRAFT_OK) return status;
  // Twice, so that it can be read from any byte on.
  uint8_t twice[2 * kWidest];
  const uint32_t width = shortest(static_cast<const uint8_t*>(pattern), pattern_bytes);
  std::memcpy(twice, pattern, width);
  std::memcpy(twice + width, pattern, width);
  const uint64_t lead = std::min<uint64_t>(bytes, (width - to % width) % width);
  const uint64_t body = (bytes - lead) / width * width;
  push_bytes(stream, target, 0, lead, twice, width, tag);
  if (body != 0) {
    push(stream, std::make_unique<Fill>(advanced(target, lead), body, twice + lead, width), tag);
  }
  push_bytes(stream, target, lead + body, bytes, twice, width, tag);
  return GRAFT_OK;
}

}  // namespace graft::veda
