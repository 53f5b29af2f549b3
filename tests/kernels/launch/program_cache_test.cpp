// tests/kernels/launch/program_cache_test.cpp: kernels are found once, and one is compiled once.
#include "codegen/cache/program_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/ops/op_table.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
// labels of the file: threads no_compiler
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

// What get_kernel throws; OK when nothing.
graft_status refusal(const char* key, const std::function<ir::Kernel()>& make, std::string* text) {
  try {
    get_kernel(test::device(), key, make);
  } catch (const Error& error) {
    *text = error.what();
    EXPECT_TRUE(error.lacks_kernel());
    return error.status();
  }
  return GRAFT_OK;
}

TEST(ProgramCache, WhatTheCompilerRejectsIsRememberedWithTheLogsFirstLines) {
  int made = 0;
  const auto broken = [&made] { return ++made, one("x", 6); };
  std::string first, second;
  EXPECT_EQ(refusal("program cache test: no name in C", broken, &first), GRAFT_COMPILE_ERROR);
  EXPECT_EQ(refusal("program cache test: no name in C", broken, &second), GRAFT_COMPILE_ERROR);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(first, second);
  EXPECT_LE(std::count(first.begin(), first.end(), '\n'), 8) << first;
  EXPECT_LT(first.size(), 2000u);
}

TEST(ProgramCache, MoreLocalMemoryThanAGroupHasIsUnsupported) {
  const auto large = [] {
    ir::Builder b("large", ir::Family::kGpuLike);
    const ir::Address out = b.write(GRAFT_FLOAT32);
    b.append({ir::Opcode::kLocalMemory, ir::Type::kF32, 0, {}, uint64_t{1} << 30});
    out.store(b.item(), b.f32(1));
    return b.finish();
  };
  std::string text;
  EXPECT_EQ(refusal("program_cache_test_large", large, &text), GRAFT_UNSUPPORTED);
  EXPECT_NE(text.find("needs 4.00 GiB"), std::string::npos) << text;
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
