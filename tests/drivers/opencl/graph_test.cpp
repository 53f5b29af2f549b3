// tests/drivers/opencl/graph_test.cpp: graphs, which are one task of a stream's backlog.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "driver.h"
#include "graft/extensions.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

template <class Table>
const Table& extension(const char* name) {
  const void* table = nullptr;
  EXPECT_EQ(driver().extension(name, 1, &table), GRAFT_OK) << last_message();
  return *static_cast<const Table*>(table);
}

const graft_graphs_table& graphs() { return extension<graft_graphs_table>("graft.graphs"); }

// The memory that a graph's commands name: base 0 and base 1.
constexpr graft_place kX = {0, 0, 0};

// Commands, of which each has its place in the list for a tag, and what they point to.
class Commands {
 public:
  void fill(graft_place to, uint64_t bytes, std::vector<uint8_t> pattern) {
    graft_command& one = add(GRAFT_COMMAND_FILL, {to});
    patterns_.push_back(std::move(pattern));
    one.bytes = bytes;
    one.pattern = patterns_.back().data(), one.pattern_bytes = patterns_.back().size();
  }
  void copy(graft_place to, graft_place from, uint64_t bytes) {
    add(GRAFT_COMMAND_COPY, {to, from}).bytes = bytes;
  }
  void launch(graft_kernel kernel, graft_place x, uint64_t grid, std::vector<int> numbers) {
    graft_command& one = add(GRAFT_COMMAND_LAUNCH, {x});
    arguments_.push_back({address(0, grid * 4)});
    for (const int n : numbers) arguments_.back().push_back(scalar(n));
    const auto count = uint32_t(arguments_.back().size());
    launches_.push_back({sizeof(graft_launch), 0, {grid, 1, 1}, {1, 1, 1}, count, nullptr});
    launches_.back().arguments = arguments_.back().data();
    one.kernel = kernel, one.launch = &launches_.back();
  }
  void execute() {
    const graft_place none = {0, GRAFT_NO_BASE, 0};
    graft_command& one = add(GRAFT_COMMAND_EXECUTE, std::vector<graft_place>(8, none));
    one.plan = reinterpret_cast<graft_plan>(&one);
    one.execute = [](graft_stream, graft_plan, const graft_execution*) { return GRAFT_INTERNAL; };
  }
  // A plan of graft.ops, which this driver does not offer.
  void operate() {
    graft_command& one = add(GRAFT_COMMAND_OPERATE, {});
    one.plan = reinterpret_cast<graft_plan>(&one);
    one.launch = &launches_.emplace_back(graft_launch{});
  }
  graft_graph graph(Session& s, graft_status expected = GRAFT_OK) const {
    graft_graph made = nullptr;
    EXPECT_EQ(graphs().graph_create(s.device, commands_.data(), uint32_t(commands_.size()), &made),
              expected)
        << last_message();
    return made;
  }

 private:
  graft_command& add(uint32_t kind, std::vector<graft_place> places) {
    places_.push_back(std::move(places));
    graft_command one = {};
    one.struct_size = sizeof one, one.kind = kind, one.tag = uint32_t(commands_.size() + 1);
    one.places = places_.back().data(), one.place_count = uint32_t(places_.back().size());
    commands_.push_back(one);
    return commands_.back();
  }

  std::vector<graft_command> commands_;
  std::deque<std::vector<graft_place>> places_;
  std::deque<std::vector<uint8_t>> patterns_;
  std::deque<std::vector<graft_argument>> arguments_;
  std::deque<graft_launch> launches_;
};

graft_status launch(Session& s, graft_graph graph, std::vector<graft_address> bases) {
  return graphs().graph_launch(s.stream, graph, bases.data(), uint32_t(bases.size()));
}

void destroy(graft_graph graph) { EXPECT_EQ(graphs().graph_destroy(graph), GRAFT_OK); }

std::vector<std::string> every_way() {
  std::vector<std::string> ways = every_memory();
  ways.push_back("GRAFT_OPENCL_THREAD=0");
  return ways;
}

