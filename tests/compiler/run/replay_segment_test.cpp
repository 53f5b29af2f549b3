// tests/compiler/run/replay_segment_test.cpp: where runs are cut that give memory back as they go
// along.
#include "compiler/run/replay_segment.h"

#include <gtest/gtest.h>

namespace graft::compiler::test {
namespace {

constexpr uint64_t kPiece = CapturedRun::kScratchAlignment;

// A unit that begins pieces of memory, and after which others go: buffers, and of an input.
struct Unit {
  uint64_t begun, past, input, scratch = 0;
};

std::vector<uint32_t> ends(const std::vector<Unit>& units) {
  StepMemory memory;
  Placement placement;
  std::vector<uint64_t> given, scratch;
  std::vector<uint32_t> steps;
  for (uint32_t i = 0; i < units.size(); ++i) {
    StepMemory::Step& step = memory.steps.emplace_back();
    step.buffers.push_back(static_cast<uint32_t>(placement.bytes.size()));
    placement.bytes.push_back(units[i].begun * kPiece);
    step.past_buffers.push_back(static_cast<uint32_t>(placement.bytes.size()));
    placement.bytes.push_back(units[i].past * kPiece);
    step.past_inputs.push_back(i);
    given.push_back(units[i].input * kPiece);
    scratch.push_back(units[i].scratch * kPiece);
    steps.push_back(i);
  }
  std::vector<uint32_t> found;
  size_t next = 0;
  for (const ReplaySegment& stretch : cut(memory, placement, given, scratch, steps)) {
    EXPECT_EQ(stretch.first, next);
    EXPECT_EQ(stretch.first_unit, next);
    EXPECT_EQ(stretch.end, stretch.past_units);
    next = stretch.end;
    found.push_back(stretch.past_units);
  }
  return found;
}

TEST(ReplaySegment, NothingIsCutWherePeaksAllow) {
  EXPECT_EQ(ends({}), std::vector<uint32_t>{});
  EXPECT_EQ(ends({{5, 0, 0}}), std::vector<uint32_t>{1});
  EXPECT_EQ(ends({{1, 0, 0}, {1, 0, 0}, {1, 0, 0}}), std::vector<uint32_t>{3});
  // Four pieces live at the start and at the peak of five; the rest fits below it.
  EXPECT_EQ(ends({{1, 1, 4}, {2, 2, 0}, {2, 2, 0}, {1, 1, 0}}), (std::vector<uint32_t>{1, 4}));
}

TEST(ReplaySegment, MemoryThatMustGoFirstEndsAStretch) {
  // Each unit takes as much as the one before gives back: nothing may wait.
  EXPECT_EQ(ends({{3, 3, 0}, {3, 3, 0}, {3, 3, 0}}), (std::vector<uint32_t>{1, 2, 3}));
  // The second fits beside the first, the third does not.
  EXPECT_EQ(ends({{2, 2, 0}, {1, 1, 0}, {3, 3, 0}}), (std::vector<uint32_t>{2, 3}));
}

TEST(ReplaySegment, ScratchMemoryLastsAsLongAsItsStretch) {
  // The second unit's own two pieces would stand beside the third's three.
  EXPECT_EQ(ends({{1, 1, 0}, {1, 1, 0, 2}, {3, 3, 0}}), (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_EQ(ends({{1, 0, 0, 4}, {1, 0, 0, 1}, {1, 0, 0, 2}}), (std::vector<uint32_t>{1, 3}));
}

TEST(ReplaySegment, UnitsOfWhichNothingIsKnownAreAlone) {
  StepMemory memory;
  memory.steps.resize(3);
  const uint32_t steps[] = {0, 2};  // the second unit is a view
  const auto stretches = cut(memory, {}, {}, {}, steps);
  ASSERT_EQ(stretches.size(), 3u);
  EXPECT_EQ(stretches[1].first, stretches[1].end);
  EXPECT_EQ(stretches[2].first, 1u);
  EXPECT_EQ(stretches[2].end, 2u);
}

}  // namespace
}  // namespace graft::compiler::test
