// tests/emulated/veda/request/faults.h: planted faults: the n-th call of a function, the n-th
// launch of a kernel.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_FAULTS_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_FAULTS_H_

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "drivers/veda/api.h"

namespace emulated {

// Thread-safe. Each rule counts from 1 what it names; "*" names everything, or every time.
class Faults {
 public:
  // calls: "function:nth:CODE,...", the function with or without veda, the code as a name with or
  // without VEDA_ERROR_ or as a number; that call does nothing and gives the code;
  // vedaGetErrorName and vedaGetErrorString never fail.
  // device: "kind:kernel:nth,...": exception and hang happen to the kernel instead of its work,
  // with drop nothing happens, and it counts as done; launch is a request that the device refuses;
  // oom is an allocation that fails late (its kernel is "*"). Throws Failure(INVALID_VALUE) and
  // prints the rule. Replaces all rules.
  void set(const std::string& calls, const std::string& device);

  VEDAresult call(const std::string& function);                     // SUCCESS: none
  bool device(const std::string& kind, const std::string& kernel);  // true: now

 private:
  struct Rule {
    std::string name;
    std::string kind;
    std::uint64_t at = 0;  // 0: every time
    std::uint64_t seen = 0;
    VEDAresult code = VEDA_SUCCESS;
  };

  std::mutex mutex_;
  std::vector<Rule> calls_;
  std::vector<Rule> device_;

  static bool matches(Rule* rule, const std::string& name);
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_FAULTS_H_
