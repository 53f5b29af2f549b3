// tests/runtime/driver/op_trace_test.cpp: a late error says where its op was called from.
#include "runtime/driver/op_trace.h"

#include <gtest/gtest.h>

#include "runtime/driver/op_tag.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

std::string here = "line 7";

struct OpTraceTest : testing::Test {
  OpTraceTest() {
    trace_ops([] { return here; });
  }
  ~OpTraceTest() override { trace_ops(nullptr); }
};

uint32_t tag_in_scope(const char* name) {
  const OpScope scope(name);
  return current_tag();
}

TEST_F(OpTraceTest, EveryScopeHasATagOfItsOwnAndTheNameStays) {
  here = "line 7";
  const uint32_t first = tag_in_scope("aten::add");
  here = "line 8";
  const uint32_t second = tag_in_scope("aten::add");
  EXPECT_NE(first, second);
  EXPECT_EQ(op_name(first), "aten::add");
  EXPECT_EQ(op_name(second), "aten::add");
  EXPECT_EQ(op_trace(first), "line 7");
  EXPECT_EQ(op_trace(second), "line 8");
}

TEST_F(OpTraceTest, OldTracesGoAndTheNameStays) {
  const uint32_t old = tag_in_scope("aten::mul");
  for (int i = 0; i < 5000; ++i) tag_in_scope("aten::sub");
  EXPECT_EQ(op_trace(old), "");
  EXPECT_EQ(op_trace_note(old), "");
  EXPECT_EQ(op_name(old), "aten::mul");
}

TEST_F(OpTraceTest, LateErrorsBringTheTrace) {
  fake::Fake fake;
  Stream& stream = fake.open().default_stream();
  here = "model.py:12 in forward";
  {
    const OpScope scope("aten::exp");
    fake::controls().fail_late = GRAFT_LAUNCH_FAILED;
    stream.launch(nullptr, 1, {});
  }
  const std::string text = fake::error_of([&] { stream.synchronize(); });
  EXPECT_TRUE(fake::has(text, "aten::exp failed on"));
  EXPECT_TRUE(fake::has(text, "GRAFT_TRACE=1):\nmodel.py:12 in forward"));
}

TEST(OpTrace, IsOffByDefault) {
  const uint32_t tag = tag_in_scope("aten::add");
  EXPECT_EQ(tag, op_tag("aten::add"));
  EXPECT_EQ(op_trace(tag), "");
}

}  // namespace
}  // namespace graft
