// src/runtime/platform/collective_group.cpp: ranks that compute together through a driver's
// collectives.
#include "runtime/platform/collective_group.h"

#include <algorithm>
#include <string>

#include "runtime/driver/error.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/library.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/event.h"
#include "runtime/stream/stream.h"
#include "runtime/stream/write_epochs.h"

namespace graft {
namespace {

const graft_collectives_table& require_table(OpenDevice& device) {
  device.refuse_unusable();
  const auto* table = device.driver().extension<graft_collectives_table>();
  if (table == nullptr) {
    throw Error(GRAFT_UNSUPPORTED, device.label() + " has no collectives: " +
                                       device.driver().lack_of<graft_collectives_table>() + ".");
  }
  return *table;
}

}  // namespace

bool CollectiveGroup::available(OpenDevice& device) {
  return device.driver().extension<graft_collectives_table>() != nullptr;
}

CollectiveGroup::Id CollectiveGroup::make_id(OpenDevice& device) {
  Id id{};
  device.check(Driver::call(require_table(device).group_id, device.handle(), id.data()),
               "group_id");
  return id;
}

CollectiveGroup::CollectiveGroup(OpenDevice& device, const Id& id, uint32_t rank, uint32_t size,
                                 std::chrono::nanoseconds timeout)
    : device_(device), rank_(rank), size_(size), table_(require_table(device)) {
  device.check(Driver::call(table_.group_create, device.handle(), id.data(), rank, size,
                            static_cast<int64_t>(timeout.count()), &group_),
               "group_create");
  if (group_ == nullptr) {
    throw Error(GRAFT_INTERNAL, device.label() + ": group_create returned OK but no group");
  }
  device.own(group_, table_.group_destroy);
}

CollectiveGroup::~CollectiveGroup() {
  if (forked_child() || device_.closed()) return;  // the group ended with the device
  bool done = true;
  for (Stream* stream : streams_) done &= stream->settle();
  if (!done) {  // commands that are left end now, or the group stays
    Driver::call(table_.group_abort, group_);
    for (Stream* stream : streams_) {
      if (!stream->settle()) return;
    }
  }
  if (device_.disown(group_, table_.group_destroy)) Driver::call(table_.group_destroy, group_);
}

// REQUIRES: mutex_ is held.
void CollectiveGroup::move_to(Stream& stream) {
  if (!streams_.empty() && streams_.back() == &stream) return;
  if (!streams_.empty()) {
    Stream& last = *streams_.back();
    last.refuse_recording("a collective on another stream");
    Event event(device_, false);
    event.record(last);
    stream.wait(event);
  }
  streams_.erase(std::remove(streams_.begin(), streams_.end(), &stream), streams_.end());
  streams_.push_back(&stream);
}

template <class... Parameters, class... Arguments>
void CollectiveGroup::enqueue(std::string_view what, Stream& stream, graft_address written,
                              graft_status (*slot)(Parameters...), Arguments... arguments) {
  if (&stream.device() != &device_) {
    throw Error(GRAFT_INVALID_ARGUMENT, std::string(what) + ": the group belongs to " +
                                            device_.name() + ", the stream to " +
                                            stream.device().name() +
                                            ": give a stream of the group's device.");
  }
  stream.refuse_recording(what);
  const std::lock_guard<std::mutex> lock(mutex_);
  move_to(stream);
  const auto call = [&](uint32_t tag) {
    return Driver::call(slot, stream.handle(), group_, arguments..., tag);
  };
  // A batch is one command, with its first transfer's tag.
  const bool traced = !batching_ || batch_stream_ == nullptr;
  stream.command(what, call, {{.on = traced}, written});
  if (batching_) batch_stream_ = &stream;
}

void CollectiveGroup::all_reduce(Stream& stream, graft_address send, graft_address receive,
                                 uint64_t count, graft_dtype dtype, graft_reduction reduction) {
  enqueue("all_reduce", stream, receive, table_.all_reduce, send, receive, count, dtype, reduction);
}

void CollectiveGroup::reduce(Stream& stream, graft_address send, graft_address receive,
                             uint64_t count, graft_dtype dtype, graft_reduction reduction,
                             uint32_t root) {
  enqueue("reduce", stream, receive, table_.reduce, send, receive, count, dtype, reduction, root);
}

void CollectiveGroup::broadcast(Stream& stream, graft_address send, graft_address receive,
                                uint64_t count, graft_dtype dtype, uint32_t root) {
  enqueue("broadcast", stream, receive, table_.broadcast, send, receive, count, dtype, root);
}

void CollectiveGroup::all_gather(Stream& stream, graft_address send, graft_address receive,
                                 uint64_t count, graft_dtype dtype) {
  enqueue("all_gather", stream, receive, table_.all_gather, send, receive, count, dtype);
}

void CollectiveGroup::reduce_scatter(Stream& stream, graft_address send, graft_address receive,
                                     uint64_t count, graft_dtype dtype, graft_reduction reduction) {
  enqueue("reduce_scatter", stream, receive, table_.reduce_scatter, send, receive, count, dtype,
          reduction);
}

void CollectiveGroup::send(Stream& stream, graft_address address, uint64_t count, graft_dtype dtype,
                           uint32_t peer) {
  enqueue("send", stream, 0, table_.send, address, count, dtype, peer);
}

void CollectiveGroup::receive(Stream& stream, graft_address address, uint64_t count,
                              graft_dtype dtype, uint32_t peer) {
  enqueue("receive", stream, address, table_.receive, address, count, dtype, peer);
}

void CollectiveGroup::end_batch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  batching_ = false;
  const auto end = [this](uint32_t) { return Driver::call(table_.batch_end, group_); };
  if (batch_stream_ == nullptr) return device_.check(end(0), "batch_end");
  batch_stream_->command("batch_end", end);
  if (writes_are_watched()) note_any_write(device_);
}

void CollectiveGroup::batch(const std::function<void()>& transfers) {
  device_.refuse_unusable();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    device_.check(Driver::call(table_.batch_begin, group_), "batch_begin");
    batching_ = true;
    batch_stream_ = nullptr;
  }
  try {
    transfers();
  } catch (...) {
    try {
      end_batch();
    } catch (const Error&) {  // the first error says more
    }
    throw;
  }
  end_batch();
}

void CollectiveGroup::abort() noexcept {
  if (!forked_child()) Driver::call(table_.group_abort, group_);
}

}  // namespace graft
