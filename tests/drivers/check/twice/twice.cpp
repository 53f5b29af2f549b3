// tests/drivers/check/twice/twice.cpp: runs a program several times and compares what its host got.
#include "check/twice/twice.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "check/twice/results.h"

namespace graft::check {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<pid_t> running{0};

void end_all(int) {
  if (running != 0) kill(-running, SIGKILL);
  _exit(130);
}

// One run, with its files in a folder of its own.
struct Run {
  std::string folder;
  bool ended = false;  // in time
  int status = 0;      // of waitpid
  double seconds = 0;
  RunResults results;

  bool good() const { return ended && WIFEXITED(status) && WEXITSTATUS(status) == 0; }
  std::string output() const { return folder + "/output"; }
};

[[noreturn]] void become(const TwiceOptions& options, const std::string& settings,
                         const std::string& output) {
  setpgid(0, 0);
  const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  setenv("GRAFT_DRIVER_TRACE", settings.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::perror(words[0]);
  _exit(127);
}

// limit: seconds; 0: none.
bool wait_for(pid_t child, double limit, int* status) {
  const auto begin = Clock::now();
  while (waitpid(child, status, WNOHANG) == 0) {
    const std::chrono::duration<double> passed = Clock::now() - begin;
    if (limit > 0 && passed.count() > limit) {
      kill(-child, SIGKILL);
      waitpid(child, status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

uint64_t print_findings(const std::string& path) {
  uint64_t count = 0;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::printf("  %s\n", line.c_str());
    count += line.starts_with("graft-driver-trace: driver ") ? 1 : 0;
  }
  return count;
}

Run run_once(const TwiceOptions& options, const std::string& folder, const std::string& settings,
             double limit) {
  Run run;
  run.folder = folder;
  std::filesystem::create_directories(folder + "/results");
  const std::string all =
      settings + ",summary=0,report=" + folder + "/findings,results=" + folder + "/results/run";
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child == 0) become(options, all, run.output());
  running = child;
  run.ended = wait_for(child, limit, &run.status);
  running = 0;
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  run.results = read_results(folder + "/results");
  return run;
}

void print_output(const Run& run) {
  std::ifstream file(run.output());
  for (std::string line; std::getline(file, line);) std::printf("  | %s\n", line.c_str());
}

std::string failure_of(const Run& run) {
  if (!run.ended) return "did not end";
  if (WIFSIGNALED(run.status)) return "ended by signal " + std::to_string(WTERMSIG(run.status));
  return run.good() ? "" : "ended with exit code " + std::to_string(WEXITSTATUS(run.status));
}

void print_run(const std::string& name, const Run& run, const std::string& verdict) {
  std::printf("%-16s %7.1f s  %6llu results  %s\n", name.c_str(), run.seconds,
              static_cast<unsigned long long>(count_of(run.results)), verdict.c_str());
  std::fflush(stdout);
}

// The serial runs: what the program gives by itself. "" or why nothing can be compared with it.
std::string run_serially(const TwiceOptions& options, const std::string& folder, Run* out) {
  std::string flaw;
  for (const char* name : {"serial run", "serial again"}) {
    Run run = run_once(options, folder + "/" + name, "serial=1,probe=0", 0);
    flaw = failure_of(run);
    const bool first = out->folder.empty();
    if (flaw.empty() && count_of(run.results) == 0) {
      flaw = "the host got nothing from a driver with the layer in front of it";
    }
    if (flaw.empty() && !first) flaw = difference(out->results, run.results);
    print_run(name, run, flaw);
    if (!failure_of(run).empty()) print_output(run);
    if (!flaw.empty()) break;
    if (first) *out = run;
  }
  return flaw;
}

// Whether the run was as the serial ones.
bool compare(const std::string& name, const Run& serial, const Run& run) {
  std::string verdict = failure_of(run);
  const bool failed = !verdict.empty();
  if (!failed) verdict = unlike_ranks(run.results);
  if (!failed && !verdict.empty()) verdict = "RANKS DIFFER: " + verdict;
  if (verdict.empty()) {
    verdict = difference(serial.results, run.results);
    if (!verdict.empty()) verdict = "DIFFERS: " + verdict;
  }
  if (verdict.empty()) {
    verdict = new_failure(serial.results, run.results);
    if (!verdict.empty()) verdict = "FAILS: " + verdict;
  }
  print_run(name, run, verdict.empty() ? "equal" : verdict);
  if (failed) print_output(run);
  return print_findings(run.folder + "/findings") == 0 && verdict.empty();
}

}  // namespace

int run_twice(const TwiceOptions& options) {
  std::string folder = std::filesystem::temp_directory_path() / "graft-twice-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror(("graft-driver-check: cannot make '" + folder + "'").c_str());
    return 2;
  }
  signal(SIGINT, end_all);
  signal(SIGTERM, end_all);
  Run serial;
  int code = run_serially(options, folder, &serial).empty() ? 0 : 2;
  if (code == 0) {
    const std::string unlike = unlike_ranks(serial.results);
    if (!unlike.empty()) std::printf("  RANKS DIFFER: %s\n", unlike.c_str());
    bool equal = unlike.empty() && print_findings(serial.folder + "/findings") == 0;
    for (int i = 1; i <= options.runs; ++i) {
      const std::string name = "run " + std::to_string(i);
      const std::string settings =
          (options.trace.empty() ? "1" : options.trace) + (i % 2 == 0 ? ",probe=0" : "");
      const Run run = run_once(options, folder + "/" + name, settings, 60 + 10 * serial.seconds);
      equal = compare(name, serial, run) && equal;
    }
    code = equal ? 0 : 1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  std::puts(code == 0   ? "The runs agree."
            : code == 1 ? "The runs do not agree: the driver, or what calls it, leaves an order "
                          "that the serial runs keep."
                        : "Nothing can be said. Give a program that ends with 0, brings results to "
                          "the host, and gives the same ones each time.");
  return code;
}

}  // namespace graft::check
