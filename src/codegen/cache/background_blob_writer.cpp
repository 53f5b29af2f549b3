// src/codegen/cache/background_blob_writer.cpp: blobs that drivers make after their programs, while
// the process goes on.
#include "codegen/cache/background_blob_writer.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "codegen/cache/blob_store.h"
#include "codegen/cache/compile_progress.h"
#include "codegen/cache/toolchain.h"
#include "runtime/driver/bounded_wait.h"
#include "runtime/driver/fork.h"
#include "runtime/platform/platform.h"

namespace graft {
namespace {

struct Job {
  OpenDevice* device;
  graft_status (*save)(graft_program program, graft_sink blob);
  graft_program program;
  std::string name;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable empty;
  std::deque<Job> jobs;  // guarded by mutex, as is the next; the first is being done
  bool works = false;    // a thread takes jobs until there is none
};

Queue& queue() {
  static auto* the_queue = new Queue();  // kernels may be asked for while the process ends
  return *the_queue;
}

void keep(const Job& job) {
  std::string blob;
  if (Driver::call(job.save, job.program, sink_into(&blob)) == GRAFT_OK) {
    blob_store().write(job.name, blob);
  }
}

void work() {
  Queue& here = queue();
  std::unique_lock lock(here.mutex);
  while (!here.jobs.empty()) {
    const Job job = here.jobs.front();
    lock.unlock();
    keep(job);
    lock.lock();
    here.jobs.pop_front();
  }
  here.works = false;
  here.empty.notify_all();
}

void finish() noexcept {
  if (forked_child()) return;
  Queue& here = queue();
  std::unique_lock lock(here.mutex);
  Patience patience({}, {});
  try {
    while (here.works) {
      const size_t left = here.jobs.size();
      const CompileProgress progress(here.jobs.front().device->label());
      const auto fewer = [&] { return here.jobs.size() < left || !here.works; };
      while (!here.empty.wait_for(lock, Patience::kSlice, fewer)) {
        lock.unlock();
        patience.lasts();
        lock.lock();
      }
    }
  } catch (...) {  // interrupted: these kernels are compiled again
  }
}

}  // namespace

void keep_later(OpenDevice& device, const graft_programs_table& table, graft_program program,
                std::string name) {
  platform().before_shutdown(&finish);
  Queue& here = queue();
  std::lock_guard lock(here.mutex);
  here.jobs.push_back({&device, table.program_save, program, std::move(name)});
  if (here.works) return;
  here.works = true;
  std::thread(work).detach();
}

}  // namespace graft
