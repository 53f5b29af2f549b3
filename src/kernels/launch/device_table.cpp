// src/kernels/launch/device_table.cpp: numbers made on the host that kernels read again and again.
#include "kernels/launch/device_table.h"

#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/stream/device.h"

namespace graft {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;

struct Tables {
  using Entry = std::pair<std::string, std::shared_ptr<const DeviceTable>>;
  std::list<Entry> recent;  // most recently used first
  std::map<std::string, std::list<Entry>::iterator> entries;
  uint64_t bytes = 0;
};

void drop_oldest(Tables& tables) {
  tables.bytes -= tables.recent.back().second->bytes();
  tables.entries.erase(tables.recent.back().first);
  tables.recent.pop_back();
}

}  // namespace

DeviceTable::DeviceTable(Stream& stream, std::vector<std::byte> bytes)
    : allocator_(stream.device().allocator()), block_(allocator_.allocate(bytes.size(), stream)) {
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
  static auto& devices = *new std::map<Device*, Tables>();
  std::unique_lock<std::mutex> lock(mutex);
  Tables& tables = devices[&stream.device()];
  auto found = tables.entries.find(name);
  if (found == tables.entries.end()) {
    lock.unlock();  // the copy is waited for, and who wants the lock may hold Python's
    auto made = std::make_shared<const DeviceTable>(stream, make());
    lock.lock();
    found = tables.entries.find(name);
    if (found == tables.entries.end()) {
      tables.recent.emplace_front(name, std::move(made));
      found = tables.entries.emplace(name, tables.recent.begin()).first;
      tables.bytes += tables.recent.front().second->bytes();
      while (tables.bytes > kMostBytes && tables.recent.size() > 1) drop_oldest(tables);
    }
  }
  tables.recent.splice(tables.recent.begin(), tables.recent, found->second);
  std::shared_ptr<const DeviceTable> table = tables.recent.front().second;
  table->used_by(stream);
  return table;
}

}  // namespace graft
