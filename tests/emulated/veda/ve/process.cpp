// tests/emulated/veda/ve/process.cpp: the process of one emulated device: serves the requests of
// the library.
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/emulated/veda/channel.h"
#include "tests/emulated/veda/ve/call.h"
#include "tests/emulated/veda/ve/cores.h"
#include "tests/emulated/veda/ve/memory.h"

namespace emulated {
namespace {

constexpr int kUnset = 0xA5;  // the bytes of a buffer that only goes out

int device_number = 0;

[[noreturn]] void die(const char* why) {
  std::fprintf(stderr, "emulated VE %d: %s\n", device_number, why);
  std::abort();
}

// A fault of device code, said in one line whatever a sanitizer would print; then it takes its
// course.
void say_fault(int signal, siginfo_t* fault, void*) {
  char text[96];
  const int size = std::snprintf(text, sizeof text, "emulated VE %d: exception: signal %d at %p\n",
                                 device_number, signal, fault->si_addr);
  [[maybe_unused]] const ssize_t written = ::write(2, text, static_cast<std::size_t>(size));
  ::raise(signal);
}

void watch_faults() {
  struct sigaction action = {};
  action.sa_sigaction = say_fault;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::sigaction(signal, &action, nullptr);
}

void* address(std::uint64_t raw) { return reinterpret_cast<void*>(raw); }

// One connection: the library's control, or one stream. Returns when the other end is gone.
class Connection {
 public:
  explicit Connection(int file) : channel_(file) {}

  void serve() {
    while (channel_.receive(&request_, sizeof request_)) {
      Reply reply = {};
      if (!answer(&reply)) return;
    }
  }

 private:
  Channel channel_;
  Request request_ = {};

  bool send(const Reply& reply) { return channel_.send(&reply, sizeof reply); }

  bool answer(Reply* reply) {
    switch (request_.command) {
      case Command::kWrite:
        if (!channel_.receive(address(request_.words[0]), request_.payload)) {
          if (errno == EFAULT)
            die("exception: a copy to the device meets memory that is not there");
          return false;
        }
        return send(*reply);
      case Command::kRead:
        reply->payload = request_.words[1];
        if (!send(*reply)) return false;
        if (!channel_.send(address(request_.words[0]), request_.words[1])) {
          if (errno == EFAULT)
            die("exception: a copy from the device meets memory that is not there");
          return false;
        }
        return true;
      case Command::kLoad:
      case Command::kUnload:
      case Command::kSymbol:
        return answer_library(reply);
      case Command::kCall:
        return answer_call(reply);
      case Command::kCrash:
        die("exception, as planted");
      case Command::kHang:
        for (;;) ::pause();
      default:
        answer_memory(reply);
        return send(*reply);
    }
  }

  void answer_memory(Reply* reply) {
    const auto& words = request_.words;
    switch (request_.command) {
      case Command::kAllocate:
        reply->value = memory().allocate(words[0], words[1]);
        break;
      case Command::kAssign:
        memory().assign(words[0], words[1], words[2]);
        break;
      case Command::kFree:
        reply->status = memory().free(words[0]);
        break;
      case Command::kRelease:
        reply->status = memory().release(words[0]);
        break;
      case Command::kSwap:
        reply->status = memory().swap(words[0], words[1]);
        break;
      case Command::kInfo: {
        const Segment segment = memory().find(words[0]);
        reply->value = segment.raw;
        reply->second = segment.size;
        break;
      }
      case Command::kRawAllocate:
        reply->value = memory().allocate_raw(words[0]);
        break;
      case Command::kRawFree:
        reply->status = memory().free_raw(words[0]);
        break;
      case Command::kRawCopy:
        std::memmove(address(words[0]), address(words[1]), words[2]);
        break;
      case Command::kCopy:
        reply->status = copy(words[0], words[1], words[2]);
        break;
      case Command::kRawFill:
        fill(address(words[0]), words[1], {words[2], words[3]}, words[4], words[5], words[6]);
        break;
      case Command::kFill:
        reply->status = fill_segment(words);
        break;
      default:
        reply->status = VEDA_ERROR_NOT_IMPLEMENTED;
    }
  }