// Zeroes two words, adds 5 to the first by one kernel and n to both, copies both behind base 1.
Commands program(Session& s, int n) {
  Commands commands;
  graft_kernel add = s.kernel("add_n");
  commands.fill(kX, 8, {0});
  commands.launch(add, kX, 1, {5});
  commands.launch(add, kX, 2, {n});
  commands.copy({4, 1, 0}, kX, 8);
  return commands;
}

TEST(OpenclGraph, TakesTheAddressesOfEachLaunchBetweenOtherCommands) {
  if (reran(every_way())) return;
  Session s;
  graft_graph graph = program(s, 7).graph(s);
  graft_kernel add = s.kernel("add_n"), spin = s.kernel("spin");
  const graft_address slow = s.put({0});
  EXPECT_EQ(s.launch(spin, 1, {address(slow, 4), scalar(5'000'000)}), GRAFT_OK);
  std::vector<graft_address> results;
  for (int i = 0; i < 20; ++i) {
    const graft_address x = s.put({1, 1}), y = s.put({2, 2, 2});
    EXPECT_EQ(launch(s, graph, {x, y}), GRAFT_OK) << last_message();
    EXPECT_EQ(s.launch(add, 2, {address(y, 8), scalar(i)}), GRAFT_OK);
    results.push_back(y);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(s.get(results[size_t(i)], 3), (std::vector<int>{2 + i, 12 + i, 7}));
  }
  destroy(graph);
}

// Of any alignment, as the slot's.
TEST(OpenclGraph, FillsFromAnyByteOn) {
  if (reran(every_way())) return;
  Session s;
  Commands commands;
  commands.fill({1, 0, 0}, 13, {1, 2, 3, 4});
  graft_graph graph = commands.graph(s);
  const graft_address x = s.put({0, 0, 0, 0});
  EXPECT_EQ(launch(s, graph, {x}), GRAFT_OK) << last_message();
  uint8_t seen[16] = {};
  EXPECT_EQ(s.download(seen, x, 16), GRAFT_OK);
  const uint8_t wanted[16] = {0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 0, 0};
  EXPECT_EQ(std::memcmp(seen, wanted, 16), 0);
  destroy(graph);
}

