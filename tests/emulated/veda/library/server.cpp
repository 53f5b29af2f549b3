// tests/emulated/veda/library/server.cpp: the process of one device, from start to end.
#include "tests/emulated/veda/library/server.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "tests/emulated/veda/library/entry.h"

namespace emulated {
namespace {

constexpr int kFirstSpareFile = 200;  // above those that the process gets
constexpr int kPatience = 300;        // milliseconds

std::string file_beside_library() {
  Dl_info info = {};
  ::dladdr(reinterpret_cast<const void*>(&file_beside_library), &info);
  return std::filesystem::path(info.dli_fname).replace_filename("emulated_ve").string();
}

// A pair of sockets: the first for this process, the second for the device's.
std::pair<int, int> socket_pair() {
  int files[2] = {-1, -1};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, files) == 0,
          VEDA_ERROR_CANNOT_CREATE_CONTEXT);
  const int theirs = ::fcntl(files[1], F_DUPFD_CLOEXEC, kFirstSpareFile);
  ::close(files[1]);
  if (theirs < 0) {
    ::close(files[0]);
    throw Failure{VEDA_ERROR_CANNOT_CREATE_CONTEXT};
  }
  return {files[0], theirs};
}

}  // namespace

Server::Server(const std::string& file, int device, long long memory, int cores, int streams) {
  const std::string path = file.empty() ? file_beside_library() : file;
  std::vector<int> theirs;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int index = 0; index <= streams; ++index) {
    const auto [ours, other] = socket_pair();
    auto channel = std::make_unique<Channel>(ours);
    if (index == 0) {
      control_ = std::move(channel);
    } else {
      streams_.push_back(std::move(channel));
    }
    theirs.push_back(other);
    ::posix_spawn_file_actions_adddup2(&actions, other, kControlFile + index);
  }
  std::string words[] = {path,
                         std::to_string(device),
                         std::to_string(memory),
                         std::to_string(cores),
                         std::to_string(streams),
                         std::to_string(::getpid())};
  char* pointers[std::size(words) + 1] = {};
  for (std::size_t word = 0; word < std::size(words); ++word) pointers[word] = words[word].data();
  const int error = ::posix_spawn(&process_, path.c_str(), &actions, nullptr, pointers, ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  for (const int other : theirs) ::close(other);
  if (error != 0) {
    std::fprintf(stderr, "emulated VEDA: cannot start %s: %s\n", path.c_str(),
                 std::strerror(error));
    process_ = -1;
    throw Failure{VEDA_ERROR_CANNOT_CREATE_CONTEXT};
  }
}

Server::~Server() { stop(); }

void Server::stop() {
  if (process_ < 0) return;
  // It writes out what its kernels printed and ends; one that cannot is killed.
  for (int wait = 0; wait < kPatience; ++wait) {
    const pid_t ended = ::waitpid(process_, nullptr, WNOHANG);
    if (ended == process_ || (ended < 0 && errno != EINTR)) {
      process_ = -1;
      return;
    }
    ::usleep(1000);
  }
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

}  // namespace emulated
