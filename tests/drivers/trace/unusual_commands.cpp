// tests/drivers/trace/unusual_commands.cpp: right drivers whose commands, memory or slots are
// unusual.
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {
namespace {

std::mutex mutex;  // guards what follows of each variant

void plain(graft_driver_table&) {}

// Each command is done when its slot returns.
void synchronous(graft_driver_table& t) {
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    const graft_status status = base.copy(s, to, from, bytes, kind, tag);
    return status == GRAFT_OK ? base.stream_synchronize(s) : status;
  };
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    const graft_status status = base.fill(s, to, bytes, pattern, pattern_bytes, tag);
    return status == GRAFT_OK ? base.stream_synchronize(s) : status;
  };
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    const graft_status status = base.kernel_launch(s, kernel, launch);
    return status == GRAFT_OK ? base.stream_synchronize(s) : status;
  };
  t.extension = nullptr;
}

// Addresses of each device are moved by a distance, which its first allocation decides.
struct Move {
  uint64_t first = 0;  // where the device's addresses begin; 0: the distance is given
  uint64_t distance = 0;
};
std::map<graft_device, Move> moves;
std::map<graft_stream, graft_device> owners;
Move default_move;
uint64_t distance_of(graft_device device) {
  const std::lock_guard lock(mutex);
  return moves.try_emplace(device, default_move).first->second.distance;
}
uint64_t distance_of(graft_stream s) {
  std::unique_lock lock(mutex);
  const graft_device device = owners.at(s);
  lock.unlock();
  return distance_of(device);
}
graft_status allocate_moved(graft_device device, uint64_t bytes, graft_address* out) {
  graft_address given = 0;
  const graft_status status = base.memory_allocate(device, bytes + default_move.distance, &given);
  if (status != GRAFT_OK) return status;
  const std::lock_guard lock(mutex);
  Move& move = moves.try_emplace(device, default_move).first->second;
  if (move.first != 0 && move.distance == 0) move.distance = move.first - given;
  *out = given + move.distance;
  return status;
}
graft_status launch_moved(graft_stream s, graft_kernel kernel, const graft_launch* launch) {
  std::vector<graft_argument> moved(launch->arguments, launch->arguments + launch->argument_count);
  for (graft_argument& one : moved) {
    if (one.kind == GRAFT_ARGUMENT_ADDRESS && one.value != 0) one.value -= distance_of(s);
  }
  graft_launch mine = *launch;
  mine.arguments = moved.data();
  return base.kernel_launch(s, kernel, &mine);
}
void move_addresses(graft_driver_table& t) {
  t.memory_allocate = allocate_moved;
  t.memory_free = [](graft_device device, graft_address address) {
    return base.memory_free(device, address - distance_of(device));
  };
  t.stream_create = [](graft_device device, int32_t priority, graft_stream* out) {
    const graft_status status = base.stream_create(device, priority, out);
    const std::lock_guard lock(mutex);
    if (status == GRAFT_OK) owners[*out] = device;
    return status;
  };
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    return base.copy(s, to - (kind == GRAFT_DEVICE_TO_HOST ? 0 : distance_of(s)),
                     from - (kind == GRAFT_HOST_TO_DEVICE ? 0 : distance_of(s)), bytes, kind, tag);
  };
  t.fill = [](graft_stream s, graft_address to, uint64_t bytes, const void* pattern,
              uint32_t pattern_bytes, uint32_t tag) {
    return base.fill(s, to - distance_of(s), bytes, pattern, pattern_bytes, tag);
  };
  t.kernel_launch = launch_moved;
  t.peer_copy = nullptr;
  t.copy_strided = nullptr;
  t.memory_host_view = nullptr;
  t.memory_export = nullptr;
  t.memory_import = nullptr;
  t.memory_release = nullptr;
  t.extension = nullptr;
}

// Addresses begin at 1 TiB and are no pointers.
void small_addresses(graft_driver_table& t) {
  default_move = {.first = uint64_t{1} << 40};
  move_addresses(t);
  t.device_properties = [](uint32_t ordinal, graft_device_properties* properties) {
    const graft_status status = base.device_properties(ordinal, properties);
    if (status == GRAFT_OK) properties->features &= ~GRAFT_FEATURE_POINTERS_IN_MEMORY;
    return status;
  };
}

