// drivers/veda/program/entry.h: the device's side of a launch, compiled into each program.
#ifndef GRAFT_DRIVERS_VEDA_PROGRAM_ENTRY_H_
#define GRAFT_DRIVERS_VEDA_PROGRAM_ENTRY_H_

namespace graft::veda {

inline constexpr char kEntryName[] = "graft_veda_launch";

// Calls a kernel of dialect "c" for the work-items [0, grid) on at most so many cores and returns
// 0. VEDA calls it with numbers and, for the arguments, with a pointer to a copy on its stack.
inline constexpr char kEntrySource[] = R"(
#ifndef _OPENMP
#include <pthread.h>
#endif
typedef unsigned long long u64;
typedef void (*kernel_function)(const void* arguments, u64 begin, u64 end);
typedef struct {
  kernel_function function;
  const void* arguments;
  u64 grid, parts, part;
} share;

static void run_share(const share* s) {
  const u64 each = s->grid / s->parts, more = s->grid % s->parts;
  const u64 begin = each * s->part + (s->part < more ? s->part : more);
  s->function(s->arguments, begin, begin + each + (s->part < more));
}

#ifdef _OPENMP
static void run_shares(const share* first) {
  const int parts = (int)first->parts;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int i = 0; i < parts; ++i) {
    share mine = *first;
    mine.part = (u64)i;
    run_share(&mine);
  }
}
#else
enum { most_threads = 256 };

static void* run_thread(void* s) {
  run_share((const share*)s);
  return 0;
}

static void run_shares(const share* first) {
  share shares[most_threads];
  pthread_t threads[most_threads];
  int started[most_threads];
  for (u64 i = 1; i < first->parts; ++i) {
    shares[i] = *first;
    shares[i].part = i;
    started[i] = pthread_create(&threads[i], 0, run_thread, &shares[i]) == 0;
  }
  run_share(first);
  for (u64 i = 1; i < first->parts; ++i) {
    if (started[i]) {
      pthread_join(threads[i], 0);
    } else {
      run_share(&shares[i]);
    }
  }
}
#endif

u64 graft_veda_launch(u64 kernel, u64 grid, u64 cores, const void* arguments) {
  share first = {(kernel_function)kernel, arguments, grid, grid < cores ? grid : cores, 0};
#ifndef _OPENMP
  if (first.parts > most_threads) first.parts = most_threads;
#endif
  if (first.parts > 1) {
    run_shares(&first);
  } else {
    first.function(arguments, 0, grid);
  }
  return 0;
}
)";

}  // namespace graft::veda

#endif  // GRAFT_DRIVERS_VEDA_PROGRAM_ENTRY_H_
