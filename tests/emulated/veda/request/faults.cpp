// tests/emulated/veda/request/faults.cpp: planted faults: the n-th call of a function, the n-th
// launch of a kernel.
#include "tests/emulated/veda/request/faults.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

[[noreturn]] void refuse(const std::string& rule, const char* expected) {
  std::fprintf(stderr, "emulated VEDA: the fault '%s' is no %s\n", rule.c_str(), expected);
  throw Failure{VEDA_ERROR_INVALID_VALUE};
}

std::uint64_t nth(const std::string& text) {
  return text == "*" ? 0 : std::strtoull(text.c_str(), nullptr, 10);
}

// The code of a name, -1 if there is none.
int code_of(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
    return std::atoi(text.c_str());
  }
#define EMULATED_VEDA_CODE(code, name) \
  if (text == #name || "VEDA_ERROR_" + text == #name) return code;
  GRAFT_VEDA_RESULTS(EMULATED_VEDA_CODE)
#undef EMULATED_VEDA_CODE
  return -1;
}

bool is_function(const std::string& name) {
  if (name == "*") return true;
#define EMULATED_VEDA_NAME(function, parameters) \
  if (name == #function) return true;
  GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_NAME, EMULATED_VEDA_NAME)
#undef EMULATED_VEDA_NAME
  return false;
}

bool is_kind(const std::string& kind) {
  for (const char* known : {"drop", "exception", "hang", "launch", "oom"}) {
    if (kind == known) return true;
  }
  return false;
}

}  // namespace

void Faults::set(const std::string& calls, const std::string& device) {
  std::vector<Rule> new_calls;
  for (const std::string& text : split(calls, ',')) {
    const auto parts = split(text, ':');
    if (parts.size() != 3) refuse(text, "function:nth:CODE");
    const std::string name = parts[0].starts_with("veda") ? parts[0].substr(4) : parts[0];
    const int code = code_of(parts[2]);
    if (!is_function(name)) refuse(text, "function of VEDA");
    if (code <= 0) refuse(text, "error code of VEDA");
    new_calls.push_back({name, "", nth(parts[1]), 0, static_cast<VEDAresult>(code)});
  }
  std::vector<Rule> new_device;
  for (const std::string& text : split(device, ',')) {
    const auto parts = split(text, ':');
    if (parts.size() != 3) refuse(text, "kind:kernel:nth");
    const std::string& kind = parts[0];
    if (!is_kind(kind)) refuse(text, "drop, exception, hang, launch or oom");
    new_device.push_back({parts[1], kind, nth(parts[2]), 0, VEDA_SUCCESS});
  }
  const std::lock_guard lock(mutex_);
  calls_ = std::move(new_calls);
  device_ = std::move(new_device);
}

bool Faults::matches(Rule* rule, const std::string& name) {
  if (rule->name != "*" && rule->name != name) return false;
  ++rule->seen;
  return rule->at == 0 || rule->seen == rule->at;
}

VEDAresult Faults::call(const std::string& function) {
  const std::lock_guard lock(mutex_);
  VEDAresult code = VEDA_SUCCESS;
  for (Rule& rule : calls_) {
    if (matches(&rule, function) && code == VEDA_SUCCESS) code = rule.code;
  }
  return code;
}

bool Faults::device(const std::string& kind, const std::string& kernel) {
  const std::lock_guard lock(mutex_);
  bool now = false;
  for (Rule& rule : device_) {
    if (rule.kind == kind) now = matches(&rule, kernel) || now;
  }
  return now;
}

}  // namespace emulated
