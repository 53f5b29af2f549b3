// drivers/trace/call/call.cpp: one call of a slot, while the layer looks at it.
#include "call/call.h"

#include <utility>

#include "objects/guard.h"
#include "objects/probes.h"
#include "rules/checks.h"

namespace graft::trace {

std::string TraceCall::text() const {
  std::string text = slot_name(table, slot) + "(";
  bool first = true;
  for (const ShownArgument& one : describe(arguments)) {
    text += (first ? "" : ", ") + one.name + "=" + one.value;
    first = false;
  }
  return text + ")";
}

static void add(TraceCall& call, Finding finding) {
  finding.call = call.text();
  const std::string line = call.layer.findings.add(slot_name(call.table, call.slot), finding);
  if (!std::exchange(call.broken, true)) call.first_finding = line;
}

void TraceCall::driver_broke(const char* rule, std::string text, const char* remedy) {
  add(*this, {Culprit::kDriver, rule, "", std::move(text), remedy});
}

void TraceCall::caller_broke(const char* rule, std::string text, const char* remedy) {
  broken_by_caller = true;
  add(*this, {Culprit::kCaller, rule, "", std::move(text), remedy});
}

graft_status strike(TraceCall& call, const Strike& strike, graft_stream stream, uint32_t tag) {
  call.planted = true;
  const std::string text = "graft-driver-trace: a planted fault of " +
                           slot_name(call.table, call.slot) + ": " + status_text(strike.status);
  if (strike.late) {
    call.layer.held.set(stream, {strike.status, tag, text});
    return GRAFT_OK;
  }
  if (strike.status != GRAFT_OK) call.layer.keep_text(text);
  return strike.status;
}

graft_status deliver(TraceCall& call, graft_status status, graft_stream stream) {
  if (status == GRAFT_BUSY) return status;
  if (status != GRAFT_OK) {
    call.layer.held.forget(stream);
    return status;
  }
  const HeldError error = call.layer.held.take(stream);
  if (error.status == GRAFT_OK) return status;
  call.layer.keep_text(error.text);
  if (call.stream != nullptr) {
    const std::lock_guard lock(call.layer.mutex);
    note_failed(call, *call.stream, call.stream->queued);
  }
  return error.status;
}

void settle(TraceCall& call, graft_status status, bool asked_driver) {
  std::string text;
  if (status != GRAFT_OK && status != GRAFT_BUSY && asked_driver) {
    const bool answer = status == GRAFT_NOT_FOUND || status == GRAFT_UNSUPPORTED;
    if (call.layer.results.is_open() && !answer) {
      call.layer.results.write_failure(slot_name(call.table, call.slot), status_text(status));
    }
    text = call.layer.driver_text();
    call.layer.keep_text(text);
    call.layer.note_failure(text);
    constexpr uint64_t kTexts = 1;  // a kind that no command has
    if (call.layer.settings.rules && text.size() >= 8 && call.layer.sampling.is_new(kTexts) &&
        !call.layer.cuts_texts()) {
      call.driver_broke("past-struct", "last_message wrote a longer text than its capacity",
                        "Cut the text to capacity, and end it by a zero byte.");
    }
  }
  if (!call.layer.settings.rules) return;
  if (asked_driver) check_status(call, status, text);
  if (asked_driver) check_prompt(call);
  report_late_reads(call);
}

graft_status refuse(TraceCall& call, graft_status otherwise) {
  if (!call.layer.settings.strict || !call.broken) return otherwise;
  call.layer.keep_text("graft-driver-trace: " + call.first_finding);
  return otherwise == GRAFT_OK ? GRAFT_INTERNAL : otherwise;
}

}  // namespace graft::trace
