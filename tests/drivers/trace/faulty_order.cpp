// tests/drivers/trace/faulty_order.cpp: drivers whose commands leave their order, or their stream.
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "graft/extensions.h"
#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {
namespace {

std::mutex mutex;  // guards what follows of each variant

// The first four marks are not sent before somebody waits.
std::map<graft_event, graft_stream> held_back;
void send(graft_event event) {
  const std::lock_guard lock(mutex);
  held_back.erase(event);
}
void holds_marks_back(graft_driver_table& t) {
  t.event_record = [](graft_event event, graft_stream s) {
    static int records = 0;
    const std::lock_guard lock(mutex);
    held_back.erase(event);
    if (++records <= 4) held_back[event] = s;
    return base.event_record(event, s);
  };
  t.event_query = [](graft_event event) {
    const std::lock_guard lock(mutex);
    return held_back.contains(event) ? GRAFT_BUSY : base.event_query(event);
  };
  t.event_synchronize = [](graft_event event) {
    send(event);
    return base.event_synchronize(event);
  };
  t.event_synchronize_within = [](graft_event event, uint64_t timeout_ns) {
    send(event);
    return base.event_synchronize_within(event, timeout_ns);
  };
  t.stream_synchronize = [](graft_stream s) {
    {
      const std::lock_guard lock(mutex);
      std::erase_if(held_back, [&](const auto& one) { return one.second == s; });
    }
    return base.stream_synchronize(s);
  };
  t.stream_synchronize_within = nullptr;
  t.stream_query = nullptr;
}

// Each tenth fill after the first fails late, with a tag that no command had.
void tells_other_tags(graft_driver_table& t) {
  static std::map<graft_stream, int> failed;
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    static int fills = 0;
    const std::lock_guard lock(mutex);
    if (++fills % 10 == 1 && fills > 1) failed[s] = 1;
    return base.fill(s, to, bytes, pattern, pattern_bytes, tag);
  };
  t.stream_synchronize = [](graft_stream s) {
    base.stream_synchronize(s);
    const std::lock_guard lock(mutex);
    return std::exchange(failed[s], 0) != 0 ? GRAFT_LAUNCH_FAILED : GRAFT_OK;
  };
  t.stream_error = [](graft_stream, uint32_t* out_tag, char* out_text, size_t capacity) {
    *out_tag = 424242;
    if (capacity != 0) *out_text = '\0';
    return GRAFT_OK;
  };
  t.stream_wait_event = nullptr;
  t.stream_synchronize_within = nullptr;
  t.stream_query = nullptr;
  t.extension = nullptr;
}

#if !defined(__SANITIZE_THREAD__)  // it finds these two by itself

// Copies from the host's memory pass through one buffer, for which only its last stream waits.
void shares_staging(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    static std::vector<uint8_t> buffer(4 << 20);
    static graft_stream last = nullptr;
    if (kind != GRAFT_HOST_TO_DEVICE || bytes == 0 || bytes > buffer.size()) {
      return base.copy(s, to, from, bytes, kind, tag);
    }
    const std::lock_guard lock(mutex);
    if (last == s) base.stream_synchronize(s);
    last = s;
    std::memcpy(buffer.data(), reinterpret_cast<const void*>(from), bytes);
    return base.copy(s, to, reinterpret_cast<uint64_t>(buffer.data()), bytes, kind, tag);
  };
}

// Copies between devices run on queues of their own.
std::map<graft_stream, graft_device> devices;
void copies_peers_aside(graft_driver_table& t) {
  t.stream_create = [](graft_device device, int32_t priority, graft_stream* out) {
    const std::lock_guard lock(mutex);
    const graft_status status = base.stream_create(device, priority, out);
    if (status == GRAFT_OK) devices[*out] = device;
    return status;
  };
  t.peer_copy = [](graft_stream s, graft_address to, graft_device from_device, graft_address from,
                   uint64_t bytes, uint32_t tag) {
    static std::map<graft_device, graft_stream> queues;
    const std::lock_guard lock(mutex);
    graft_stream& queue = queues[devices[s]];
    graft_status status = GRAFT_OK;
    if (queue == nullptr) status = base.stream_create(devices[s], 0, &queue);
    if (status == GRAFT_OK) status = base.peer_copy(queue, to, from_device, from, bytes, tag);
    return status == GRAFT_OK ? base.stream_synchronize(queue) : status;
  };
}

