// src/kernels/launch/error_record.cpp: where kernels that index by data report a position out of
// range.
#include "kernels/launch/error_record.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "runtime/driver/op_trace.h"
#include "runtime/driver/open_device.h"

namespace graft {
namespace {

class ErrorRecord {
 public:
  explicit ErrorRecord(Stream& stream) : stream_(stream) {
    OpenDevice& device = stream.device();
    const graft_driver_table& table = device.driver().table();
    // Not from the allocator: its statistics count the user's memory.
    device.check(
        Driver::call(table.memory_allocate, device.handle(), sizeof(IndexError), &address_),
        "allocating an error record");
    device.own(address_);
    clear();
  }

  graft_address arm() {
    const auto ask = [](Stream&, void* record) { static_cast<ErrorRecord*>(record)->check(); };
    stream_.arm({ask, this, address_, sizeof(IndexError)});
    return address_;
  }

 private:
  void clear() {
    const uint32_t zero = 0;
    stream_.fill(address_, sizeof(IndexError), &zero, sizeof(zero));
  }

  void check() {
    IndexError error{};
    stream_.read(&error, address_, sizeof(error));
    if (error.code == static_cast<int32_t>(IndexErrorCode::kNone)) return;
    clear();
    stream_.synchronize();  // a graph that was captured here may be replayed on another stream
    if (error.code == static_cast<int32_t>(IndexErrorCode::kAssertion)) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  op_name(static_cast<uint32_t>(error.index)) + " (" + op_name(error.tag) + " on " +
                      stream_.device().name() + ")" + op_trace_note(error.tag));
    }
    std::string op = op_name(error.tag);
    if (op.empty()) op = "an indexing operation";
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        op + ": index " + std::to_string(error.index) + " is out of range on " +
            stream_.device().name() +
            "; the kernel clamped the index, so the results of this call are undefined. The "
            "device stays usable. Check the indices (or targets) against the size of the "
            "dimension." +
            op_trace_note(error.tag));
  }

  Stream& stream_;
  graft_address address_ = 0;
};

}  // namespace

graft_address error_record(Stream& stream) {
  static std::mutex mutex;
  // Never destroyed: streams refer to their records until the process ends.
  static auto& records = *new std::map<Stream*, std::unique_ptr<ErrorRecord>>();
  std::lock_guard<std::mutex> lock(mutex);
  auto& record = records[&stream];
  if (record == nullptr) record = std::make_unique<ErrorRecord>(stream);
  return record->arm();
}

}  // namespace graft
