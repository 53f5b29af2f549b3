// src/kernels/launch/device_table.cpp: numbers made on the host that kernels read again and again.
#include "kernels/launch/device_table.h"

#include <map>
#include <mutex>
#include <utility>

#include "kernels/launch/recent.h"

namespace graft {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;

struct Tables {
  Recent<std::string, std::shared_ptr<const DeviceTable>> recent;
  uint64_t bytes = 0;
};

}  // namespace

DeviceTable::DeviceTable(Stream& stream, std::vector<std::byte> bytes)
    : allocator_(stream.allocator()), block_(allocator_.allocate(bytes.size(), stream)) {
  try {
    stream.copy(block_->address, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                GRAFT_HOST_TO_DEVICE);
    stream.settle_or_throw();
  } catch (...) {
    if (stream.given_up()) {
      stream.keep_alive(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
    }
    allocator_.free(block_);
    throw;
  }
}

DeviceTable::~DeviceTable() { allocator_.free(block_); }

void DeviceTable::used_by(Stream& stream) const { allocator_.record_stream(block_, stream); }

std::shared_ptr<const DeviceTable> device_table(
    Stream& stream, const std::string& name, const std::function<std::vector<std::byte>()>& make) {
  static std::mutex mutex;
  // Never destroyed: at exit the devices may be gone before it.
  static auto& devices = *new std::map<OpenDevice*, Tables>();
  std::unique_lock<std::mutex> lock(mutex);
  Tables& tables = devices[&stream.device()];
  const auto* found = tables.recent.find(name);
  if (found == nullptr) {
    lock.unlock();  // the copy is waited for, and who wants the lock may hold Python's
    auto made = std::make_shared<const DeviceTable>(stream, make());
    lock.lock();
    found = tables.recent.find(name);
    if (found == nullptr) {
      tables.bytes += made->bytes();
      found = &tables.recent.add(name, std::move(made));
      while (tables.bytes > kMostBytes && tables.recent.size() > 1) {
        tables.bytes -= tables.recent.drop_oldest()->bytes();
      }
    }
  }
  std::shared_ptr<const DeviceTable> table = *found;
  table->used_by(stream);
  return table;
}

}  // namespace graft