// All launches of a kernel put their arguments into one block, which no lock guards.
void shares_arguments(graft_driver_table& t) {
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    static std::map<graft_kernel, std::vector<graft_argument>> blocks;
    graft_launch own = *launch;
    std::unique_lock lock(mutex);
    std::vector<graft_argument>& block = blocks[kernel];
    if (block.size() < own.argument_count) block.resize(own.argument_count);
    lock.unlock();
    for (uint32_t i = 0; i < own.argument_count; ++i) {
      block.at(i) = launch->arguments[i];
      std::this_thread::sleep_for(std::chrono::microseconds(20));  // so that launches do meet
    }
    own.arguments = block.data();
    return base.kernel_launch(s, kernel, &own);
  };
}

#define GRAFT_RACING(VARIANT)                                                    \
  VARIANT(shares_staging, "wrong-bytes", "two streams share a staging buffer")   \
  VARIANT(copies_peers_aside, "unordered", "copies between devices run at once") \
  VARIANT(shares_arguments, "-", "two threads mix up their launches")
#else
#define GRAFT_RACING(VARIANT)
#endif

// Each rank begins its sums with its own part: the last bits differ.
graft_collectives_table sums;
std::map<graft_group, uint32_t> ranks;
void sums_by_rank(graft_driver_table& t) {
  t.extension = [](const char* name, uint32_t version, const void** out_table) {
    const graft_status status = base.extension(name, version, out_table);
    if (status != GRAFT_OK || std::string_view(name) != "graft.collectives") return status;
    static const auto* const theirs = static_cast<const graft_collectives_table*>(*out_table);
    sums = *theirs;
    sums.group_create = [](graft_device device, const uint8_t* id, uint32_t rank, uint32_t size,
                           int64_t timeout_ns, graft_group* out) {
      const graft_status made = theirs->group_create(device, id, rank, size, timeout_ns, out);
      const std::lock_guard lock(mutex);
      if (made == GRAFT_OK) ranks[*out] = rank;
      return made;
    };
    sums.all_reduce = [](graft_stream s, graft_group group, graft_address send,
                         graft_address receive, uint64_t count, uint32_t dtype, uint32_t reduction,
                         uint32_t tag) {
      const graft_status done =
          theirs->all_reduce(s, group, send, receive, count, dtype, reduction, tag);
      const std::lock_guard lock(mutex);
      const auto last_bits = static_cast<uint8_t>(ranks[group]);
      if (done != GRAFT_OK || count == 0) return done;
      return base.fill(s, receive, 1, &last_bits, 1, tag);
    };
    *out_table = &sums;
    return status;
  };
}

// What an allocation took before it failed stays taken.
void keeps_room(graft_driver_table& t) {
  t.memory_allocate = [](graft_device device, uint64_t bytes, graft_address* out) {
    graft_address kept = 0;
    const graft_status status = base.memory_allocate(device, bytes, out);
    if (status == GRAFT_OUT_OF_MEMORY) base.memory_allocate(device, 1 << 20, &kept);
    return status;
  };
}

#define GRAFT_FAULTY(VARIANT)                                            \
  VARIANT(sums_by_rank, "-", "ranks get unlike sums")                    \
  VARIANT(keeps_room, "kept-memory", "a failed allocation keeps memory") \
  VARIANT(holds_marks_back, "never-sent", "queries send no command")     \
  VARIANT(tells_other_tags, "other-tag", "a late error's tag is another command's")
constexpr Variant kVariants[] = {GRAFT_FAULTY(GRAFT_VARIANT_ROW) GRAFT_RACING(GRAFT_VARIANT_ROW)};

}  // namespace

std::span<const Variant> faulty_order() { return kVariants; }

}  // namespace graft::driver_test
