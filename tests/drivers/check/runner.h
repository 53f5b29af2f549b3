// tests/drivers/check/runner.h: runs cases in child processes, so a crash or a hang is a row.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_RUNNER_H_
#define GRAFT_TESTS_DRIVERS_CHECK_RUNNER_H_

#include <string>
#include <vector>

#include "check/cases.h"

namespace graft::check {

enum class Verdict {
  kPass,
  kFail,     // the contract was broken: the message says how
  kCrash,    // the child died by a signal or left by exit
  kHang,     // the child did not end in time and was killed
  kOmitted,  // the driver leaves a slot empty that the case needs
};

// How one case went.
struct Row {
  std::string name;
  Verdict verdict;
  std::string message;
  double seconds;
};

// What to run and how.
struct Options {
  std::string path;     // the driver, absolute
  std::string pattern;  // runs only cases whose name contains it
  std::string
      late_error;  // "NAME=VALUE": environment that makes the driver's second copy fail late
  double timeout_seconds = 30;
  std::string trace;  // settings of the trace layer in front of the driver; "": none
};

// "pass", "FAIL", "CRASH", "HANG" or "omitted".
const char* verdict_name(Verdict verdict);

// Runs one case in a child process of its own and waits for it.
Row run_case(const Case& one, const Options& options);

// Slots the driver leaves empty and extensions that it lacks, read in a child; message is set
// instead when it does not load.
std::vector<std::string> read_omitted_slots(const Options& options, std::string* message);

}  // namespace graft::check

#endif  // GRAFT_TESTS_DRIVERS_CHECK_RUNNER_H_
