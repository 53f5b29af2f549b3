// drivers/host/process_identity.cpp: tells whether another process still runs.
#include "process_identity.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

namespace graft::host {
namespace {

// What /proc/<pid>/stat says; readable is false when there is no such file.
struct Row {
  bool readable = false;
  char state = '?';
  uint64_t threads = 0, start = 0;
};

Row read_row(int32_t pid) {
  Row row;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return row;
  // The name in brackets may hold brackets and spaces; what follows the last one is words.
  const size_t end = line.rfind(')');
  if (end == std::string::npos) return row;
  std::istringstream words(line.substr(end + 1));
  std::string skipped;
  words >> row.state;
  for (int field = 4; field < 20; ++field) words >> skipped;
  words >> row.threads >> skipped >> row.start;
  row.readable = !words.fail();
  return row;
}

uint64_t own_space() {
  struct stat found = {};
  return stat("/proc/self/ns/pid", &found) == 0 ? uint64_t(found.st_ino) : 0;
}

}  // namespace

ProcessIdentity this_process() {
  const int32_t pid = int32_t(getpid());
  return {pid, read_row(pid).start, own_space()};
}

bool has_ended(const ProcessIdentity& process) {
  if (process.pid == 0 || process.space != own_space()) return false;
  if (kill(process.pid, 0) != 0 && errno == ESRCH) return true;
  const Row row = read_row(process.pid);
  if (!row.readable) return false;
  if (process.start != 0 && row.start != process.start) return true;
  // A first thread that ended leaves the same letter while the others go on.
  return row.state == 'X' || (row.state == 'Z' && row.threads <= 1);
}

}  // namespace graft::host
