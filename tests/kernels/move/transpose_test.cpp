// tests/kernels/move/transpose_test.cpp: where copies turn tiles in local memory; what they copy is
// copy_test's.
#include <gtest/gtest.h>

#include "kernels/launch/lanes.h"
#include "kernels/move/transpose_tile.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

TEST(Transpose, GpusTurnTilesAndProcessorsDoNot) {
  const OpenDevice& device = test::stream().device();
  const int64_t group = turn_group(device, GRAFT_FLOAT32);
  if (!is_gpu_like(device)) {
    EXPECT_EQ(group, 0);
    return;
  }
  EXPECT_GE(group, kTurnSide);
  EXPECT_LE(group, device.properties().max_group_size);
}

}  // namespace
}  // namespace graft
