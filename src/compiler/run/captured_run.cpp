// src/compiler/run/captured_run.cpp: the commands of a graph's steps, given again at other
// addresses.
#include "compiler/run/captured_run.h"

#include <algorithm>

namespace graft::compiler {

namespace {

// Kernels and libraries are chosen by how far an address is aligned, up to a line of the cache.
constexpr uint64_t kAlignment = 64;

// Bases of the commands: the arena, addresses that stay, and the caller's.
constexpr uint32_t kArena = 0, kLasting = 1, kFirst = 2;

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

std::optional<RelativeAddress> CapturedRun::locate(const Part& part, size_t command,
                                                   graft_address address) const {
  for (size_t i = 0; i < part.temporaries.size(); ++i) {
    const CommandCapture::Temporary& one = part.temporaries[i];
    if (command < one.first || command >= one.last) continue;
    if (!holds(one.address, one.bytes, address)) continue;
    RelativeAddress begin = i < part.places.size() ? part.places[i] : RelativeAddress{kArena, 0};
    begin.offset += address - one.address;
    return begin;
  }
  for (const auto& [begin, bytes] : part.lasting) {
    if (holds(begin, bytes, address)) return RelativeAddress{kLasting, address};
  }
  return in_a_base(address);
}

std::optional<RelativeAddress> CapturedRun::in_a_base(graft_address address) const {
  auto after = std::ranges::upper_bound(sorted_, address, {},
                                        [&](uint32_t base) { return seen_[base].address; });
  while (after != sorted_.begin()) {
    const uint32_t base = *--after;
    if (!holds(seen_[base].address, seen_[base].bytes, address)) continue;
    return RelativeAddress{kFirst + base, address - seen_[base].address};
  }
  return std::nullopt;
}

bool CapturedRun::make_relative(Part* part) const {
  return part->commands.make_relative(
      [&](size_t command, graft_address address) { return locate(*part, command, address); });
}

void CapturedRun::keep(size_t step, CommandCapture& capture) {
  if (!capture.complete()) return;
  Part alone{step,
             step + 1,
             std::move(capture.commands),
             std::move(capture.checks),
             std::move(capture.temporaries),
             std::move(capture.lasting),
             {},
             {}};
  for (const CommandCapture::Temporary& one : alone.temporaries) {
    const size_t last = std::max(one.first + 1, one.last) - 1;
    alone.lifetimes.push_back({step,
                               static_cast<uint32_t>(std::min<size_t>(one.first, kMoments - 1)),
                               static_cast<uint32_t>(std::min<size_t>(last, kMoments - 1))});
  }
  if (!make_relative(&alone)) return;
  if (parts_.empty() || parts_.back().end != step) return parts_.push_back(std::move(alone));
  Part& part = parts_.back();
  const size_t before = part.commands.size();
  part.end = step + 1;
  part.commands.append(std::move(alone.commands));
  for (CommandCapture::Temporary one : alone.temporaries) {
    one.first += before, one.last += before;
    part.temporaries.push_back(one);
  }
  part.checks.insert(part.checks.end(), alone.checks.begin(), alone.checks.end());
  part.lasting.insert(part.lasting.end(), alone.lasting.begin(), alone.lasting.end());
  part.lifetimes.insert(part.lifetimes.end(), alone.lifetimes.begin(), alone.lifetimes.end());
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
    for (size_t i = 0; i < part.temporaries.size(); ++i) {
      const Lifetime& lives = part.lifetimes[i];
      const uint32_t unit =
          memory != nullptr ? memory->units[lives.step] : static_cast<uint32_t>(lives.step);
      PlannedBuffer buffer;
      buffer.first = unit * kMoments + lives.first;
      buffer.last = unit * kMoments + lives.last;
      plan.buffers.push_back(std::move(buffer));
      placement_.bytes.push_back(part.temporaries[i].bytes);
    }
  }
  place_more(plan, kScratchAlignment, others, &placement_);
  uint32_t next = others;
  for (Part& part : parts_) {
    for (size_t i = 0; i < part.temporaries.size(); ++i, ++next) {
      const uint32_t host = placement_.hosts[next];
      const uint64_t offset = placement_.offsets[next];
      const auto within = host == kNone ? std::nullopt : in_a_base(memory->outputs[host] + offset);
      part.places.push_back(within.value_or(RelativeAddress{kArena, offset}));
    }
  }
}

void CapturedRun::end(const Device& device, const RunMemory* memory) {
  place_temporaries(memory);
  for (Part& part : parts_) {
    make_relative(&part);
    part.commands.make_graph(device);
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
    stream.give(part.commands, part.checks);
    return part.end;
  }
  return step;
}

}  // namespace graft::compiler
