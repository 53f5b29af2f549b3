// src/compiler/run/replay_segment.h: consecutive steps of a run whose memory comes and goes
// together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compiler/plan/step_memory.h"
#include "compiler/run/captured_run.h"

namespace graft::compiler {

// Steps of a run from first on and before end, and the commands of one run of theirs, which later
// runs with the same sizes give again. Not thread-safe.
class ReplaySegment {
 public:
  size_t first = 0, end = 0;                // steps
  uint32_t first_unit = 0, past_units = 0;  // the units that they belong to

  // Bytes of the arena that the next run() needs for what is noted.
  uint64_t arena_bytes() const { return captured_.arena_bytes(); }

  bool noted() const { return notes_ > 0; }
  // For steps that have run with these sizes before: the next run is noted.
  void note_next() { until_note_ = 0; }

  // Enqueues the steps. run_step(step) runs one; repeats(step): whether its commands may be given
  // again. whole: nothing is noted, and nothing given again. bases: the memory that the steps may
  // name. memory: CapturedRun::end()'s.
  template <class RunStep, class Repeats>
  void run(Stream& stream, bool whole, std::span<const BaseMemory> bases, graft_address arena,
           const RunMemory* memory, RunStep&& run_step, Repeats&& repeats) {
    const bool again = !whole && captured_.fits(bases);
    const bool note = !whole && !again && until_note_ == 0 && notes_ < kMostNotes;
    if (again) captured_.move_to(bases, arena);
    if (note) captured_.begin(bases);
    for (size_t i = first; i < end;) {
      const size_t next = again ? captured_.give(i, stream) : i;
      if (next == i && note && repeats(i))
        captured_.note(i, stream, [&] { run_step(i); });
      else if (next == i)
        run_step(i);
      i = std::max(i + 1, next);
    }
    if (note) captured_.end(stream.device(), memory), ++notes_;
    until_note_ = again || note ? kMostMisfits : std::max(0, until_note_ - 1);
  }

 private:
  // Runs of certain sizes before one is noted: the first compiles kernels and fills caches. Notes
  // of runs whose memory then came in ever new ways are not made for ever.
  static constexpr int kRunsBefore = 1, kMostMisfits = 4, kMostNotes = 8;

  CapturedRun captured_;
  int until_note_ = kRunsBefore, notes_ = 0;
};

// Cuts a run whose memory comes before the first unit of a stretch and goes after its last one:
// each is as long as it may be with a peak not more than a 256th above that of units which take and
// give memory one by one. placement: the bytes that the run's memory takes. given: by input, the
// bytes that go back when it is past. scratch: by unit; where nothing is known, empty: each unit is
// a stretch then. units: the unit of each step, ascending.
std::vector<ReplaySegment> cut(const StepMemory& memory, const Placement& placement,
                               std::span<const uint64_t> given, std::span<const uint64_t> scratch,
                               std::span<const uint32_t> units);

}  // namespace graft::compiler
