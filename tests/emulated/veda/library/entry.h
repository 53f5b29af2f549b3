// tests/emulated/veda/library/entry.h: what every function of the library does first, and how it
// ends.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ENTRY_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ENTRY_H_

#include <new>

#include "drivers/veda/api.h"

extern "C" {
#define EMULATED_VEDA_PROTOTYPE(name, parameters) \
  __attribute__((visibility("default"))) VEDAresult veda##name parameters;
GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_PROTOTYPE, EMULATED_VEDA_PROTOTYPE)
#undef EMULATED_VEDA_PROTOTYPE
}

namespace emulated {

// The code that the function returns.
struct Failure {
  VEDAresult code;
};

inline void require(bool holds, VEDAresult code) {
  if (!holds) throw Failure{code};
}

// Where the real library ends the process (tungl_throw), so does this one, with the rule that was
// broken; with EMULATED_VEDA_ABORT=0 it throws Failure(ASSERT).
[[noreturn]] void end_process(const char* rule);

// Throws what is planted for function name; SHUTTING_DOWN in a forked child; if the function needs
// vedaInit, NOT_INITIALIZED before it and SHUTTING_DOWN during vedaExit.
void enter(const char* name, bool needs_init);

template <class Body>
VEDAresult entry(const char* name, bool needs_init, Body&& body) {
  try {
    enter(name, needs_init);
    body();
    return VEDA_SUCCESS;
  } catch (const Failure& failure) {
    return failure.code;
  } catch (const std::bad_alloc&) {
    return VEDA_ERROR_OUT_OF_MEMORY;
  }
}

// Of a function that needs vedaInit.
template <class Body>
VEDAresult entry(const char* name, Body&& body) {
  return entry(name, true, body);
}

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_ENTRY_H_
