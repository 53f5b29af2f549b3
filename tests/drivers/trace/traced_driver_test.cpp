// tests/drivers/trace/traced_driver_test.cpp: a driver with a fresh trace layer in front of it.
#include "tests/drivers/trace/traced_driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace graft::driver_test {

namespace fs = std::filesystem;

static void* fresh_library(const fs::path& path, std::string* out_folder) {
  std::string folder = (fs::temp_directory_path() / "graft_traceXXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  *out_folder = folder;
  const fs::path copy = fs::path(folder) / path.filename();
  fs::copy_file(path, copy);
  void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  std::fputs(dlerror(), stderr);
  std::abort();
}

graft_driver_query_function fresh_query(const std::string& path) {
  std::string folder;
  void* const library = fresh_library(path, &folder);
  fs::remove_all(folder);
  return reinterpret_cast<graft_driver_query_function>(dlsym(library, "graft_driver_query"));
}

TracedDriver::TracedDriver(graft_driver_query_function query, const std::string& settings) {
  library_ = fresh_library(fs::path(GRAFT_TEST_DRIVER_DIR) / "graft_trace.so", &folder_);
  const auto front =
      reinterpret_cast<graft_trace_front_function>(dlsym(library_, "graft_trace_front"));
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  char words[512] = "";
  status = front(query, (settings + ",report=" + folder_ + "/report").c_str(), &table, words,
                 sizeof words);
  text = words;
}

TracedDriver::~TracedDriver() {
  finish();
  fs::remove_all(folder_);
}

std::string TracedDriver::report() const {
  std::stringstream text;
  text << std::ifstream(folder_ + "/report").rdbuf();
  return text.str();
}

std::string TracedDriver::rules() const {
  std::string rules;
  std::istringstream lines(report());
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.rfind('[');
    if (line.empty() || line.back() != ']' || open == std::string::npos) continue;
    rules += (rules.empty() ? "" : " ") + line.substr(open + 1, line.size() - open - 2);
  }
  return rules;
}

uint64_t TracedDriver::count(uint32_t culprit) const {
  const auto findings =
      reinterpret_cast<decltype(&graft_trace_findings)>(dlsym(library_, "graft_trace_findings"));
  return findings(culprit, nullptr, 0);
}

void TracedDriver::finish() {
  reinterpret_cast<decltype(&graft_trace_finish)>(dlsym(library_, "graft_trace_finish"))();
}

}  // namespace graft::driver_test
