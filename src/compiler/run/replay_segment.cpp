// src/compiler/run/replay_segment.cpp: consecutive steps of a run whose memory comes and goes
// together.
#include "compiler/run/replay_segment.h"

#include <numeric>
#include <utility>

namespace graft::compiler {

namespace {

// Of memory that a unit is the first to need, that nothing after it needs, and for itself.
struct UnitBytes {
  uint64_t begun = 0, past = 0, scratch = 0;
};

std::vector<UnitBytes> unit_bytes(const StepMemory& memory, const Placement& placement,
                                  std::span<const uint64_t> given,
                                  std::span<const uint64_t> scratch) {
  const auto taken = [](uint64_t bytes) { return CapturedRun::in_scratch(bytes); };
  std::vector<UnitBytes> units;
  for (const StepMemory::Step& step : memory.steps) {
    UnitBytes& unit = units.emplace_back();
    unit.scratch = scratch[units.size() - 1];
    for (uint32_t output : step.outputs) unit.begun += taken(placement.room[output]);
    for (uint32_t buffer : step.buffers) unit.begun += taken(placement.bytes[buffer]);
    for (uint32_t buffer : step.past_buffers) unit.past += taken(placement.bytes[buffer]);
    for (uint32_t input : step.past_inputs) unit.past += taken(given[input]);
  }
  return units;
}

std::vector<uint32_t> ends_of(const std::vector<UnitBytes>& units, uint64_t live) {
  uint64_t peak = 0, now = live;
  uint64_t held = 0, scratch = 0;  // of the stretch: past, but not given back yet, and the most
  for (const UnitBytes& unit : units) {
    peak = std::max(peak, now + unit.begun + unit.scratch);
    now = now + unit.begun - unit.past;
  }
  // Without it, a few bytes between two large steps would keep these apart.
  peak += peak / 256;
  std::vector<uint32_t> ends;
  now = live;
  for (uint32_t i = 0; i < units.size(); ++i) {
    scratch = std::max(scratch, units[i].scratch);
    if (now + units[i].begun + scratch > peak) {
      now -= std::exchange(held, 0);
      scratch = units[i].scratch;
      ends.push_back(i);
    }
    now += units[i].begun;
    held += units[i].past;
  }
  if (!units.empty()) ends.push_back(static_cast<uint32_t>(units.size()));
  return ends;
}

}  // namespace

std::vector<ReplaySegment> cut(const StepMemory& memory, const Placement& placement,
                               std::span<const uint64_t> given, std::span<const uint64_t> scratch,
                               std::span<const uint32_t> units) {
  uint64_t live = 0;
  for (const uint64_t bytes : given) live += CapturedRun::in_scratch(bytes);
  std::vector<uint32_t> ends(memory.steps.size());
  std::iota(ends.begin(), ends.end(), 1);
  if (!scratch.empty()) ends = ends_of(unit_bytes(memory, placement, given, scratch), live);
  std::vector<ReplaySegment> stretches;
  uint32_t unit = 0;
  size_t step = 0;
  for (const uint32_t end : ends) {
    ReplaySegment& stretch = stretches.emplace_back();
    stretch.first = step, stretch.first_unit = unit;
    while (step < units.size() && units[step] < end) ++step;
    stretch.end = step, stretch.past_units = unit = end;
  }
  return stretches;
}

}  // namespace graft::compiler
