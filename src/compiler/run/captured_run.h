// src/compiler/run/captured_run.h: the commands of a graph's steps, given again at other addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/plan/memory_plan.h"
#include "runtime/stream/command_capture.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// Memory that a run is given: a base.
struct BaseMemory {
  graft_address address = 0;
  uint64_t bytes = 0;
};

// What lies in the arena and the outputs of a noted run, and when: what its steps took from the
// allocator lies in between then.
struct RunMemory {
  const MemoryPlan& plan;                  // times are units
  const Placement& placement;              // of the plan
  std::span<const uint32_t> units;         // by step
  std::span<const graft_address> outputs;  // by output of the plan
};

// One run's commands, for runs with the same sizes. What the steps took from the allocator lies in
// memory of the run then, and what they asked of the host is not asked again. Not thread-safe.
class CapturedRun {
 public:
  // Of scratch memory, as the caching allocator's.
  static constexpr uint64_t kScratchAlignment = 512;
  static constexpr uint64_t in_scratch(uint64_t bytes) {
    return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  }

  // Forgets everything; the run that comes is noted. bases: its memory; bytes 0 is nothing.
  void begin(std::span<const BaseMemory> bases);

  // Runs a step and notes its commands. Steps come in their order; those that do not come stay out,
  // as do those that a capture cannot hold and those that use memory no base covers.
  template <class Run>
  void note(size_t step, Stream& stream, Run&& run) {
    CommandCapture capture(stream);
    run();
    keep(step, capture);
  }

  // After the last step. Where the driver has graphs, each piece of consecutive steps becomes one.
  // memory: of all steps; null: they have no arena, and nothing may lie in their outputs.
  void end(OpenDevice& device, const RunMemory* memory);

  // Forgets everything; nothing is noted.
  void clear();

  // Bytes of the arena, with what the steps took from the allocator; 0 before end().
  uint64_t arena_bytes() const { return placement_.total; }

  // Whether the commands hold for other bases: of the same number, aligned alike, and where memory
  // overlapped it does so in the same way. False before end() and when no step was kept.
  bool fits(std::span<const BaseMemory> bases) const;

  // Sets the addresses of the commands. arena: of arena_bytes(). REQUIRES: fits(bases).
  void move_to(std::span<const BaseMemory> bases, graft_address arena);

  // Enqueues the commands of step, and of those after it as far as they are known; gives the step
  // that comes next: step itself where it was not kept.
  size_t give(size_t step, Stream& stream);

 private:
  // A temporary of a step, which lives from one of its commands to another, both included.
  struct Scratch {
    CommandCapture::Temporary memory;  // by commands of the part
    size_t step = 0;
    uint32_t first = 0, last = 0;
    graft_place place;  // in the run's memory, from end() on
  };
  // Consecutive steps.
  struct Part {
    size_t first = 0, end = 0;  // steps
    CommandList commands;
    std::vector<Scratch> scratch;
  };
  // A base that begins within another one.
  struct Overlap {
    uint32_t base, within;
  };

  void keep(size_t step, CommandCapture& capture);
  void find_overlaps();
  void place_temporaries(const RunMemory* memory);
  std::optional<graft_place> locate(const Part& part, size_t command, graft_address address) const;
  std::optional<graft_place> in_a_base(graft_address address) const;
  bool make_relative(Part* part) const;

  bool ended_ = false;
  std::vector<Part> parts_;
  std::vector<BaseMemory> seen_;  // the bases of the noted run
  std::vector<uint32_t> sorted_;  // those with memory, by address
  std::vector<Overlap> overlaps_;
  std::vector<graft_address> addresses_;  // kArena, then the bases
  Placement placement_;                   // of the run's memory and all parts' temporaries
};

}  // namespace graft::compiler
