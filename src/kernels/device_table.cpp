// src/kernels/device_table.cpp: numbers made on the host that kernels read again and again.
#include "kernels/device_table.h"

#include <list>
#include <map>
#include <mutex>
#include <utility>

#include "runtime/device.h"

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

DeviceTable::DeviceTable(Stream& stream, const std::vector<std::byte>& bytes)
    : allocator_(stream.device().allocator()), block_(allocator_.allocate(bytes.size(), stream)) {
  try {
    stream.copy(block_->address, reinterpret_cast<uint64_t>(bytes.data()), bytes.size(),
                GRAFT_HOST_TO_DEVICE);
    stream.settle();
  } catch (...) {
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
  std::lock_guard<std::mutex> lock(mutex);
  Tables& tables = devices[&stream.device()];
  const auto found = tables.entries.find(name);
  if (found != tables.entries.end()) {
    tables.recent.splice(tables.recent.begin(), tables.recent, found->second);
  } else {
    tables.recent.emplace_front(name, std::make_shared<const DeviceTable>(stream, make()));
    tables.entries.emplace(name, tables.recent.begin());
    tables.bytes += tables.recent.front().second->bytes();
    while (tables.bytes > kMostBytes && tables.recent.size() > 1) drop_oldest(tables);
  }
  std::shared_ptr<const DeviceTable> table = tables.recent.front().second;
  table->used_by(stream);
  return table;
}

}  // namespace graft
