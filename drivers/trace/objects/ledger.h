// drivers/trace/objects/ledger.h: what is alive in one driver: devices, memory, streams, events,
// programs.
//
// A driver may give one handle several times, as one whose streams are all alike does: records
// count. Nothing here locks: TraceLayer::mutex guards all of it, but for the atomic fields.
#ifndef GRAFT_DRIVERS_TRACE_OBJECTS_LEDGER_H_
#define GRAFT_DRIVERS_TRACE_OBJECTS_LEDGER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graft/driver.h"

namespace graft::trace {

// Of the host's steady clock.
uint64_t steady_ns();
// The calling thread's number in the system.
uint64_t calling_thread();

// A command, by its stream's id and its number there.
struct CommandPlace {
  uint64_t stream = 0;
  uint64_t number = 0;
};

struct Allocation {
  uint64_t bytes = 0;
  uint32_t count = 1;                // above 1: the driver gave it again
  bool imported = false;             // bytes is unknown
  bool mapped = false;               // of memory_map, with its neighbours
  std::vector<CommandPlace> uses{};  // the last one of each stream
};

struct HostBlock {
  uint64_t bytes = 0;
  uint32_t count = 1;  // as Allocation's
  std::vector<CommandPlace> uses{};
};

// A wait of a stream for an event's mark.
struct StreamWait {
  uint64_t command = 0;  // of the waiting stream: later ones run after the mark
  uint32_t ticket = 0;   // of the waiting stream, after the wait; 0: none
  CommandPlace mark;
  uint32_t mark_ticket = 0;  // of the mark's stream; 0: none
  bool must_fail = false;    // the mark's stream has failed before the mark
};

// A finding that holds unless the stream turns out to have failed.
struct Suspicion {
  std::string slot, call, text;
};

// What a command tells of its operator.
struct CommandTag {
  uint64_t command = 0;
  uint32_t tag = 0;
};
// Of a command whose failure may bear another one's tag: a graph's, or of a stream that is waited
// for.
constexpr uint32_t kAnyTag = UINT32_MAX;

// Bytes of pinned memory that a copy will change, and what the layer put there.
struct Landing {
  uint64_t command = 0;
  volatile uint64_t* at = nullptr;
  uint64_t sign = 0;
};

// A copy to the host that has not ended (objects/results.h).
struct Result {
  uint64_t command = 0;
  uint64_t to = 0, bytes = 0;  // the host's memory
  std::string key;             // of the stream or group
  std::shared_ptr<void> kept;  // the memory, if it is the layer's own
};

struct StreamRecord {
  uint64_t id = 0;
  graft_stream handle = nullptr;
  graft_device device = nullptr;
  uint32_t count = 0;
  std::atomic<uint64_t> queued{0};  // commands so far
  uint64_t done = 0;                // of them, known to have ended
  uint64_t good = 0;                // of them, a wait has said that they did not fail
  uint32_t good_ticket = 0;         // likewise of tickets
  bool told = false;                // good by an error that was reported
  uint64_t inside = 0;              // the thread that calls a slot on it; 0: none
  std::atomic<uint64_t> thread{0};  // that queued the last command
  std::vector<StreamWait> waits;
  std::vector<Suspicion> suspicions;
  std::vector<Landing> landings;
  std::vector<Result> results;
  std::deque<CommandTag> tags;        // of the last commands that are not known to be good
  std::vector<uint32_t> failed_tags;  // one of them failed, as the last error said; may be empty
  uint64_t busy_ns = 0;               // since when stream_query says BUSY; 0: it does not
  uint64_t busy_queued = 0;           // commands, at that time
  uint64_t last_callback = 0;         // the last command that calls the caller's function
  std::atomic<uint32_t> callbacks{0}, callbacks_done{0};
  uint64_t records_due = 0, records_told = 0;  // of the profiler, while it traces the device
  bool wrapped = false;                        // by stream_wrap
  uint64_t native_handle = 0;
  bool has_native_handle = false;
  // Tickets (objects/probes.h).
  volatile uint32_t* word = nullptr;   // the last ticket that arrived; null: no probes
  graft_address ticket_table = 0;      // of the device
  std::atomic<uint32_t> tickets{0};    // queued so far
  std::atomic<uint64_t> ticketed{0};   // queued when the last ticket was
  std::atomic<uint32_t> untrusted{0};  // tickets up to this may have been lost to an error
};

struct Mark {
  bool set = false;
  bool passed = false;  // a slot said so
  CommandPlace place;
  uint32_t ticket = 0;
  uint64_t asked_ns = 0;       // when event_record was called
  uint32_t ticket_behind = 0;  // queued after it, if it is timed; 0: none
  uint64_t passed_ns = 0;      // when it was known to be passed; 0: not yet
  uint64_t busy_ns = 0;        // since when event_query says BUSY; 0: it does not
};

struct EventRecord {
  graft_device device = nullptr;
  uint32_t count = 0;
  bool timed = false;
  Mark mark;
};

struct ProgramRecord {
  graft_device device = nullptr;
  uint32_t count = 0;
  uint64_t content = 0;            // hash of the blob or source
  bool asked = false;              // for a kernel that does not exist
  std::vector<CommandPlace> uses;  // launches
};

struct KernelRecord {
  graft_program program = nullptr;  // null: of the driver's pack
  uint64_t content = 0;             // of the program that it was found in
};

// A plan, graph, group or executable.
struct OtherRecord {
  graft_device device = nullptr;
  uint32_t count = 0;
  uint64_t workspace_bytes = 0;  // of a plan
  std::string name;              // of a group: the same on all its ranks
};

struct DeviceRecord {
  uint32_t ordinal = 0;
  uint32_t count = 0;
  graft_device_properties properties{};
  bool lost = false;
  std::map<graft_address, Allocation> memory;
  std::map<graft_address, uint64_t> reserved;  // bytes of addresses from memory_reserve
  std::map<uint64_t, HostBlock> host;
  uint64_t held_bytes = 0, most_bytes = 0;  // of memory: now, and at most so far
  uint64_t changes = 0;                     // of held_bytes
  std::unordered_map<uint64_t, graft_stream> native_handles;
  graft_address tickets = 0;  // objects/probes.h; 0: none
  bool tried_tickets = false;
  graft_program count_program = nullptr;  // objects/launch_probe.h
  graft_kernel count_kernel = nullptr;
  bool tried_count_kernel = false;
  uint32_t streams_made = 0;
  // Trials that were made (objects/trials.h).
  bool tried_queries = false, tried_marks = false;
  std::unordered_set<graft_device> tried_peers;
  bool asked_operations = false;
  bool traced = false;                // by graft.profiler
  std::atomic<uint64_t> commands{0};  // of all its streams
};

struct ObjectLedger {
  std::unordered_map<graft_device, DeviceRecord> devices;
  std::unordered_map<graft_stream, std::shared_ptr<StreamRecord>> streams;
  std::unordered_map<uint64_t, std::shared_ptr<StreamRecord>> stream_ids;
  std::unordered_map<graft_event, EventRecord> events;
  std::vector<graft_event> timed_marks;  // of these it is not known when the mark is passed
  std::unordered_map<graft_program, ProgramRecord> programs;
  std::unordered_map<graft_kernel, KernelRecord> kernels;
  std::unordered_map<const void*, OtherRecord> others;
  std::unordered_set<const void*> ended;  // handles that were destroyed
  std::unordered_map<uint32_t, graft_device_properties> properties;
  uint64_t next_stream = 1;
  // What a driver may write, or call, late; kept as long as the layer.
  std::vector<std::shared_ptr<void>> lent;
  std::function<void(const Result& result)> tell;  // of a result that has come; may be empty

  // Commands of stream up to number have ended, and what they waited for. good: without an error.
  void complete(StreamRecord& stream, uint64_t number, uint32_t good_ticket = 0, bool good = false);
  // The first use that may still run; its stream's place, or nothing.
  std::optional<CommandPlace> unfinished(const std::vector<CommandPlace>& uses) const;
  // Notes that a command uses something.
  void use(std::vector<CommandPlace>& uses, CommandPlace place) const;

  // The caller holds more or fewer bytes of the device's memory.
  static void hold(DeviceRecord& device, uint64_t bytes);
  static void let_go(DeviceRecord& device, uint64_t bytes);

  // The pinned block around a host address; null if there is none.
  static HostBlock* pinned(DeviceRecord& device, uint64_t address, uint64_t* out_begin);

  // The allocation around address; null if there is none.
  static Allocation* around(DeviceRecord& device, graft_address address, graft_address* out_begin);

  // "is not known", or "was destroyed", of a handle that no record has.
  const char* fate_of(const void* handle) const;
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_OBJECTS_LEDGER_H_
