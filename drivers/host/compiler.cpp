// drivers/host/compiler.cpp: runs the system's C compiler.
#include "compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "settings.h"

extern char** environ;

namespace graft::host {
namespace {

constexpr const char* kFlags[] = {"-O3",
                                  "-march=native",
                                  "-mprefer-vector-width=512",
                                  "-fno-math-errno",
                                  "-fno-trapping-math",
                                  "-fopenmp-simd",
                                  "-w",
                                  "-shared",
                                  "-fPIC"};

// A folder of our own that is gone, with its files, at the end of the scope.
class Folder {
 public:
  Folder() {
    const char* root = std::getenv("TMPDIR");
    std::string pattern =
        std::string(root != nullptr && *root != '\0' ? root : "/tmp") + "/graft-compile-XXXXXX";
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  bool exists() const { return !path_.empty(); }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void split(std::string_view text, std::vector<std::string>* words) {
  std::istringstream stream{std::string(text)};
  for (std::string word; stream >> word;) words->push_back(word);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs a command with both outputs in a file. Returns its exit status, or -errno when it did not
// start.
int run(std::vector<std::string> words, const std::string& output) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -error;
  int status = 0;
  pid_t waited;
  while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR) {
  }
  // A process that ignores SIGCHLD gets no status; the output file tells then.
  if (waited < 0) return 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool disk_is_full(const std::string& log) {
  return log.find("No space left on device") != std::string::npos ||
         log.find("Disk quota exceeded") != std::string::npos;
}

}  // namespace

graft_status compile_c(std::string_view source, std::string_view options, std::string* out_object,
                       std::string* out_log) {
  Folder folder;
  if (!folder.exists()) {
    *out_log = "cannot make a temporary folder: " + std::string(strerror(errno)) + ": set TMPDIR";
    return GRAFT_IO;
  }
  std::string input = folder.file("kernel.c"), object = folder.file("kernel.so");
  std::string output = folder.file("log");
  std::ofstream file(input, std::ios::binary);
  if (!file.write(source.data(), std::streamsize(source.size())).flush()) {
    *out_log = "cannot write " + input + ": is the disk full? TMPDIR names another place";
    return GRAFT_IO;
  }
  std::vector<std::string> words;
  split(settings().compiler, &words);
  words.insert(words.end(), std::begin(kFlags), std::end(kFlags));
  split(options, &words);
  words.insert(words.end(), {"-o", object, input, "-lm"});
  int result = run(words, output);
  *out_log = read_file(output);
  if (result == -ENOENT || result == -EACCES || result == 127) {
    *out_log = "no C compiler: install gcc, or name one in GRAFT_CC (now '" + words[0] + "')";
    return GRAFT_UNSUPPORTED;
  }
  if (result < 0) {
    *out_log = "cannot start " + words[0] + ": " + strerror(-result);
    return GRAFT_INTERNAL;
  }
  if (result == 0) *out_object = read_file(object);
  if (result == 0 && !out_object->empty()) return GRAFT_OK;
  return disk_is_full(*out_log) ? GRAFT_IO : GRAFT_COMPILE_ERROR;
}

std::string compiler_version() {
  Folder folder;
  std::vector<std::string> words;
  split(settings().compiler, &words);
  words.push_back("--version");
  std::string output = folder.file("log");
  if (!folder.exists() || run(words, output) != 0) return "";
  std::string text = read_file(output);
  return text.substr(0, text.find('\n'));
}

}  // namespace graft::host
