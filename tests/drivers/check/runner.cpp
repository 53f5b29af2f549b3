// tests/drivers/check/runner.cpp: forks a child per case and reads its verdict from a pipe.
#include "check/runner.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sstream>

#include "graft/driver_trace.h"

namespace graft::check {
namespace {

using Clock = std::chrono::steady_clock;

struct Ended {
  std::string output;  // what the child wrote; the first character is its verdict
  int status = 0;      // of waitpid
  bool hung = false;
  double seconds = 0;
};

// Reads until the child closes the pipe; false when the time is over first.
bool read_until(int descriptor, Clock::time_point deadline, std::string* output) {
  char buffer[4096];
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd one{descriptor, POLLIN, 0};
    if (left <= 0 || poll(&one, 1, static_cast<int>(left)) <= 0) return false;
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got <= 0) return true;
    output->append(buffer, static_cast<size_t>(got));
  }
}

Ended in_child(double timeout_seconds, const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw Failure(std::string("pipe: ") + std::strerror(errno));
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child < 0) throw Failure(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    close(ends[0]);
    const std::string text = body();
    graft_trace_finish();
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 2);
  }
  close(ends[1]);
  Ended ended;
  const auto deadline =
      begin + std::chrono::microseconds(static_cast<int64_t>(timeout_seconds * 1e6));
  ended.hung = !read_until(ends[0], deadline, &ended.output);
  close(ends[0]);
  if (ended.hung) kill(child, SIGKILL);
  waitpid(child, &ended.status, 0);
  ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ended;
}

std::string missing_slot(const Case& one, const graft_driver_table& table) {
  std::istringstream needed(one.slots);
  const std::vector<std::string> omitted = omitted_slots(table);
  for (std::string slot; needed >> slot;) {
    for (const std::string& name : omitted) {
      if (name == slot) return slot;
    }
  }
  return "";
}

bool apply_late_error(const Options& options) {
  const size_t equals = options.late_error.find('=');
  if (equals == std::string::npos) return false;
  return setenv(options.late_error.substr(0, equals).c_str(),
                options.late_error.substr(equals + 1).c_str(), 1) == 0;
}

// The driver's fault strikes its second copy, so the layer makes none then.
std::string trace_of(const Case& one, const Options& options) {
  if (options.trace.empty()) return "";
  const bool alone = one.setting == Setting::kLateError;
  return options.trace + ",summary=0" + (alone ? ",probe=0,verify=0" : "");
}

// A case passes under the trace layer if the layer found nothing in the driver.
std::string traced_verdict(const Options& options) {
  if (options.trace.empty()) return "p";
  graft_trace_finish();
  char text[1024] = "";
  return graft_trace_findings(GRAFT_TRACE_DRIVER, text, sizeof text) == 0 ? "p"
                                                                          : std::string("f") + text;
}

std::string verdict_of(const Case& one, const Options& options) {
  try {
    if (one.setting == Setting::kLateError && !apply_late_error(options)) return "o--late-error";
    Session session(options.path, trace_of(one, options));
    const std::string slot = missing_slot(one, session.table);
    if (!slot.empty()) return "o" + slot;
    if (one.setting != Setting::kLoaded) session.open();
    one.run(session);
    return traced_verdict(options);
  } catch (const Omitted& omitted) {
    return std::string("o") + omitted.what();
  } catch (const Failure& failure) {
    return std::string("f") + failure.what();
  } catch (const std::exception& error) {
    return std::string("fa C++ exception crossed the ABI: ") + error.what();
  } catch (...) {
    return "fa C++ exception crossed the ABI";
  }
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "FAIL";
    case Verdict::kCrash:
      return "CRASH";
    case Verdict::kHang:
      return "HANG";
    case Verdict::kOmitted:
      return "omitted";
  }
  return "?";
}

Row run_case(const Case& one, const Options& options) {
  const Ended ended = in_child(options.timeout_seconds, [&] { return verdict_of(one, options); });
  Row row{one.name, Verdict::kFail, "", ended.seconds};
  if (ended.hung) {
    row.verdict = Verdict::kHang;
    row.message = "no answer within " + std::to_string(options.timeout_seconds) + " s";
  } else if (ended.output.empty()) {
    row.verdict = Verdict::kCrash;
    row.message = WIFSIGNALED(ended.status)
                      ? std::string("died by signal: ") + strsignal(WTERMSIG(ended.status))
                      : "the process left with code " + std::to_string(WEXITSTATUS(ended.status));
  } else {
    const char first = ended.output[0];
    row.verdict = first == 'p' ? Verdict::kPass : first == 'o' ? Verdict::kOmitted : Verdict::kFail;
    row.message = ended.output.substr(1);
  }
  return row;
}

std::vector<std::string> read_omitted_slots(const Options& options, std::string* message) {
  const Ended ended = in_child(options.timeout_seconds, [&]() -> std::string {
    try {
      std::string text = "p";
      const Session session(options.path);
      for (const std::string& name : omitted_slots(session.table)) text += name + " ";
      for (const std::string& name : omitted_extensions(session.table)) text += name + " ";
      return text;
    } catch (const std::exception& error) {
      return std::string("f") + error.what();
    }
  });
  std::vector<std::string> names;
  if (ended.output.empty() || ended.output[0] != 'p') {
    *message =
        ended.output.empty() ? "the driver crashed while it was loaded" : ended.output.substr(1);
    return names;
  }
  std::istringstream text(ended.output.substr(1));
  for (std::string name; text >> name;) names.push_back(name);
  return names;
}

}  // namespace graft::check
