// tests/drivers/check/kernel_cases.cpp: compiling, loading and launching, for dialects known here.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check/cases.h"
#include "check/programs.h"
#include "graft/extensions.h"

using graft::check::add;
using graft::check::append;
using graft::check::compile;
using graft::check::Failure;
using graft::check::find;
using graft::check::kKernelSlots;
using graft::check::load;
using graft::check::require_sum;
using graft::check::Session;
using graft::check::source_of;
using graft::check::zeros;

namespace {

std::string add_source(Session& session) { return source_of(session, {}); }

graft_kernel build(Session& session) { return graft::check::build(session, {}); }

}  // namespace

DRIVER_CASE(every_item, "kernel: every work-item runs once", kKernelSlots, kOpen) {
  graft_stream stream = session.stream();
  graft_kernel kernel = build(session);
  for (uint64_t count : {1ull, 2ull, 3ull, 17ull, 1000ull, 100003ull}) {
    const graft_address x = zeros(session, stream, count);
    add(session, stream, kernel, x, count, 3);
    add(session, stream, kernel, x, count, 4);
    require_sum(session, stream, x, count, 7);
  }
}

DRIVER_CASE(copied_arguments, "kernel: arguments are taken at the call", kKernelSlots, kOpen) {
  graft_stream stream = session.stream();
  graft_kernel kernel = build(session);
  const graft_address x = zeros(session, stream, 100);
  session.delay(stream, 40);
  for (int i = 0; i < 30; ++i) add(session, stream, kernel, x, 100, 1);
  require_sum(session, stream, x, 100, 30);
}

