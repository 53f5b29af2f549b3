// drivers/trace/call/findings.h: which rules were broken, by whom, and how often.
#ifndef GRAFT_DRIVERS_TRACE_CALL_FINDINGS_H_
#define GRAFT_DRIVERS_TRACE_CALL_FINDINGS_H_

#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

namespace graft::trace {

enum class Culprit { kDriver, kCaller };

// One broken rule.
struct Finding {
  Culprit culprit = Culprit::kDriver;
  const char* rule = "";  // a short name: "overlap"
  std::string call;       // "copy(stream=0x.., ...)"
  std::string text;       // what is wrong
  const char* remedy = "";
};

// The findings in one driver. Prints the first ones of each rule and slot. Thread-safe.
class Findings {
 public:
  // path: as TraceSettings::report. Returns "" or the reason why the file cannot be written.
  std::string open(const std::string& path, const std::string& driver);

  // Prints and counts a finding; returns the printed line.
  std::string add(const std::string& slot, const Finding& finding);

  // As open got them; "" for standard error.
  const char* path() const { return path_.c_str(); }
  const char* driver() const { return driver_.c_str(); }

  // How many there are.
  uint64_t count(Culprit culprit) const;
  // The first one, "" if there is none.
  std::string first(Culprit culprit) const;

  // Prints how many calls were made and how many findings of which rules there are.
  void summarize(uint64_t calls);

 private:
  void print(const std::string& line);

  mutable std::mutex mutex_;
  std::string driver_, path_;
  std::map<std::string, uint64_t> counts_;  // by "who rule slot"
  uint64_t totals_[2] = {0, 0};
  std::string first_[2];
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_FINDINGS_H_
