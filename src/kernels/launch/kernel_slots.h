// src/kernels/launch/kernel_slots.h: kernels that a thread has used, by what they are specialised
// on.
#pragma once

#include <array>
#include <cstdint>

#include "graft/driver.h"

namespace graft {

class OpenDevice;

// 2^bits slots: kernels whose words meet in one take turns. Thread-local: a hit takes no lock, a
// few compares.
template <size_t words, int bits>
class KernelSlots {
 public:
  using Words = std::array<uint64_t, words>;

  // The kernel of these words on the device: make()'s, unless it is at hand.
  template <class Make>
  graft_kernel get(const OpenDevice& device, const Words& of, Make make) {
    uint64_t mixed = 0;
    for (const uint64_t word : of) mixed = (mixed ^ word) * 0x9e3779b97f4a7c15u;
    Slot& slot = slots_[mixed >> (64 - bits)];
    if (slot.device != &device || slot.of != of) slot = {of, &device, make()};
    return slot.kernel;
  }

 private:
  struct Slot {
    Words of;
    const OpenDevice* device;
    graft_kernel kernel;
  };
  Slot slots_[size_t{1} << bits] = {};
};

}  // namespace graft
