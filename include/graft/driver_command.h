// include/graft/driver_command.h: how a driver written in C++ runs its vendor's compiler as a
// command; optional, all of it inline.
//
//   graft::TemporaryFolder folder("graft-compile");
//   if (!folder.exists()) return fail(GRAFT_IO, folder.problem());
//   int result = graft::run_command({"cc", "-c", folder.file("kernel.c")}, folder.file("log"));
//   std::string said = graft::read_file(folder.file("log"));
//   if (graft::is_missing(result)) return fail(GRAFT_UNSUPPORTED, "no compiler: install cc");
//   if (graft::disk_is_full(said)) return fail(GRAFT_IO, said);
//   if (result != 0) return fail(GRAFT_COMPILE_ERROR, said);
//   std::string object = graft::read_file(folder.file("kernel.o"));  // "": it wrote nothing
//
// A compiler is somebody else's program: it may be missing, fail, crash, hang, write nothing or
// fill the disk. The functions tell these apart, and what it wrote is the text that the user needs.
//
// A command that may hang gets a limit, and one that keeps files of its own is told where:
//
//   graft::CommandOptions options;
//   options.seconds = 120;
//   options.environment = {"COMPILER_CACHE=" + folder.file("cache")};
//   int result = graft::run_command({"cc", "-c", folder.file("kernel.c")}, folder.file("log"),
//                                   options);
//   if (result == -ETIMEDOUT) return fail(GRAFT_UNSUPPORTED, "cc hangs: repair it");
//
// All of it is thread-safe, also beside other processes. Nothing throws but std::bad_alloc.
#ifndef GRAFT_DRIVER_COMMAND_H_
#define GRAFT_DRIVER_COMMAND_H_

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

// Two drivers of one process must not share the code: each may be built with another release of
// this header.
#pragma GCC visibility push(hidden)

namespace graft {

// The folder keeps what a compiler reads and writes from other users and other processes, and
// leaves nothing behind where the compiler fails. A process that is killed leaves it.
//
// Folders of several threads and processes never meet: each gets a name that was free.
// A folder that only this user can open, in TMPDIR or else /tmp; it is gone, with its files, at the
// end of the scope.
class TemporaryFolder {
 public:
  // name: how the folder's name begins.
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

  // Whether it could be made. The functions below need it.
  bool exists() const { return !path_.empty(); }
  // Why it does not exist, with a remedy: a text for the user and IO for the caller. "" if it
  // exists.
  const std::string& problem() const { return problem_; }
  // The path of a file in it, which need not be there. REQUIRES: it exists.
  std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_, problem_;
};

// The words of text, which spaces separate: how a setting names a command with its flags. There is
// no quoting, so no word holds a space.
inline std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The bytes of a file; "" if it cannot be read. A compiler's output that is empty is thereby the
// same as one that is missing.
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Makes a file, or replaces it. Whether all bytes are in it now: false also where the disk is full.
inline bool write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  return bool(file.write(bytes.data(), std::streamsize(bytes.size())).flush());
}

// How run_command runs a command. As it stands: in the caller's environment, for as long as it
// takes.
struct CommandOptions {
  // Variables, "NAME=value" each, instead of the caller's of that name.
  std::vector<std::string> environment;
  // Most seconds; 0: no limit. A command with a limit is the first of a process group of its own,
  // which is killed as a whole: what it started ends with it. Ctrl-C in a terminal does not reach
  // such a group.
  uint32_t seconds = 0;
};

// Waits for a process that is a child of this one, and looks every millisecond if there is a limit.
// Returns what waitpid returns, also in *status, or 0 if it still runs after so many seconds (0: no
// limit). Interrupted calls go on.
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

// Runs a command, found in PATH, with both outputs in a file and no input, and waits for it. No
// shell is between: words reach the command as they are. It has the caller's environment.
// Returns its exit status, 128 + the signal that ended it, -errno if it did not start, or
// -ETIMEDOUT if it was killed after options.seconds: the output then holds what it had written.
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
  if (options.seconds > 0) {  // a group of its own, so that all of it can be killed
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

// Whether a result of run_command means that there is no such command: UNSUPPORTED, not an error of
// the source.
// A command that cannot be executed by this user counts as missing.
inline bool is_missing(int result) {
  return result == -ENOENT || result == -EACCES || result == 127;
}

// Whether a command's output says that it could not write: IO, not an error of the source. The
// words are those of the C library, in English; in other languages it counts as the command's
// error.
inline bool disk_is_full(std::string_view log) {
  return log.find("No space left on device") != std::string_view::npos ||
         log.find("Disk quota exceeded") != std::string_view::npos;
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_COMMAND_H_
