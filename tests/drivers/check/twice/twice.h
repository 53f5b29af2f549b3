// tests/drivers/check/twice/twice.h: runs a program several times, at first with each command ended
// before the next one, and compares what its host got.
//
// A driver that loses an order, mixes up threads or says too early that work is done gives other
// bytes than in the serial runs. The trace layer is in front of each driver of the program.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_TWICE_TWICE_H_
#define GRAFT_TESTS_DRIVERS_CHECK_TWICE_TWICE_H_

#include <string>
#include <vector>

namespace graft::check {

struct TwiceOptions {
  std::vector<std::string> command;
  int runs = 4;       // that are not serial; every second one without the layer's own commands
  std::string trace;  // more settings of the layer, for these; "": none
};

// Prints a line for each run. 0: all runs agree and nothing was found; 1: they do not, a run did
// not end, or the layer found something in a driver; 2: nothing can be said, because the program
// fails or gives other results in each serial run, or its host gets nothing.
int run_twice(const TwiceOptions& options);

}  // namespace graft::check

#endif  // GRAFT_TESTS_DRIVERS_CHECK_TWICE_TWICE_H_