// The graph goes before the thread gave its commands to OpenCL.
TEST(OpenclGraph, LaunchesOutliveIt) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  graft_kernel spin = s.kernel("spin");
  const graft_address x = s.put({0, 0}), y = s.put({0, 0, 0}), slow = s.put({0});
  for (int i = 0; i < 50; ++i) {
    graft_graph graph = program(s, i).graph(s);
    EXPECT_EQ(s.launch(spin, 1, {address(slow, 4), scalar(100'000)}), GRAFT_OK);
    EXPECT_EQ(launch(s, graph, {x, y}), GRAFT_OK);
    destroy(graph);
  }
  EXPECT_EQ(s.get(y, 3), (std::vector<int>{0, 54, 49}));
}

TEST(OpenclGraph, CommandsBeforeARefusedOneRun) {
  if (reran(every_way())) return;
  Session s;
  graft_graph graph = program(s, 1).graph(s);
  const graft_address x = s.put({3, 3}), outside = 64;
  EXPECT_EQ(launch(s, graph, {x, outside}), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("8 bytes from 68 on"), std::string::npos) << last_message();
  EXPECT_EQ(s.get(x, 2), (std::vector<int>{6, 1}));
  EXPECT_EQ(launch(s, graph, {x}), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("the graph names 2"), std::string::npos) << last_message();
  destroy(graph);
}

TEST(OpenclGraph, RefusesWhatItCannotRun) {
  Session s;
  Commands plan, operation, more, pattern;
  plan.execute();
  EXPECT_EQ(plan.graph(s, GRAFT_UNSUPPORTED), nullptr);
  operation.operate();
  EXPECT_EQ(operation.graph(s, GRAFT_UNSUPPORTED), nullptr);
  more.launch(s.kernel("add_n"), kX, 1, {1, 2});
  EXPECT_EQ(more.graph(s, GRAFT_INVALID_ARGUMENT), nullptr);
  pattern.fill(kX, 6, {1, 2, 3});
  EXPECT_EQ(pattern.graph(s, GRAFT_INVALID_ARGUMENT), nullptr);
}

uint32_t late_tag(Session& s, graft_status expected) {
  EXPECT_EQ(driver().stream_synchronize(s.stream), expected) << last_message();
  uint32_t tag = 0;
  EXPECT_EQ(driver().stream_error(s.stream, &tag, nullptr, 0), GRAFT_OK);
  return tag;
}

TEST(OpenclGraph, ALateErrorNamesItsCommand) {
  if (reran({fake("late:clEnqueueNDRangeKernel:2:-5"),
             fake("no_svm,late:clEnqueueNDRangeKernel:2:-5"),
             fake("late:clEnqueueNDRangeKernel:2:-5") + " GRAFT_OPENCL_THREAD=0"})) {
    return;
  }
  Session s;
  graft_graph graph = program(s, 1).graph(s);
  EXPECT_EQ(launch(s, graph, {s.put({3, 3}), s.put({0, 0, 0})}), GRAFT_OK) << last_message();
  EXPECT_EQ(late_tag(s, GRAFT_LAUNCH_FAILED), 3u);
  destroy(graph);
}

// Refused by OpenCL when the thread gives it, after the caller was told that it is taken.
TEST(OpenclGraph, ACommandThatOpenclRefusesNamesItself) {
  if (reran({fake("fail:clEnqueueNDRangeKernel:3:-5")})) return;
  Session s;
  graft_graph graph = program(s, 1).graph(s);
  const graft_address slow = s.put({0}), x = s.put({3, 3}), y = s.put({0, 0, 0});
  EXPECT_EQ(s.launch(s.kernel("spin"), 1, {address(slow, 4), scalar(50'000'000)}), GRAFT_OK);
  EXPECT_EQ(launch(s, graph, {x, y}), GRAFT_OK) << last_message();
  destroy(graph);
  EXPECT_EQ(late_tag(s, GRAFT_LAUNCH_FAILED), 3u);
  EXPECT_EQ(s.get(x, 2), (std::vector<int>{5, 0}));
  EXPECT_EQ(s.get(y, 3), (std::vector<int>{0, 0, 0}));
}

TEST(OpenclGraph, TracesShowEachCommand) {
  if (reran(every_way())) return;
  Session s;
  graft_graph graph = program(s, 1).graph(s);
  struct Seen {
    std::mutex mutex;
    std::map<uint32_t, int> tags;
  } seen;
  const auto& profiler = extension<graft_profiler_table>("graft.profiler");
  const graft_emit_trace emit = [](void* context, const graft_trace_event* events, uint64_t count) {
    auto& into = *static_cast<Seen*>(context);
    std::lock_guard lock(into.mutex);
    for (uint64_t i = 0; i < count; ++i) ++into.tags[events[i].tag];
  };
  const graft_address x = s.put({0, 0}), y = s.put({0, 0, 0});
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  EXPECT_EQ(profiler.trace_start(s.device, emit, &seen), GRAFT_OK) << last_message();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(launch(s, graph, {x, y}), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  EXPECT_EQ(profiler.trace_stop(s.device), GRAFT_OK);
  EXPECT_EQ(seen.tags, (std::map<uint32_t, int>{{1, 3}, {2, 3}, {3, 3}, {4, 3}}));
  destroy(graph);
}

TEST(OpenclGraph, LeavesNothingBehindOnALostDevice) {
  if (reran({fake("lost_after:12"), fake("lost_after:12,no_svm")})) return;
  Session s;
  graft_graph graph = program(s, 1).graph(s);
  const graft_address x = s.put({3, 3}), y = s.put({0, 0, 0});
  graft_status status = GRAFT_OK;
  for (int i = 0; i < 100 && status == GRAFT_OK; ++i) status = launch(s, graph, {x, y});
  if (status == GRAFT_OK) status = driver().stream_synchronize(s.stream);
  EXPECT_EQ(status, GRAFT_DEVICE_LOST) << last_message();
  destroy(graph);
}

}  // namespace
}  // namespace graft::opencl_test