  static VEDAresult copy(std::uint64_t to, std::uint64_t from, std::uint64_t size) {
    std::uint64_t raw_to = 0;
    std::uint64_t raw_from = 0;
    VEDAresult result = memory().resolve(to, size, &raw_to);
    if (result == VEDA_SUCCESS) result = memory().resolve(from, size, &raw_from);
    if (result == VEDA_SUCCESS) std::memmove(address(raw_to), address(raw_from), size);
    return result;
  }

  static VEDAresult fill_segment(const std::uint64_t (&words)[8]) {
    const bool checked = words[7] != 0;
    if (checked && words[4] > UINT64_MAX / words[1]) return VEDA_ERROR_OUT_OF_BOUNDS;
    std::uint64_t raw = 0;
    const VEDAresult result = memory().resolve(words[0], checked ? words[4] * words[1] : 0, &raw);
    if (result != VEDA_SUCCESS) return result;
    fill(address(raw), words[1], {words[2], words[3]}, words[4], words[5], words[6]);
    return VEDA_SUCCESS;
  }

  bool answer_library(Reply* reply) {
    std::string text(request_.payload, '\0');
    if (!channel_.receive(text.data(), text.size())) return false;
    void* handle = address(request_.words[0]);
    if (request_.command == Command::kLoad) {
      void* loaded = ::dlopen(text.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (loaded == nullptr)
        std::fprintf(stderr, "emulated VE %d: %s\n", device_number, ::dlerror());
      reply->value = reinterpret_cast<std::uint64_t>(loaded);
    } else if (request_.command == Command::kSymbol) {
      reply->value = reinterpret_cast<std::uint64_t>(::dlsym(handle, text.c_str()));
    } else {
      ::dlclose(handle);
    }
    return send(*reply);
  }

  // Buffers are copied in and out, as on a VE's stack.
  bool answer_call(Reply* reply) {
    std::vector<Argument> arguments(request_.words[1]);
    if (!channel_.receive(arguments.data(), arguments.size() * sizeof(Argument))) return false;
    std::vector<std::unique_ptr<std::max_align_t[]>> owners;
    std::vector<void*> buffers;
    for (const Argument& argument : arguments) {
      if (argument.kind != ArgumentKind::kBuffer) continue;
      owners.emplace_back(new std::max_align_t[argument.value / sizeof(std::max_align_t) + 1]);
      buffers.push_back(owners.back().get());
      std::memset(buffers.back(), kUnset, argument.value);
      if (argument.intent != VEDA_ARGS_INTENT_OUT &&
          !channel_.receive(buffers.back(), argument.value)) {
        return false;
      }
    }
    reply->value = call(request_.words[0], arguments, buffers);
    if (!send(*reply)) return false;
    std::size_t buffer = 0;
    for (const Argument& argument : arguments) {
      if (argument.kind != ArgumentKind::kBuffer) continue;
      void* data = buffers[buffer++];
      if (argument.intent != VEDA_ARGS_INTENT_IN && !channel_.send(data, argument.value)) {
        return false;
      }
    }
    return true;
  }
};

int run(int count, char** words) {
  if (count != 6) {
    std::fprintf(stderr, "usage: emulated_ve <device> <memory> <cores> <streams> <parent>\n");
    return 2;
  }
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  watch_faults();
  device_number = std::atoi(words[1]);
  start_memory(device_number, std::strtoull(words[2], nullptr, 10));
  start_cores(std::atoi(words[3]));
  const int streams = std::atoi(words[4]);
  const pid_t parent = std::atoi(words[5]);
  for (int stream = 0; stream < streams; ++stream) {
    std::thread([stream] { Connection(kControlFile + 1 + stream).serve(); }).detach();
  }
  std::thread([] {
    Connection(kControlFile).serve();
    std::fflush(nullptr);
    ::_exit(0);  // the library closed its end, or its process is gone
  }).detach();
  // A child of the library's process may hold the sockets open.
  while (::getppid() == parent) ::usleep(100'000);
  ::_exit(0);
}

}  // namespace
}  // namespace emulated

int main(int count, char** words) { return emulated::run(count, words); }
