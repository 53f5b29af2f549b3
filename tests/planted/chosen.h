// tests/planted/chosen.h: whether a planted fault is the one that this process shall have.
#pragma once

#include <cstdlib>

// True if the environment variable GRAFT_PLANTED held this number at the first call in this
// library. Thread-safe.
inline bool graft_planted(int number) {
  static const char* const chosen = std::getenv("GRAFT_PLANTED");
  return chosen != nullptr && std::atoi(chosen) == number;
}
