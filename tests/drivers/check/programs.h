// tests/drivers/check/programs.h: test kernels in the device's dialect, from source to launch.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_PROGRAMS_H_
#define GRAFT_TESTS_DRIVERS_CHECK_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "check/session.h"

namespace graft::check {

// The optional slots that a case with kernels needs.
inline constexpr const char* kKernelSlots =
    "program_compile program_load kernel_find kernel_launch";

// What differs from one test kernel to the next. Its parameters are pointers p0, p1, ... to type,
// then, where asked for, "shared", local memory of ints, and the int n. The body's statements know
// i, the work-item's index, and in a GPU-like language l and s, its place in the group and the
// group's size. The language has i64, ATOMIC_ADD(pointer to i64, i64) and BARRIER.
struct KernelText {
  std::string name = "add_n";
  std::string body = "p0[i] += n;";
  std::string type = "int";
  uint32_t addresses = 1;
  bool scalar = true;
  bool local = false;
};

// The kernel in the device's dialect. Throws Failure for a dialect that is not known here.
std::string source_of(const Session& session, const KernelText& text);

// Each goes on where the one before ended. Throw Failure where the driver fails.
std::string compile(Session& session, const std::string& source);
graft_program load(Session& session, const std::string& blob);
graft_kernel find(Session& session, graft_program program, const std::string& name = "add_n");
graft_kernel build(Session& session, const KernelText& text);

// One launch; n and local memory are handed over where the kernel has them.
struct Work {
  std::vector<graft_address> addresses;
  uint64_t bytes = 0;  // behind each address
  uint64_t grid = 1;   // groups
  uint32_t group = 1;  // work-items of each
  int n = 0;
};

// Enqueues it; the arguments are spoilt before it returns. text: what the kernel was built of.
graft_status launch(Session& session, graft_stream stream, graft_kernel kernel,
                    const KernelText& text, const Work& work, uint64_t local_bytes = 0);

// Enqueues x[i] += n for count words with the kernel of KernelText{}. Throws Failure.
void add(Session& session, graft_stream stream, graft_kernel kernel, graft_address x,
         uint64_t count, int n);

// Memory of count words, filled with zeros in the stream.
graft_address zeros(Session& session, graft_stream stream, uint64_t count);

// count words of device memory, once the stream's work is done.
std::vector<int32_t> words_at(Session& session, graft_stream stream, graft_address x,
                              uint64_t count);

// Throws Failure unless each of count words is sum.
void require_sum(Session& session, graft_stream stream, graft_address x, uint64_t count, int sum);

// A graft_sink's write: appends to the std::string behind context.
void append(void* context, const void* data, size_t bytes);

}  // namespace graft::check

#endif  // GRAFT_TESTS_DRIVERS_CHECK_PROGRAMS_H_
