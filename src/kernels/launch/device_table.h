// src/kernels/launch/device_table.h: numbers made on the host that kernels read again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/memory/allocator.h"
#include "runtime/stream/stream.h"

namespace graft {

// Device memory with the numbers; freed with the last holder, in the order of the streams that got
// it.
class DeviceTable {
 public:
  // Copies the bytes and waits until they are there. REQUIRES: bytes is not empty.
  DeviceTable(Stream& stream, std::vector<std::byte> bytes);
  ~DeviceTable();
  DeviceTable(const DeviceTable&) = delete;
  DeviceTable& operator=(const DeviceTable&) = delete;

  graft_address address() const { return block_->address; }
  uint64_t bytes() const { return block_->bytes; }
  // Says that commands of the stream read the table.
  void used_by(Stream& stream) const;

 private:
  Allocator& allocator_;
  Block* block_;
};

// The table of that name on the stream's device, made at its first use; two threads that ask for it
// at once may both call make, and get one table. The least recently used ones are dropped where
// those of a device have more than 64 MiB. Thread-safe. Throws Error OUT_OF_MEMORY, and what make
// throws.
std::shared_ptr<const DeviceTable> device_table(
    Stream& stream, const std::string& name, const std::function<std::vector<std::byte>()>& make);

}  // namespace graft
