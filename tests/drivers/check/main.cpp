// tests/drivers/check/main.cpp: graft-driver-check, puts a driver library through every case.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "check/runner.h"
#include "check/twice/twice.h"

namespace {

using graft::check::Options;
using graft::check::Row;

constexpr const char* kUsage =
    "usage: graft-driver-check [--only TEXT] [--timeout SECONDS] [--late-error NAME=VALUE] "
    "[--trace SETTINGS] DRIVER.so\n"
    "       graft-driver-check --twice [--runs NUMBER] [--trace SETTINGS] COMMAND [ARGUMENT]...\n"
    "  --only        runs the cases whose name contains TEXT\n"
    "  --timeout     for one case; default 30\n"
    "  --late-error  environment that makes the driver's second copy fail after it was enqueued\n"
    "  --trace       puts the trace layer in front of the driver; settings as in\n"
    "                GRAFT_DRIVER_TRACE, such as verify=1. Each of its findings in the driver "
    "fails\n"
    "                the case\n"
    "  --twice       runs a program serially, then as it is, and compares what its host got\n"
    "  --runs        of the program as it is; default 4\n"
    "Exit code: 0 all cases passed, 1 some did not, 2 wrong use or no such library.\n";

bool parse(int count, char** words, Options* options) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const bool has_value = i + 1 < count;
    if (word == "--only" && has_value) {
      options->pattern = words[++i];
    } else if (word == "--timeout" && has_value) {
      options->timeout_seconds = std::atof(words[++i]);
    } else if (word == "--late-error" && has_value) {
      options->late_error = words[++i];
    } else if (word == "--trace" && has_value) {
      options->trace = words[++i];
    } else if (word.rfind("--", 0) == 0 || !options->path.empty()) {
      return false;
    } else {
      options->path = word;
    }
  }
  return !options->path.empty() && options->timeout_seconds > 0;
}

// The words behind --twice.
bool parse_twice(int count, char** words, graft::check::TwiceOptions* options) {
  int i = 2;
  for (; i + 1 < count && std::strncmp(words[i], "--", 2) == 0; i += 2) {
    const std::string word = words[i];
    if (word == "--runs") {
      options->runs = std::atoi(words[i + 1]);
    } else if (word == "--trace") {
      options->trace = words[i + 1];
    } else {
      return false;
    }
  }
  options->command.assign(words + i, words + count);
  return !options->command.empty() && options->runs > 0;
}

// What keeps path from being a library at all, empty where nothing does.
std::string problem_of(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return std::string("cannot be read: ") + std::strerror(errno);
  if (S_ISDIR(file.st_mode)) return "is a folder";
  if (!S_ISREG(file.st_mode)) return "is no file";
  char first[4] = "";
  std::FILE* opened = std::fopen(path.c_str(), "rb");
  if (opened == nullptr) return std::string("cannot be read: ") + std::strerror(errno);
  const size_t got = std::fread(first, 1, sizeof first, opened);
  std::fclose(opened);
  return got == sizeof first && std::memcmp(first, "\177ELF", 4) == 0 ? "" : "is no library (ELF)";
}

void print_row(const Row& row) {
  std::printf("%-8s %6.2f s  %s%s%s\n", verdict_name(row.verdict), row.seconds, row.name.c_str(),
              row.message.empty() ? "" : ": ", row.message.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  graft::check::TwiceOptions twice;
  if (count > 1 && std::strcmp(words[1], "--twice") == 0 && parse_twice(count, words, &twice)) {
    return run_twice(twice);
  }
  Options options;
  if (!parse(count, words, &options)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (const std::string problem = problem_of(options.path); !problem.empty()) {
    std::fprintf(stderr, "graft-driver-check: '%s' %s. Give the path of a driver's library.\n",
                 options.path.c_str(), problem.c_str());
    return 2;
  }
  if (char* resolved = realpath(options.path.c_str(), nullptr)) {
    options.path = resolved;
    std::free(resolved);
  }
  std::printf("driver: %s\n", options.path.c_str());
  std::string problem;
  for (const std::string& slot : read_omitted_slots(options, &problem)) {
    std::printf("omits %s\n", slot.c_str());
  }
  if (!problem.empty()) std::printf("does not load: %s\n", problem.c_str());
  std::array<int, 5> totals{};
  for (const graft::check::Case& one : graft::check::cases()) {
    if (std::string(one.name).find(options.pattern) == std::string::npos) continue;
    const Row row = run_case(one, options);
    ++totals.at(static_cast<size_t>(row.verdict));
    print_row(row);
  }
  const int bad = totals[1] + totals[2] + totals[3];
  std::printf("%d passed, %d failed, %d skipped\n", totals[0], bad, totals[4]);
  return bad == 0 && totals[0] > 0 ? 0 : 1;
}
