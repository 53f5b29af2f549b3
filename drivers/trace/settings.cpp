// drivers/trace/settings.cpp: what a text such as "log=calls.json,fail=copy:3" asks of the layer.
#include "settings.h"

#include <cstdlib>
#include <sstream>

#include "tables.h"

namespace graft::trace {
namespace {

constexpr const char* kLaunches[] = {"kernel_launch", "blas.plan_execute", "dnn.plan_execute",
                                     "ops.operation_execute", "graph_compiler.executable_run"};

std::vector<std::string> split(const std::string& text, char between) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, between);) parts.push_back(part);
  return parts;
}

std::vector<size_t> slots_called(const std::string& name) {
  std::vector<size_t> found;
  each_table([&](const TableFacts& facts, size_t number) {
    for (size_t i = 0; i < facts.slots.size(); ++i) {
      if (name != facts.slots[i].name && name != slot_name(facts, i)) continue;
      found.push_back(number * kSlotsOfTable + i);
    }
  });
  return found;
}

bool number(const std::string& text, double* out) {
  char* end = nullptr;
  *out = std::strtod(text.c_str(), &end);
  return !text.empty() && end != text.c_str() && *end == '\0';
}

// "3": the third call; "3+": the third and later; "0.1": that share.
bool parse_which(std::string text, FaultRule* rule) {
  rule->onward = !text.empty() && text.back() == '+';
  if (rule->onward) text.pop_back();
  double value = 0;
  if (!number(text, &value) || value <= 0) return false;
  if (text.find('.') != std::string::npos) {
    rule->share = value;
    return value <= 1 && !rule->onward;
  }
  rule->call = static_cast<uint64_t>(value);
  return true;
}

bool parse_status(const std::string& text, graft_status* out) {
#define GRAFT_TRACE_STATUS(name, value, words) \
  if (text == #name) {                         \
    *out = GRAFT_##name;                       \
    return true;                               \
  }
  GRAFT_STATUSES(GRAFT_TRACE_STATUS)
#undef GRAFT_TRACE_STATUS
  return false;
}

bool parse_time(const std::string& text, int64_t* out) {
  const size_t unit = text.find_first_not_of("0123456789.");
  double value = 0;
  if (unit == std::string::npos || !number(text.substr(0, unit), &value)) return false;
  const std::string name = text.substr(unit);
  const double scale = name == "s" ? 1e9 : name == "ms" ? 1e6 : name == "us" ? 1e3 : 0;
  *out = static_cast<int64_t>(value * scale);
  return scale > 0;
}

// SLOT[:WHICH[:STATUS or TIME]].
std::string parse_fault(FaultKind kind, const std::string& text, TraceSettings* out) {
  const std::vector<std::string> parts = split(text, ':');
  FaultRule rule;
  rule.kind = kind;
  rule.call = 1;
  rule.onward = true;
  rule.status = kind == FaultKind::kLate ? GRAFT_LAUNCH_FAILED : GRAFT_INTERNAL;
  if (parts.empty()) return "names no slot";
  if (kind == FaultKind::kDrop && parts[0] == "launches") {
    out->drops_launches = true;
    for (const char* name : kLaunches) {
      const std::vector<size_t> more = slots_called(name);
      rule.slots.insert(rule.slots.end(), more.begin(), more.end());
    }
  } else {
    rule.slots = slots_called(parts[0]);
  }
  if (rule.slots.empty()) return "'" + parts[0] + "' is no slot of graft/driver.h";
  if (parts.size() > 1) {
    rule.call = 0;
    if (!parse_which(parts[1], &rule)) {
      return "'" + parts[1] + "' is no call: write 3, 3+ or a share such as 0.1";
    }
  }
  if (kind == FaultKind::kDelay) {
    if (parts.size() != 3 || !parse_time(parts[2], &rule.nanoseconds)) {
      return "write SLOT:WHICH:TIME with a time such as 5ms";
    }
  } else if (parts.size() > 3 || (parts.size() == 3 && !parse_status(parts[2], &rule.status))) {
    return "'" + parts.back() + "' is no status: write one of driver.h, such as OUT_OF_MEMORY";
  }
  out->faults.push_back(rule);
  return "";
}

bool parse_switch(const std::string& value, bool* out) {
  *out = value != "0";
  return value == "0" || value == "1";
}

std::string parse_item(const std::string& key, const std::string& value, TraceSettings* out) {
  const auto answer = [](bool good, const char* expected) {
    return good ? std::string() : std::string(expected);
  };
  double read = 0;
  if (key == "fail") return parse_fault(FaultKind::kFail, value, out);
  if (key == "late") return parse_fault(FaultKind::kLate, value, out);
  if (key == "drop") return parse_fault(FaultKind::kDrop, value, out);
  if (key == "delay") return parse_fault(FaultKind::kDelay, value, out);
  if (key == "rules") return answer(parse_switch(value, &out->rules), "write 1 or 0");
  if (key == "probe") {
    const bool good = parse_switch(value, &out->probe);
    out->verify_new = out->verify_new && out->probe;
    return answer(good, "write 1 or 0");
  }
  if (key == "strict") return answer(parse_switch(value, &out->strict), "write 1 or 0");
  if (key == "summary") return answer(parse_switch(value, &out->summary), "write 1 or 0");
  if (key == "serial") return answer(parse_switch(value, &out->serial), "write 1 or 0");
  if (key == "verify") {
    const bool good = number(value, &read) && read >= 0 && read <= 1;
    out->verify = read;
    out->verify_new = read > 0;
    return answer(good, "write a share from 0 to 1");
  }
  if (key == "seed") {
    const bool good = number(value, &read) && read >= 0;
    out->seed = good ? static_cast<uint64_t>(read) : 0;
    return answer(good, "write a number");
  }
  std::string* const path = key == "log"       ? &out->log
                            : key == "report"  ? &out->report
                            : key == "results" ? &out->results
                            : key == "driver"  ? &out->driver
                                               : nullptr;
  if (path == nullptr) {
    return "is unknown; the settings are log, report, results, rules, probe, verify, strict, "
           "summary, serial, seed, fail, late, drop, delay and driver";
  }
  *path = value;
  return answer(!value.empty(), "write a path");
}

}  // namespace

std::string slot_name(const TableFacts& table, size_t index) {
  const std::string extension = table.name;
  const size_t dot = extension.find('.');
  return (dot == std::string::npos ? "" : extension.substr(dot + 1) + ".") +
         table.slots[index].name;
}

std::string parse_settings(const char* text, TraceSettings* out) {
  for (const std::string& item : split(text, ',')) {
    if (item == "1") continue;
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      return "GRAFT_DRIVER_TRACE: '" + item + "' is no KEY=VALUE; write 1 for all defaults";
    }
    const std::string flaw = parse_item(item.substr(0, equals), item.substr(equals + 1), out);
    if (!flaw.empty()) return "GRAFT_DRIVER_TRACE: '" + item + "': " + flaw;
  }
  if (!out->rules && (out->serial || !out->results.empty())) {
    return "GRAFT_DRIVER_TRACE: serial and results need rules=1; leave rules=0 out";
  }
  return "";
}

}  // namespace graft::trace
