// tests/drivers/driver_graph_test.cpp: the commands that graft/driver_graph.h keeps for a driver.
#include "graft/driver_graph.h"

#include <gtest/gtest.h>

#include <vector>

namespace graft::graph_test {
namespace {

struct Commands {
  graft_place to{16, 0, 0};
  uint32_t pattern = 7;
  graft_argument argument{GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_WRITE, 0, 0, 4};
  graft_launch launch{sizeof(graft_launch), 0, {1, 1, 1}, {1, 1, 1}, 1, &argument};

  graft_command fill() {
    graft_command made = command(GRAFT_COMMAND_FILL);
    made.bytes = 4, made.pattern = &pattern, made.pattern_bytes = 4;
    return made;
  }
  graft_command operate() {
    graft_command made = command(GRAFT_COMMAND_OPERATE);
    made.launch = &launch, made.plan = reinterpret_cast<graft_plan>(this);
    return made;
  }

 private:
  graft_command command(uint32_t kind) {
    graft_command made{};
    made.struct_size = sizeof made, made.kind = kind;
    made.places = &to, made.place_count = 1;
    return made;
  }
};

TEST(DriverGraph, KeepsWhatACommandPointsTo) {
  Commands from;
  const graft_command given = from.fill();
  std::vector<KeptCommand> kept;
  uint32_t bases = 0;
  ASSERT_EQ(keep_commands(&given, 1, &kept, &bases), GRAFT_OK);
  from.pattern = 8, from.to.offset = 32;
  EXPECT_EQ(bases, 1u);
  EXPECT_EQ(kept[0].pattern[0], 7);
  const graft_address base = 100;
  EXPECT_EQ(kept[0].address(0, &base), 116u);
}

// A driver that has graft.ops, too, keeps such commands itself; Graft queues what is refused.
TEST(DriverGraph, RefusesAGraphThatHoldsAnOperation) {
  Commands from;
  const graft_command given[] = {from.fill(), from.operate()};
  std::vector<KeptCommand> kept;
  uint32_t bases = 0;
  EXPECT_EQ(keep_commands(given, 2, &kept, &bases), GRAFT_UNSUPPORTED);
}

}  // namespace
}  // namespace graft::graph_test
