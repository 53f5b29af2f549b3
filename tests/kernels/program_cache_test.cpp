// tests/kernels/program_cache_test.cpp: kernels are found once, and one is compiled once.
#include "codegen/program_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "codegen/builder.h"
#include "codegen/op_table.h"
#include "runtime/error.h"
#include "tests/kernels/device_tensor.h"

namespace graft {
namespace {

ir::Kernel one(const char* name, double value) {
  ir::Builder b(name);
  const ir::Address out = b.write(GRAFT_FLOAT32);
  out.store(b.item(), b.f32(value));
  return b.finish();
}

TEST(ProgramCache, AsksForAKernelOnce) {
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  std::vector<graft_kernel> found(4);
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&found, &made, i] {
      found[i] = get_kernel(test::device(), "program_cache_test_one", [&made] {
        ++made;
        return one("x", 3);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  for (graft_kernel kernel : found) EXPECT_EQ(kernel, found[0]);
}

TEST(ProgramCache, NamesFollowTheSource) {
  const ir::Dialect& c = *ir::find_dialect("c");
  const Program three = make_program("key", one("x", 3), c),
                again = make_program("key", one("y", 3), c);
  EXPECT_EQ(three.name, again.name);
  EXPECT_NE(three.name, make_program("key", one("x", 4), c).name);
  EXPECT_NE(three.source.find(three.name), std::string::npos);
}

TEST(ProgramCache, FailuresPassThroughAndAreTriedAgain) {
  const auto fail = []() -> ir::Kernel { throw Error(GRAFT_OUT_OF_MEMORY, "no room"); };
  EXPECT_THROW(get_kernel(test::device(), "program_cache_test_failing", fail), Error);
  EXPECT_NE(get_kernel(test::device(), "program_cache_test_failing", [] { return one("x", 5); }),
            nullptr);
}

TEST(ProgramCache, PackEntriesAreLegalAndUnique) {
  std::set<std::string> sources;
  size_t count = 0;
  for (const auto& enumerate : PackEntry::all()) {
    enumerate([&](const std::string& key, const std::function<ir::Kernel()>& make) {
      sources.insert(make_program(key, make(), *ir::find_dialect("c")).name);
      ++count;
    });
  }
  EXPECT_GT(count, 300u);
  EXPECT_LE(sources.size(), count);
}

}  // namespace
}  // namespace graft
