// include/graft/driver_compiler.h: runs a vendor's compiler as a command, for drivers written in
// C++; optional, inline only.
//
//   graft::TemporaryFolder folder("graft-compile");
//   if (!folder.exists()) return fail(GRAFT_IO, folder.problem());
//   int result = graft::run_command({"cc", "-c", folder.file("kernel.c")}, folder.file("log"));
//   std::string said = graft::read_file(folder.file("log"));
//   if (graft::is_missing(result)) return fail(GRAFT_UNSUPPORTED, "no compiler: install cc");
//   if (graft::disk_is_full(said)) return fail(GRAFT_IO, said);
//   if (result != 0) return fail(GRAFT_COMPILE_ERROR, said);
//   std::string object = graft::read_file(folder.file("kernel.o"));  // "" if cc wrote nothing
//
// A compiler may be missing, fail, crash, hang, write nothing or fill the disk. The functions tell
// these apart; the user needs the compiler's output as the error's text.
//
// Give a limit to a command that may hang, and a folder to a command that keeps files:
//
//   graft::CommandOptions options;
//   options.seconds = 120;
//   options.environment = {"COMPILER_CACHE=" + folder.file("cache")};
//   int result = graft::run_command({"cc", "-c", folder.file("kernel.c")}, folder.file("log"),
//                                   options);
//   if (result == -ETIMEDOUT) return fail(GRAFT_UNSUPPORTED, "cc hangs: repair it");
//
// All functions are safe for several threads and processes. They throw std::bad_alloc only.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_COMPILER_H_
#define GRAFT_DRIVER_COMPILER_H_

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

extern char** environ;

// Two drivers of one process must not share this code: each may be built with another release of
// the header.
#pragma GCC visibility push(hidden)

namespace graft {

// A folder for a compiler's files in TMPDIR, else /tmp, which only this user can open. The
// destructor removes the folder with its files; a killed process leaves them.
//
// Each folder has a name that was free, so threads and processes do not share one.
class TemporaryFolder {
 public:
  // Makes the folder; exists() says whether that worked.
  // name: the beginning of the folder's name.
  explicit TemporaryFolder(std::string_view name) {
    const char* root = std::getenv("TMPDIR");
    std::string pattern = root != nullptr && *root != '\0' ? root : "/tmp";
    pattern.append("/").append(name).append("-XXXXXX");
    if (mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
    } else {
      problem_ = "cannot make the temporary folder " + pattern + ": " + strerror(errno) +
                 ": set TMPDIR to a folder that can be written";
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Whether the constructor made the folder. The functions below require it.
  bool exists() const { return !path_.empty(); }
  // Why the folder does not exist, with a remedy, for the user; "" if it exists. The slot then
  // returns IO.
  const std::string& problem() const { return problem_; }
  // The path of a file in the folder; the file need not exist, and the caller may make it.
  // REQUIRES: exists().
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  // One of both is empty.
  std::string path_, problem_;
};

// The words of a setting that names a command with its flags. Spaces separate words; there is no
// quoting, so a word holds no space.
inline std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The bytes of a file; "" if it cannot be read. An empty output of a compiler thus counts as a
// missing one.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Makes or replaces a file. Returns whether all bytes were written: false if the disk is full or
// the folder cannot be written.
inline bool write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  return bool(file.write(bytes.data(), std::streamsize(bytes.size())).flush());
}

// How run_command runs a command. The defaults: the caller's environment, unchanged, and no limit
// of time.
struct CommandOptions {
  // Variables, each "NAME=value", which replace the caller's.
  std::vector<std::string> environment;
  // Most seconds; 0: no limit. A command with a limit leads a new process group, which is killed as
  // a whole, with the processes that the command started. Ctrl-C in a terminal does not reach it.
  uint32_t seconds = 0;
};

// Waits for a child process; polls every millisecond if there is a limit. Returns waitpid's result
// and status, or 0 if the process still runs after seconds (0: no limit). Repeats interrupted
// calls.
inline pid_t wait_for_process(pid_t process, int* status, uint32_t seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (true) {
    const pid_t waited = waitpid(process, status, seconds == 0 ? 0 : WNOHANG);
    if (waited > 0 || (waited < 0 && errno != EINTR)) return waited;
    if (seconds == 0) continue;
    if (std::chrono::steady_clock::now() >= until) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Runs a command, found in PATH, without input and with both outputs in a file, and waits for it.
// There is no shell: the command gets the words unchanged, in the caller's environment.
// Returns the exit status, 128 + the signal that ended the command, -errno if it did not start, or
// -ETIMEDOUT if it was killed after options.seconds; the file then holds the output so far.
// output: a path, best in a TemporaryFolder. REQUIRES: words is not empty.
inline int run_command(std::vector<std::string> words, const std::string& output,
                       CommandOptions options = {}) {
  std::vector<char*> arguments, variables;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  for (std::string& variable : options.environment) variables.push_back(variable.data());
  // A program may take the first or the last of two variables of one name: only ours is given.
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view name(*variable, strcspn(*variable, "=") + 1);
    if (std::none_of(options.environment.begin(), options.environment.end(),
                     [&](const std::string& one) { return one.rfind(name, 0) == 0; })) {
      variables.push_back(*variable);
    }
  }
  variables.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (options.seconds > 0) {  // a new group, which can be killed as a whole
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
  }
  pid_t child = 0;
  int error =
      posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  int status = 0;
  pid_t waited = wait_for_process(child, &status, options.seconds);
  if (waited == 0) {  // it hangs
    kill(-child, SIGKILL);
    wait_for_process(child, &status, 0);
    return -ETIMEDOUT;
  }
  // A process that ignores SIGCHLD gets no status; the output file tells then.
  if (waited < 0) return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Whether a result of run_command means that the command is missing: UNSUPPORTED, not an error of
// the source. A command that this user cannot execute counts as missing.
inline bool is_missing(int result) {
  return result == -ENOENT || result == -EACCES || result == 127;
}

// Whether a command's output says that the disk is full: IO, not an error of the source. Knows the
// C library's English words only: in another language a full disk counts as the command's error,
// which the driver reports with the same text.
inline bool disk_is_full(std::string_view log) {
  return log.find("No space left on device") != std::string_view::npos ||
         log.find("Disk quota exceeded") != std::string_view::npos;
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_COMPILER_H_
