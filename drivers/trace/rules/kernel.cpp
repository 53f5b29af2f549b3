// drivers/trace/rules/kernel.cpp: rules of programs, kernels and launches.
#include <bit>
#include <string_view>
#include <utility>

#include "objects/guard.h"
#include "objects/launch_probe.h"
#include "rules/checks.h"
#include "rules/hooks.h"

namespace graft::trace {

void KernelBefore::program_load(TraceCall& call, graft_device, const void*& blob, size_t bytes,
                                graft_program*) {
  call.content = std::hash<std::string_view>{}({static_cast<const char*>(blob), bytes});
  blob = guarded_bytes(call, blob, bytes);
}

void KernelAfter::program_load(TraceCall& call, graft_status status, graft_device device,
                               const void*, size_t, graft_program* out_program) {
  if (status == GRAFT_OK) add_program(call, device, *out_program, call.content);
}

void add_program(TraceCall& call, graft_device device, graft_program program, uint64_t content) {
  if (program == nullptr) {
    call.driver_broke("null-result", "OK without a program", "Return a handle.");
    return;
  }
  const std::lock_guard lock(call.layer.mutex);
  ProgramRecord& record = call.layer.ledger.programs[program];
  record.device = device;
  record.content = content;
  ++record.count;
  call.layer.ledger.ended.erase(program);
}

// REQUIRES: the mutex is held.
static ProgramRecord* find_program(TraceCall& call, graft_program handle) {
  const auto found = call.layer.ledger.programs.find(handle);
  if (found != call.layer.ledger.programs.end()) return &found->second;
  call.caller_broke("dead-program", std::string("the program ") + call.layer.ledger.fate_of(handle),
                    "Use a program until program_unload.");
  return nullptr;
}

void KernelBefore::program_unload(TraceCall& call, graft_program handle) {
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  ProgramRecord* const program = find_program(call, handle);
  if (program == nullptr) return;
  call.device = program->device;
  if (ledger.unfinished(program->uses)) {
    call.caller_broke("unloaded-in-use", "a launch of its kernels may still run",
                      "Wait for the launches before program_unload.");
  }
  if (call.is_refused() || --program->count != 0) return;
  std::erase_if(ledger.kernels, [&](const auto& row) { return row.second.program == handle; });
  ledger.programs.erase(handle);
  ledger.ended.insert(handle);
}

void KernelBefore::kernel_find(TraceCall& call, graft_device, graft_program program, const char*,
                               graft_kernel*) {
  if (program == nullptr) return;
  const std::lock_guard lock(call.layer.mutex);
  find_program(call, program);
}

// Whether this is the first kernel of the program.
static bool asks_for_nothing(TraceCall& call, graft_program program) {
  const std::lock_guard lock(call.layer.mutex);
  const auto found = call.layer.ledger.programs.find(program);
  return found != call.layer.ledger.programs.end() && !std::exchange(found->second.asked, true);
}

void KernelAfter::kernel_find(TraceCall& call, graft_status status, graft_device,
                              graft_program program, const char*, graft_kernel* out) {
  if (status != GRAFT_OK) return;
  if (*out == nullptr) {
    call.driver_broke("null-result", "OK without a kernel", "Return NOT_FOUND.");
    return;
  }
  if (asks_for_nothing(call, program)) {
    graft_kernel none = nullptr;
    if (call.layer.driver().kernel_find(call.device, program, "graft_trace_asks_for_no_kernel",
                                        &none) == GRAFT_OK) {
      call.driver_broke("any-name", "found a kernel that does not exist", "Return NOT_FOUND.");
    }
    call.layer.forget_failure();
  }
  const std::lock_guard lock(call.layer.mutex);
  ObjectLedger& ledger = call.layer.ledger;
  const auto record = ledger.programs.find(program);
  const uint64_t content = record == ledger.programs.end() ? 0 : record->second.content;
  const auto [found, fresh] = ledger.kernels.emplace(*out, KernelRecord{program, content});
  // Programs of one content may share their kernels.
  if (!fresh && found->second.program != program && found->second.content != content) {
    call.driver_broke("one-kernel", "two programs of different content have one kernel",
                      "Find the kernel in the program that is given.");
  }
  found->second = {program, content};
}

void KernelBefore::kernel_launch(TraceCall& call, graft_stream, graft_kernel kernel,
                                 const graft_launch*& launch) {
  check_launch(call, launch);
  if (call.stream == nullptr) return;
  {
    const std::lock_guard lock(call.layer.mutex);
    ObjectLedger& ledger = call.layer.ledger;
    const auto found = ledger.kernels.find(kernel);
    if (found == ledger.kernels.end()) {
      call.caller_broke("dead-kernel", "no live program has the kernel",
                        "Launch kernels of programs that are loaded.");
    } else if (found->second.program != nullptr) {
      const auto program = ledger.programs.find(found->second.program);
      if (program != ledger.programs.end()) {
        ledger.use(program->second.uses, {call.stream->id, call.command});
      }
    }
  }
  const uint64_t items = launch->grid[0] * launch->group[0];
  constexpr uint64_t kSmall = 64;  // sizes of which each is a kind
  const auto width = static_cast<uint64_t>(std::bit_width(items));
  const uint64_t shape = uint64_t{32} + (items < kSmall ? items : kSmall + width);
  if (call.layer.settings.verify > 0 && !call.broken_by_caller &&
      call.layer.sampling.is_new(shape)) {
    call.witness = std::make_shared<graft_launch>(*launch);
  }
  launch = guarded_launch(call, launch);
}

void KernelAfter::kernel_launch(TraceCall& call, graft_status status, graft_stream, graft_kernel,
                                const graft_launch*) {
  const auto* const launch = static_cast<const graft_launch*>(call.witness.get());
  if (status == GRAFT_OK && !call.planted && launch != nullptr) probe_launch(call, *launch);
  if (status != GRAFT_INVALID_ARGUMENT || call.broken_by_caller || call.planted) return;
  if (call.stream == nullptr) return;
  call.driver_broke("refused", "refused a launch that keeps to the rules with INVALID_ARGUMENT",
                    "Run it, or state the device's limits in its properties.");
}

}  // namespace graft::trace
