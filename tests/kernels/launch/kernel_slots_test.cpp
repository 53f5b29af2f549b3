// tests/kernels/launch/kernel_slots_test.cpp: kernels at hand by what they are specialised on.
#include "kernels/launch/kernel_slots.h"

#include <gtest/gtest.h>

#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

TEST(KernelSlots, MakeAKernelOnceForItsWordsAndDevice) {
  KernelSlots<2, 1> slots;
  int made = 0;
  const auto kernel_of = [&](uint64_t word) {
    return slots.get(test::device(), {word, 7}, [&] {
      ++made;
      return reinterpret_cast<graft_kernel>(word * 16);
    });
  };
  EXPECT_EQ(kernel_of(1), kernel_of(1));
  EXPECT_EQ(made, 1);
  // More than there are slots: each is made again when others took its place.
  for (int round = 0; round < 2; ++round) {
    for (uint64_t word = 1; word < 9; ++word) {
      EXPECT_EQ(kernel_of(word), reinterpret_cast<graft_kernel>(word * 16));
    }
  }
  EXPECT_GT(made, 8);
}

}  // namespace
}  // namespace graft
