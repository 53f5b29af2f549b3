// tests/emulated/veda/ve/cores.cpp: the cores of one device, on which device code may spread its
// work.
#include "tests/emulated/veda/ve/cores.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/emulated/veda/device.h"

namespace emulated {
namespace {

using Body = void (*)(void* context, int core, int cores);

int core_count = 1;

// Threads that wait for work; made by the first kernel that spreads some.
class Pool {
 public:
  explicit Pool(int count) {
    for (int core = 1; core < count; ++core) {
      std::thread([this, core, count] { serve(core, count); }).detach();
    }
  }

  void run(Body body, void* context, int count) {
    const std::lock_guard one_at_a_time(callers_);
    {
      const std::lock_guard lock(mutex_);
      body_ = body;
      context_ = context;
      busy_ = count - 1;
      ++round_;
    }
    changed_.notify_all();
    body(context, 0, count);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  std::mutex callers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Body body_ = nullptr;
  void* context_ = nullptr;
  int busy_ = 0;
  unsigned round_ = 0;

  void serve(int core, int count) {
    unsigned seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return round_ != seen; });
      seen = round_;
      const Body body = body_;
      void* context = context_;
      lock.unlock();
      body(context, core, count);
      lock.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }
};

}  // namespace

void start_cores(int count) { core_count = count; }

}  // namespace emulated

extern "C" {

int emulated_ve_cores(void) { return emulated::core_count; }

void emulated_ve_parallel(void (*body)(void* context, int core, int cores), void* context) {
  static auto* pool = new emulated::Pool(emulated::core_count);
  pool->run(body, context, emulated::core_count);
}

}  // extern "C"
