// drivers/trace/call/call.h: one call of a slot, while the layer looks at it.
#ifndef GRAFT_DRIVERS_TRACE_CALL_CALL_H_
#define GRAFT_DRIVERS_TRACE_CALL_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "layer.h"

namespace graft::trace {

// One argument of the call, for findings and the log.
struct ShownArgument {
  std::string name, value;
};

// The hooks of rules/hooks.h share it. Belongs to the calling thread.
struct TraceCall {
  using Describe = std::vector<ShownArgument> (*)(const void* arguments);
  TraceCall(TraceLayer& in_layer, const TableFacts& of_table, size_t place, Describe shows,
            const void* given)
      : layer(in_layer), table(of_table), slot(place), describe(shows), arguments(given) {}

  TraceLayer& layer;
  const TableFacts& table;
  size_t slot;
  size_t id = 0;  // of the slot, see tables.h
  Describe describe;
  const void* arguments;

  // Reports a broken rule; who broke it is in the function's name.
  void driver_broke(const char* rule, std::string text, const char* remedy);
  void caller_broke(const char* rule, std::string text, const char* remedy);
  std::string text() const;  // "copy(stream=0x1, ...)"
  // Whether strict mode keeps the call from the driver.
  bool is_refused() const { return layer.settings.strict && broken; }

  // Set by hooks.
  graft_device device = nullptr;  // that the call is about
  bool has_device = false;
  bool device_was_lost = false;
  std::shared_ptr<StreamRecord> stream;  // that the call is made on; null: none
  graft_stream stream_handle = nullptr;
  uint64_t command = 0;                // the number of the command that it queues; 0: none
  std::vector<graft_address> touched;  // allocations that the command uses
  uint64_t touched_host = 0;           // pinned memory, likewise; 0: none
  uint32_t ticket = 0;                 // objects/probes.h
  uint32_t tag = 0;                    // of the command; 0: none
  uint64_t began_ns = 0;
  uint64_t content = 0;                     // hash of a blob
  bool prompt = false;                      // nothing keeps the slot from returning
  uint64_t awaited_stream = 0;              // id of the stream that the slot waits for; 0: none
  uint32_t awaited_ticket = 0;              // that is behind what it waits for
  uint64_t held_bytes = 0, changes = 0;     // of the device, before memory_info
  std::optional<uint64_t> free_bytes;       // of the device, before the slot (rules/room.h)
  std::vector<Landing> overwritten;         // what signs took the place of
  std::shared_ptr<void> witness;            // objects/witness.h
  std::vector<std::shared_ptr<void>> kept;  // what must live until the call ends
  std::optional<bool> wants_guards;         // objects/guard.h
  std::vector<std::unique_ptr<void, void (*)(const void*)>> guards;

  // Set while the driver is called (call/active_calls.h).
  uint64_t began_tick = 0, ticks_inside = 0;

  // Set by findings: in strict mode the call fails.
  bool broken = false;
  bool broken_by_caller = false;
  bool planted = false;  // a planted fault answers in the driver's place
  std::string first_finding;
};

// What the layer does after the driver's slot, or in its place: what no slot's type changes.

// A call that a planted fault takes from the driver. tag: of the command, 0 for none.
graft_status strike(TraceCall& call, const Strike& strike, graft_stream stream, uint32_t tag);
// The status of a wait for the stream: the driver's, or an error that the stream owes.
graft_status deliver(TraceCall& call, graft_status status, graft_stream stream);
// Keeps the driver's text of a failure, and checks the rules of every slot. A failure is a result,
// too (call/result_file.h).
void settle(TraceCall& call, graft_status status, bool asked_driver);
// The status in strict mode after a finding.
graft_status refuse(TraceCall& call, graft_status otherwise);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_CALL_H_