DRIVER_CASE(shared_kernel, "kernel: one kernel from several threads", kKernelSlots, kOpen) {
  graft_kernel kernel = build(session);
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      try {
        graft_stream stream = session.stream();
        const graft_address x = zeros(session, stream, 5000);
        for (int i = 0; i < 50; ++i) add(session, stream, kernel, x, 5000, t);
        require_sum(session, stream, x, 5000, 50 * t);
      } catch (const Failure&) {
        wrong = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session.require(!wrong, "a kernel launched from four threads at once computed wrongly");
}

DRIVER_CASE(compile_error, "kernel: a wrong program gives COMPILE_ERROR and a log",
            "program_compile last_message", kOpen) {
  std::string blob;
  const std::string source = "this is no program in any language {";
  session.expect(session.table.program_compile(session.device, source.data(), source.size(), "",
                                               graft_sink{&blob, append}),
                 GRAFT_COMPILE_ERROR, "program_compile of nonsense");
  char text[2048] = "";
  session.expect(session.table.last_message(text, sizeof text), GRAFT_OK, "last_message");
  session.require(std::strlen(text) > 10, "last_message has no compiler log");
}

DRIVER_CASE(damaged_blob, "kernel: a damaged blob is refused", kKernelSlots, kOpen) {
  const std::string blob = compile(session, add_source(session));
  for (size_t size : {size_t{0}, size_t{1}, blob.size() / 2}) {
    graft_program program = nullptr;
    session.expect(session.table.program_load(session.device, blob.data(), size, &program),
                   GRAFT_INVALID_ARGUMENT, "program_load of " + std::to_string(size) + " bytes");
  }
  std::string flipped = blob;
  flipped[flipped.size() / 2] = static_cast<char>(~flipped[flipped.size() / 2]);
  graft_program program = nullptr;
  session.expect(
      session.table.program_load(session.device, flipped.data(), flipped.size(), &program),
      GRAFT_INVALID_ARGUMENT, "program_load of a blob with a flipped byte");
}

DRIVER_CASE(no_such_kernel, "kernel: an unknown name is NOT_FOUND", kKernelSlots, kOpen) {
  graft_program program = load(session, compile(session, add_source(session)));
  graft_kernel kernel = nullptr;
  session.expect(session.table.kernel_find(session.device, program, "no_such_kernel", &kernel),
                 GRAFT_NOT_FOUND, "kernel_find of an unknown name");
  session.expect(session.table.kernel_find(session.device, nullptr, "no_such_kernel", &kernel),
                 GRAFT_NOT_FOUND, "kernel_find of an unknown name in the pack");
  session.require(kernel == nullptr, "a failed kernel_find wrote its out_ parameter");
}

DRIVER_CASE(unload, "kernel: programs can be loaded and unloaded again",
            "program_compile program_load kernel_find kernel_launch program_unload", kOpen) {
  const std::string blob = compile(session, add_source(session));
  graft_stream stream = session.stream();
  for (int i = 0; i < 20; ++i) {
    graft_program program = load(session, blob);
    const graft_address x = zeros(session, stream, 64);
    add(session, stream, find(session, program), x, 64, i);
    require_sum(session, stream, x, 64, i);
    session.expect(session.table.program_unload(program), GRAFT_OK, "program_unload");
  }
}

DRIVER_CASE(fingerprint, "kernel: the toolchain's fingerprint is stable", "toolchain_fingerprint",
            kOpen) {
  auto read = [&] {
    std::string text;
    session.expect(session.table.toolchain_fingerprint(session.device, graft_sink{&text, append}),
                   GRAFT_OK, "toolchain_fingerprint");
    return text;
  };
  const std::string first = read();
  session.require(!first.empty() && first == read(),
                  "toolchain_fingerprint is empty or differs from one call to the next");
}

DRIVER_CASE(saved_program, "graft.programs: runs at once, is saved meanwhile and loaded again",
            "extension", kOpen) {
  const auto& programs = session.extension<graft_programs_table>();
  const std::string source = add_source(session);
  graft_program program = nullptr;
  session.expect(programs.program_build(session.device, source.data(), source.size(), "", &program),
                 GRAFT_OK, "program_build");
  std::string blob;
  graft_status saved = GRAFT_INTERNAL;
  std::thread saving([&] { saved = programs.program_save(program, {&blob, append}); });
  graft_stream stream = session.stream();
  const graft_address x = zeros(session, stream, 1000);
  for (int i = 0; i < 10; ++i) add(session, stream, find(session, program), x, 1000, 1);
  saving.join();
  require_sum(session, stream, x, 1000, 10);
  session.expect(saved, GRAFT_OK, "program_save beside launches");
  add(session, stream, find(session, load(session, blob)), x, 1000, 5);
  require_sum(session, stream, x, 1000, 15);
  const std::string wrong = "this is no program";
  session.expect(programs.program_build(session.device, wrong.data(), wrong.size(), "", &program),
                 GRAFT_COMPILE_ERROR, "program_build of a wrong program");
}

namespace {

// Zeroes count words at base 0, adds n to them, copies them to base 1 from the second word on.
graft_graph graph_of(Session& session, const graft_graphs_table& graphs, graft_kernel kernel,
                     uint64_t count, int n) {
  const graft_place from{0, 0, 0}, to{4, 1, 0}, copied[] = {to, from};
  uint32_t zero = 0;
  graft_argument arguments[2] = {};
  arguments[0] = {
      GRAFT_ARGUMENT_ADDRESS, 0, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE, 0, 0, count * 4};
  arguments[1] = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT32, 0, 0, static_cast<uint64_t>(n), 4};
  graft_launch one = {sizeof one, 0, {count, 1, 1}, {1, 1, 1}, 2, arguments};
  graft_command commands[3] = {};
  for (graft_command& command : commands) command.struct_size = sizeof command;
  commands[0].kind = GRAFT_COMMAND_FILL, commands[0].bytes = count * 4;
  commands[0].pattern = &zero, commands[0].pattern_bytes = 4;
  commands[0].places = &from, commands[0].place_count = 1;
  commands[1].kind = GRAFT_COMMAND_LAUNCH, commands[1].kernel = kernel;
  commands[1].launch = &one, commands[1].places = &from, commands[1].place_count = 1;
  commands[2].kind = GRAFT_COMMAND_COPY, commands[2].bytes = count * 4;
  commands[2].places = copied, commands[2].place_count = 2;
  graft_graph graph = nullptr;
  session.expect(graphs.graph_create(session.device, commands, 3, &graph), GRAFT_OK,
                 "graph_create");
  zero = 7;  // what it points to was read
  std::memset(arguments, 0, sizeof arguments);
  std::memset(commands, 0, sizeof commands);
  return graph;
}

}  // namespace

DRIVER_CASE(graph, "graft.graphs: commands run in order, at the addresses of each launch",
            "extension", kOpen) {
  const auto& graphs = session.extension<graft_graphs_table>();
  constexpr uint64_t kCount = 1000;
  graft_stream stream = session.stream();
  graft_graph graph = graph_of(session, graphs, build(session), kCount, 5);
  std::vector<graft_address> results;
  session.delay(stream, 40);
  for (int i = 0; i < 3; ++i) {
    const graft_address bases[] = {session.allocate(kCount * 4), session.allocate(kCount * 4 + 4)};
    session.expect(graphs.graph_launch(stream, graph, bases, 2), GRAFT_OK, "graph_launch");
    results.push_back(bases[1] + 4);
  }
  const graft_address one = results[0];
  session.expect(graphs.graph_launch(stream, graph, &one, 1), GRAFT_INVALID_ARGUMENT,
                 "graph_launch with fewer bases than its places name");
  session.expect(graphs.graph_destroy(graph), GRAFT_OK, "graph_destroy beside its launches");
  for (const graft_address result : results) require_sum(session, stream, result, kCount, 5);
}
