// src/compiler/run/captured_run.cpp: the commands of a graph's steps, given again at other
// addresses.
#include "compiler/run/captured_run.h"

#include <algorithm>

namespace graft::compiler {

namespace {

// Kernels and libraries are chosen by how far an address is aligned, up to a line of the cache.
constexpr uint64_t kAlignment = 64;

// Bases of the commands: the arena and the caller's.
constexpr uint32_t kArena = 0, kFirst = 1;

// Moments of a unit, in which temporaries of one step follow each other.
constexpr uint32_t kMoments = 1024;

bool holds(graft_address begin, uint64_t bytes, graft_address address) {
  return address >= begin && address - begin < bytes;
}

}  // namespace

void CapturedRun::clear() {
  ended_ = false;
  parts_.clear();
  placement_ = {};
}

void CapturedRun::begin(std::span<const BaseMemory> bases) {
  clear();
  seen_.assign(bases.begin(), bases.end());
  addresses_.assign(kFirst + bases.size(), 0);
  find_overlaps();
}

void CapturedRun::find_overlaps() {
  sorted_.clear();
  overlaps_.clear();
  for (uint32_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i].bytes != 0 && seen_[i].address != 0) sorted_.push_back(i);
  }
  std::ranges::sort(sorted_, {}, [&](uint32_t i) { return seen_[i].address; });
  uint32_t widest = 0;  // the base that reaches farthest so far
  const auto end = [&](uint32_t i) { return seen_[i].address + seen_[i].bytes; };
  for (size_t i = 0; i < sorted_.size(); ++i) {
    const uint32_t base = sorted_[i];
    if (i > 0 && seen_[base].address < end(widest)) overlaps_.push_back({base, widest});
    if (i == 0 || end(base) > end(widest)) widest = base;
  }
}

std::optional<graft_place> CapturedRun::locate(const Part& part, size_t command,
                                               graft_address address) const {
  for (const Scratch& one : part.scratch) {
    if (command < one.memory.first || command >= one.memory.last) continue;
    if (!holds(one.memory.address, one.memory.bytes, address)) continue;
    return graft_place{one.place.offset + address - one.memory.address, one.place.base, 0};
  }
  for (const CommandList::Check& check : part.commands.checks()) {
    if (holds(check.memory, check.bytes, address)) return graft_place{address, GRAFT_NO_BASE, 0};
  }
  return in_a_base(address);
}

std::optional<graft_place> CapturedRun::in_a_base(graft_address address) const {
  auto after = std::ranges::upper_bound(sorted_, address, {},
                                        [&](uint32_t base) { return seen_[base].address; });
  while (after != sorted_.begin()) {
    const uint32_t base = *--after;
    if (!holds(seen_[base].address, seen_[base].bytes, address)) continue;
    return graft_place{address - seen_[base].address, kFirst + base, 0};
  }
  return std::nullopt;
}

bool CapturedRun::make_relative(Part* part) const {
  return part->commands.make_relative(
      [&](size_t command, graft_address address) { return locate(*part, command, address); });
}

void CapturedRun::keep(size_t step, CommandCapture& capture) {
  if (!capture.complete()) return;
  Part alone{step, step + 1, std::move(capture.commands), {}};
  for (const CommandCapture::Temporary& one : capture.temporaries) {
    const auto moment = [](size_t command) {
      return static_cast<uint32_t>(std::min<size_t>(command, kMoments - 1));
    };
    const size_t last = std::max(one.first + 1, one.last) - 1;
    alone.scratch.push_back({one, step, moment(one.first), moment(last), {0, kArena, 0}});
  }
  if (!make_relative(&alone)) return;
  if (parts_.empty() || parts_.back().end != step) return parts_.push_back(std::move(alone));
  Part& part = parts_.back();
  part.end = step + 1;
  for (Scratch& one : alone.scratch) {
    one.memory.first += part.commands.size(), one.memory.last += part.commands.size();
    part.scratch.push_back(one);
  }
  part.commands.append(std::move(alone.commands));
}

void CapturedRun::place_temporaries(const RunMemory* memory) {
  MemoryPlan plan;
  if (memory != nullptr) {
    plan = memory->plan;
    placement_ = memory->placement;
  }
  for (PlannedBuffer& buffer : plan.buffers) {
    buffer.first *= kMoments;
    buffer.last = buffer.last * kMoments + kMoments - 1;
  }
  for (PlannedOutput& output : plan.outputs) output.first *= kMoments;
  const auto others = static_cast<uint32_t>(plan.buffers.size());
  for (const Part& part : parts_) {
    for (const Scratch& one : part.scratch) {
      const uint32_t unit =
          memory != nullptr ? memory->units[one.step] : static_cast<uint32_t>(one.step);
      PlannedBuffer buffer;
      buffer.first = unit * kMoments + one.first;
      buffer.last = unit * kMoments + one.last;
      plan.buffers.push_back(std::move(buffer));
      placement_.bytes.push_back(one.memory.bytes);
    }
  }
  place_more(plan, kScratchAlignment, others, &placement_);
  uint32_t next = others;
  for (Part& part : parts_) {
    for (Scratch& one : part.scratch) {
      const uint32_t host = placement_.hosts[next];
      one.place = {placement_.offsets[next++], kArena, 0};
      if (host == kNone) continue;
      if (const auto in = in_a_base(memory->outputs[host] + one.place.offset)) one.place = *in;
    }
  }
}

void CapturedRun::end(OpenDevice& device, const RunMemory* memory) {
  place_temporaries(memory);
  for (Part& part : parts_) {
    make_relative(&part);
    part.commands.make_graphs(device);
  }
  ended_ = !parts_.empty();
}

bool CapturedRun::fits(std::span<const BaseMemory> bases) const {
  if (!ended_ || bases.size() != seen_.size()) return false;
  for (const uint32_t i : sorted_) {
    if ((bases[i].address ^ seen_[i].address) % kAlignment != 0) return false;
  }
  return std::ranges::all_of(overlaps_, [&](const Overlap& one) {
    return bases[one.base].address - bases[one.within].address ==
           seen_[one.base].address - seen_[one.within].address;
  });
}

void CapturedRun::move_to(std::span<const BaseMemory> bases, graft_address arena) {
  addresses_[kArena] = arena;
  for (size_t i = 0; i < bases.size(); ++i) addresses_[kFirst + i] = bases[i].address;
  for (Part& part : parts_) part.commands.move_to(addresses_);
}

size_t CapturedRun::give(size_t step, Stream& stream) {
  for (Part& part : parts_) {
    if (part.first != step) continue;
    stream.replay(part.commands);
    return part.end;
  }
  return step;
}

}  // namespace graft::compiler
