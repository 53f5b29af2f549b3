// drivers/trace/call/findings.cpp: which rules were broken, by whom, and how often.
#include "call/findings.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace graft::trace {
namespace {

constexpr uint64_t kPrinted = 3;  // lines of one rule and slot

const char* word_of(Culprit culprit) { return culprit == Culprit::kDriver ? "driver" : "caller"; }

}  // namespace

std::string Findings::open(const std::string& path, const std::string& driver) {
  driver_ = driver;
  path_ = path;
  if (path_.empty()) return "";
  std::FILE* file = std::fopen(path_.c_str(), "ae");
  if (file == nullptr) return "cannot write '" + path_ + "': " + std::strerror(errno);
  std::fclose(file);
  return "";
}

// One write a line, so that lines of several processes do not mix.
void Findings::print(const std::string& line) {
  const std::string whole = "graft-driver-trace: " + line + "\n";
  std::FILE* file = path_.empty() ? stderr : std::fopen(path_.c_str(), "ae");
  if (file == nullptr) return;
  std::fwrite(whole.data(), 1, whole.size(), file);
  if (file == stderr) {
    std::fflush(file);
  } else {
    std::fclose(file);
  }
}

std::string Findings::add(const std::string& slot, const Finding& finding) {
  const std::lock_guard lock(mutex_);
  const std::string who = word_of(finding.culprit);
  const auto side = static_cast<size_t>(finding.culprit);
  std::string line = who + (finding.culprit == Culprit::kDriver ? " '" : " of '") + driver_ +
                     "': " + finding.call + ": " + finding.text + ". " + finding.remedy + " [" +
                     finding.rule + "]";
  if (totals_[side]++ == 0) first_[side] = line;
  const uint64_t before = counts_[who + " " + finding.rule + " " + slot]++;
  if (before < kPrinted) print(line);
  if (before + 1 == kPrinted) print("more of [" + std::string(finding.rule) + "] are counted only");
  return line;
}

uint64_t Findings::count(Culprit culprit) const {
  const std::lock_guard lock(mutex_);
  return totals_[static_cast<size_t>(culprit)];
}

std::string Findings::first(Culprit culprit) const {
  const std::lock_guard lock(mutex_);
  return first_[static_cast<size_t>(culprit)];
}

void Findings::summarize(uint64_t calls) {
  const std::lock_guard lock(mutex_);
  std::string line = "'" + driver_ + "': " + std::to_string(calls) + " calls, " +
                     std::to_string(totals_[0]) + " findings in the driver, " +
                     std::to_string(totals_[1]) + " in its caller";
  for (const auto& [name, count] : counts_) line += "; " + name + ": " + std::to_string(count);
  print(line);
}

}  // namespace graft::trace
