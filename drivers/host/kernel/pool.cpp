// drivers/host/kernel/pool.cpp: the one set of threads that computes for all streams.
#include "pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "library.h"
#include "settings.h"

namespace graft::host {
namespace {

// Several ranges per thread, so that a thread that was held up does not hold up the rest.
constexpr uint64_t kRangesPerThread = 4;

// One call of run_on_own_threads, on its caller's stack.
struct Job {
  RangeFunction function;
  void* context;
  uint64_t count, step;
  std::atomic<uint64_t> next{0};
  uint32_t helpers = 0;  // guarded by the pool's mutex

  bool exhausted() const { return next.load(std::memory_order_relaxed) >= count; }
  void work() {
    for (uint64_t begin; (begin = next.fetch_add(step)) < count;) {
      function(context, begin, std::min(begin + step, count));
    }
  }
};

// Lives until the process ends; its threads are never joined.
class Pool {
 public:
  explicit Pool(uint32_t threads) {
    for (uint32_t i = 1; i < threads; ++i) std::thread(&Pool::help, this).detach();
  }

  void run(Job& job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.push_back(&job);
    }
    wake_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    left_.wait(lock, [&job] { return job.helpers == 0; });
  }

 private:
  // REQUIRES: mutex_ is held.
  Job* open_job() {
    for (Job* job : jobs_) {
      if (!job->exhausted()) return job;
    }
    return nullptr;
  }

  void help() {
    pthread_setname_np(pthread_self(), "graft-compute");
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = nullptr;
      wake_.wait(lock, [&] { return (job = open_job()) != nullptr; });
      ++job->helpers;
      lock.unlock();
      job->work();
      lock.lock();
      if (--job->helpers == 0) left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::deque<Job*> jobs_;  // guarded by mutex_
};

}  // namespace

void run_on_own_threads(uint64_t count, RangeFunction function, void* context) {
  static Pool* pool = new Pool(settings().threads);
  uint64_t ranges = settings().threads * kRangesPerThread;
  Job job{function, context, count, std::max<uint64_t>(1, count / ranges)};
  pool->run(job);
}

void run_parallel(uint64_t count, RangeFunction function, void* context) {
  if (count <= 1 || settings().threads == 1) {
    function(context, 0, count);
    return;
  }
  const LibraryTable* library = compute_library();
  if (library == nullptr) return run_on_own_threads(count, function, context);
  uint64_t ranges = std::min(count, settings().threads * kRangesPerThread);
  library->parallel(count, ranges, function, context);
}

}  // namespace graft::host