// The addresses of two devices are the same numbers.
void equal_addresses(graft_driver_table& t) {
  setenv("GRAFT_HOST_DEVICES", "2", 1);
  small_addresses(t);
}

// Addresses are odd multiples of 16, and no more is promised.
void odd_addresses(graft_driver_table& t) {
  default_move = {.distance = 16};
  move_addresses(t);
  t.device_properties = [](uint32_t ordinal, graft_device_properties* properties) {
    const graft_status status = base.device_properties(ordinal, properties);
    if (status == GRAFT_OK) properties->allocation_alignment = 16;
    return status;
  };
}

// Copies and marks wait until a wait or a query asks for them, or another command follows.
std::map<graft_stream, std::vector<std::function<graft_status()>>> waiting;
std::map<graft_event, graft_stream> recorded;
graft_status catch_up(graft_stream s) {
  std::vector<std::function<graft_status()>> ready;
  {
    const std::lock_guard lock(mutex);
    std::swap(ready, waiting[s]);
  }
  for (const auto& one : ready) {
    if (const graft_status status = one(); status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}
graft_status catch_up(graft_event event) {
  std::unique_lock lock(mutex);
  const auto found = recorded.find(event);
  if (found == recorded.end()) return GRAFT_OK;
  const graft_stream s = found->second;
  lock.unlock();
  return catch_up(s);
}
// A slot whose first argument says what to catch up with.
template <auto slot, class First, class... A>
void catch_up_first(graft_driver_table& t, graft_status (*)(First, A...)) {
  t.*slot = [](First first, A... rest) {
    const graft_status status = catch_up(first);
    return status == GRAFT_OK ? (base.*slot)(first, rest...) : status;
  };
}
template <auto... slots>
void catch_up_before(graft_driver_table& t) {
  (catch_up_first<slots>(t, base.*slots), ...);
}
void late_copies(graft_driver_table& t) {
  using Table = graft_driver_table;
  catch_up_before<&Table::fill, &Table::kernel_launch, &Table::host_callback, &Table::peer_copy,
                  &Table::stream_destroy, &Table::stream_synchronize, &Table::stream_query,
                  &Table::stream_synchronize_within, &Table::event_query, &Table::event_elapsed,
                  &Table::event_synchronize, &Table::event_synchronize_within>(t);
  t.copy = [](graft_stream s, uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind,
              uint32_t tag) {
    const std::lock_guard lock(mutex);
    waiting[s].push_back([=] { return base.copy(s, to, from, bytes, kind, tag); });
    return GRAFT_OK;
  };
  t.event_record = [](graft_event event, graft_stream s) {
    const std::lock_guard lock(mutex);
    recorded[event] = s;
    waiting[s].push_back([=] { return base.event_record(event, s); });
    return GRAFT_OK;
  };
  t.event_destroy = [](graft_event event) {
    catch_up(event);
    const std::lock_guard lock(mutex);
    recorded.erase(event);
    return base.event_destroy(event);
  };
  t.stream_wait_event = [](graft_stream s, graft_event event) {
    graft_status status = catch_up(event);
    if (status == GRAFT_OK) status = catch_up(s);
    return status == GRAFT_OK ? base.stream_wait_event(s, event) : status;
  };
  t.extension = nullptr;
}

// Each slot that may say so is there and returns UNSUPPORTED.
template <auto slot, class... A>
void refuse(graft_driver_table& t, graft_status (*)(A...)) {
  t.*slot = [](A...) { return GRAFT_UNSUPPORTED; };
}
template <auto... slots>
void refuse_all(graft_driver_table& t) {
  (refuse<slots>(t, base.*slots), ...);
}
void unsupported(graft_driver_table& t) {
  using Table = graft_driver_table;
  refuse_all<&Table::memory_host_view, &Table::program_compile, &Table::host_allocate,
             &Table::memory_export, &Table::memory_import, &Table::peer_copy,
             &Table::stream_native_handle, &Table::memory_info, &Table::event_elapsed>(t);
  t.extension = nullptr;
}

void no_callback(graft_driver_table& t) {
  t.host_callback = nullptr;
  t.stream_wait_event = nullptr;
}

void no_pinned(graft_driver_table& t) {
  t.host_allocate = nullptr;
  t.host_free = nullptr;
  t.memory_info = nullptr;
}

void silent(graft_driver_table& t) {
  t.last_message = nullptr;
  t.stream_error = nullptr;
}

void old_table(graft_driver_table& t) {
  t.abi_minor = 2;
  t.slot_count = static_cast<uint32_t>(
      (offsetof(graft_driver_table, stream_synchronize_within) - GRAFT_TABLE_PRELUDE_BYTES) / 8);
}

void required_only(graft_driver_table& t) {
#define GRAFT_REQUIRED_SLOT(name)
#define GRAFT_OPTIONAL_SLOT(name) t.name = nullptr;
#define GRAFT_LEAVE_OUT(presence, name, parameters) GRAFT_##presence##_SLOT(name)
  GRAFT_DRIVER_SLOTS(GRAFT_LEAVE_OUT)
  t.device_properties = [](uint32_t ordinal, graft_device_properties* properties) {
    const graft_status status = base.device_properties(ordinal, properties);
    if (status == GRAFT_OK && properties->struct_size > offsetof(graft_device_properties, dialect))
      properties->dialect[0] = '\0';
    return status;
  };
}

// What a launch refuses comes late, from the next synchronization.
std::map<graft_stream, graft_status> refused;
graft_status late(graft_stream s, graft_status status) {
  const std::lock_guard lock(mutex);
  const auto found = refused.find(s);
  if (found == refused.end() || status == GRAFT_BUSY) return status;
  const graft_status kept = found->second;
  refused.erase(found);
  return kept;
}
void late_errors(graft_driver_table& t) {
  t.kernel_launch = [](graft_stream s, graft_kernel kernel, const graft_launch* launch) {
    const graft_status status = base.kernel_launch(s, kernel, launch);
    const std::lock_guard lock(mutex);
    if (status != GRAFT_OK) refused[s] = status;
    return GRAFT_OK;
  };
  t.stream_synchronize = [](graft_stream s) { return late(s, base.stream_synchronize(s)); };
  t.stream_query = [](graft_stream s) { return late(s, base.stream_query(s)); };
  t.stream_synchronize_within = [](graft_stream s, uint64_t timeout_ns) {
    return late(s, base.stream_synchronize_within(s, timeout_ns));
  };
}

void many_devices(graft_driver_table&) { setenv("GRAFT_HOST_DEVICES", "16", 1); }

void no_priorities(graft_driver_table& t) {
  t.device_properties = [](uint32_t ordinal, graft_device_properties* properties) {
    const graft_status status = base.device_properties(ordinal, properties);
    if (status == GRAFT_OK) properties->priority_lowest = properties->priority_highest = 0;
    return status;
  };
}

#define GRAFT_UNUSUAL_COMMANDS(VARIANT)                                      \
  VARIANT(plain, "", "the base driver")                                      \
  VARIANT(synchronous, "", "each command is done when its slot returns")     \
  VARIANT(late_copies, "", "copies and marks run when they are waited for")  \
  VARIANT(late_errors, "", "launches fail at the next synchronization only") \
  VARIANT(small_addresses, "", "addresses that are no pointers")             \
  VARIANT(equal_addresses, "", "two devices with the same addresses")        \
  VARIANT(odd_addresses, "", "addresses that are odd multiples of 16")       \
  VARIANT(unsupported, "", "UNSUPPORTED from each slot that may say so")     \
  VARIANT(no_callback, "", "neither host_callback nor stream_wait_event")    \
  VARIANT(no_pinned, "", "no pinned memory, no memory_info")                 \
  VARIANT(silent, "", "no texts")                                            \
  VARIANT(old_table, "", "the table of ABI 0.2")                             \
  VARIANT(required_only, "", "the required slots")                           \
  VARIANT(many_devices, "", "16 devices")                                    \
  VARIANT(no_priorities, "", "one priority")
constexpr Variant kVariants[] = {GRAFT_UNUSUAL_COMMANDS(GRAFT_VARIANT_ROW)};

}  // namespace

std::span<const Variant> unusual_commands() { return kVariants; }

}  // namespace graft::driver_test
