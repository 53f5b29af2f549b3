// src/runtime/driver/facts_room.h: a struct of device_facts.h that a slot fills in.
#pragma once

#include <algorithm>
#include <iterator>

namespace graft {

// Zeroed, with struct_size set, and room behind it: a driver that writes too much overwrites
// nothing else, and is seen.
template <class Facts>
struct FactsRoom {
  FactsRoom() { facts.struct_size = sizeof(Facts); }

  // Whether the slot wrote behind the struct.
  bool overrun() const {
    return std::any_of(std::begin(beyond), std::end(beyond),
                       [](unsigned char byte) { return byte != 0; });
  }

  Facts facts{};
  unsigned char beyond[256] = {};
};

}  // namespace graft
