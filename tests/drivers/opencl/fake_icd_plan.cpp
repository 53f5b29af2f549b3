// tests/drivers/opencl/fake_icd_plan.cpp: what GRAFT_FAKE_CL asks for, and the calls it lets fail.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "fake_icd.h"

namespace graft::fake_cl {
namespace {

std::atomic<uint64_t> commands{0};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

[[noreturn]] void wrong(const std::string& word) {
  std::fprintf(stderr, "GRAFT_FAKE_CL: '%s' is no word that the fake ICD knows\n", word.c_str());
  std::abort();
}

bool set_flag(Plan& plan, const std::string& word) {
  const std::map<std::string, bool Plan::*> flags = {{"no_svm", &Plan::no_svm},
                                                     {"coarse_svm", &Plan::coarse_svm},
                                                     {"usm", &Plan::usm},
                                                     {"address", &Plan::address},
                                                     {"no_fp64", &Plan::no_fp64},
                                                     {"no_fp16", &Plan::no_fp16},
                                                     {"no_int64_atomics", &Plan::no_int64_atomics},
                                                     {"no_compiler", &Plan::no_compiler},
                                                     {"no_devices", &Plan::no_devices},
                                                     {"nvidia", &Plan::nvidia},
                                                     {"broken_platform", &Plan::broken_platform}};
  const auto found = flags.find(word);
  if (found != flags.end()) plan.*found->second = true;
  return found != flags.end();
}

bool set_number(Plan& plan, const std::string& name, const std::string& value) {
  const std::map<std::string, uint64_t Plan::*> numbers = {
      {"alloc_limit", &Plan::alloc_limit},     {"memory", &Plan::memory},
      {"out_of_memory", &Plan::out_of_memory}, {"slow_build", &Plan::slow_build_ms},
      {"long_log", &Plan::long_log},           {"lost_after", &Plan::lost_after},
      {"parameters", &Plan::parameters},       {"sub_groups", &Plan::sub_groups}};
  const auto found = numbers.find(name);
  if (found != numbers.end()) plan.*found->second = std::stoull(value);
  return found != numbers.end();
}

void read_word(Plan& plan, const std::string& word) {
  const std::vector<std::string> parts = split(word, ':');
  const std::string& name = parts[0];
  if (parts.size() == 1) {
    if (!set_flag(plan, name)) wrong(word);
  } else if (name == "version") {
    plan.old = true;
    if (std::sscanf(parts[1].c_str(), "%d.%d", &plan.major, &plan.minor) != 2) wrong(word);
  } else if (name == "gpu") {
    plan.gpu = std::stoll(parts[1]);
  } else if ((name == "fail" || name == "late") && parts.size() == 4) {
    Injection& one = name == "fail" ? plan.fails.emplace_back() : plan.lates.emplace_back();
    one.function = parts[1];
    one.call = std::stoull(parts[2]);
    one.code = std::stoi(parts[3]);
  } else if (!set_number(plan, name, parts[1])) {
    wrong(word);
  }
  if (name == "lost_after" && parts.size() == 3) plan.lost_code = std::stoi(parts[2]);
}

Plan* read_plan() {
  auto* result = new Plan;
  const char* text = std::getenv("GRAFT_FAKE_CL");
  if (text == nullptr || *text == '\0') return result;
  for (const std::string& word : split(text, ',')) read_word(*result, word);
  return result;
}

// What still works on a lost device: to ask what it was, and to give things back.
bool works_when_lost(const char* function) {
  for (const char* begin : {"clGet", "clRelease", "clRetain", "clSVMFree", "clMemFree"}) {
    if (std::strncmp(function, begin, std::strlen(begin)) == 0) return true;
  }
  return false;
}

}  // namespace

Plan& plan() {
  static Plan* const instance = read_plan();
  return *instance;
}

bool Injection::hits(const char* name) {
  if (function != name) return false;
  const uint64_t now = seen.fetch_add(1) + 1;
  return call == 0 || call == now;
}

cl_int refused(const char* function) {
  if (commands.load() >= plan().lost_after && !works_when_lost(function)) return plan().lost_code;
  for (Injection& one : plan().fails) {
    if (one.hits(function)) return one.code;
  }
  return CL_SUCCESS;
}

void forbidden(const char* function) {
  std::fprintf(stderr, "%s was called, which this device says it does not have (GRAFT_FAKE_CL)\n",
               function);
  std::abort();
}

bool hides_svm() { return plan().no_svm || plan().major < 2; }

void note_late(cl_event event, cl_int code);

void count_command(const char* function, cl_event* event) {
  // A lost device writes nothing more, not even what PoCL had not come to.
  if (commands.fetch_add(1) + 1 == plan().lost_after && event != nullptr) {
    real().WaitForEvents(1, event);
  }
  for (Injection& one : plan().lates) {
    if (one.hits(function) && event != nullptr) note_late(*event, one.code);
  }
}

}  // namespace graft::fake_cl
