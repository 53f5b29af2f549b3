// tests/drivers/check/program_cases.cpp: several programs at once, with kernels of one name.
#include <vector>

#include "check/cases.h"
#include "check/programs.h"

using graft::check::add;
using graft::check::compile;
using graft::check::find;
using graft::check::KernelText;
using graft::check::load;
using graft::check::require_sum;
using graft::check::Session;
using graft::check::source_of;
using graft::check::zeros;

namespace {

// The programs' kernels are all called add_n; the one of program k adds n k + 1 times.
std::vector<graft_program> load_all(Session& session) {
  std::vector<graft_program> programs;
  for (const char* body : {"p0[i] += n;", "p0[i] += 2 * n;", "p0[i] += 3 * n;"}) {
    KernelText text;
    text.body = body;
    programs.push_back(load(session, compile(session, source_of(session, text))));
  }
  return programs;
}

}  // namespace

DRIVER_CASE(one_name, "kernel: programs with kernels of one name are told apart",
            graft::check::kKernelSlots, kOpen) {
  graft_stream stream = session.stream();
  const std::vector<graft_program> programs = load_all(session);
  std::vector<graft_kernel> kernels;
  for (graft_program program : programs) kernels.push_back(find(session, program));
  std::vector<graft_address> sums;
  for (size_t k = 0; k < kernels.size(); ++k) sums.push_back(zeros(session, stream, 100));
  for (int round = 0; round < 5; ++round) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      add(session, stream, kernels[k], sums[k], 100, 1);
      add(session, stream, find(session, programs[k]), sums[k], 100, 1);
    }
  }
  for (size_t k = 0; k < kernels.size(); ++k) {
    require_sum(session, stream, sums[k], 100, 10 * (static_cast<int>(k) + 1));
  }
}

DRIVER_CASE(unload_one, "kernel: unloading a program leaves the others",
            "program_compile program_load kernel_find kernel_launch program_unload", kOpen) {
  graft_stream stream = session.stream();
  const std::vector<graft_program> programs = load_all(session);
  std::vector<graft_kernel> kernels;
  for (graft_program program : programs) kernels.push_back(find(session, program));
  const graft_address x = zeros(session, stream, 100);
  add(session, stream, kernels[0], x, 100, 1);
  add(session, stream, kernels[2], x, 100, 1);
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.expect(session.table.program_unload(programs[0]), GRAFT_OK, "program_unload");
  session.expect(session.table.program_unload(programs[2]), GRAFT_OK, "program_unload");
  add(session, stream, kernels[1], x, 100, 1);
  add(session, stream, find(session, programs[1]), x, 100, 1);
  require_sum(session, stream, x, 100, 8);
}
