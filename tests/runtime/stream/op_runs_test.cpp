// tests/runtime/stream/op_runs_test.cpp: what is counted of each op's commands.
#include "runtime/stream/op_runs.h"

#include <gtest/gtest.h>

#include <span>
#include <utility>

#include "runtime/driver/op_tag.h"
#include "runtime/platform/device.h"
#include "runtime/stream/recording.h"
#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/fake_graphs.h"

namespace graft {
namespace {

graft_status run_operation(graft_stream stream, graft_plan, const graft_launch* launch) {
  return fake::table().kernel_launch(stream, nullptr, launch);
}
graft_status run_library(graft_stream, graft_plan, const graft_execution*) { return GRAFT_OK; }

class OpRunsTest : public testing::Test {
 protected:
  ~OpRunsTest() override { count_runs(false); }

  // A command of each kind that may compute, and one that does not.
  void run() {
    const uint32_t zero = 0;
    const graft_argument argument = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, 1, 8};
    const auto operate = [&] {
      stream_.execute(
          OperationCommand(&run_operation, nullptr, "softmax", {std::span(&argument, 1)}, nullptr));
    };
    {
      const OpScope scope("aten::softmax");
      operate();
      stream_.launch(nullptr, 1, {std::span(&argument, 1)});
      stream_.fill(block_->address, 4, &zero, 4);
      operate();
    }
    const OpScope scope("aten::mm");
    for (int i = 0; i < 2; ++i) {
      LibraryCommand multiply;
      multiply.run = &run_library;
      stream_.execute(std::move(multiply));
    }
  }

  fake::Fake fake_;
  Stream& stream_ = fake_.open().default_stream();
  Block* block_ = fake_.device().allocator().allocate(4, stream_);
};

constexpr char kOnce[] = R"({"aten::mm": [0, 2, 0], "aten::softmax": [2, 0, 1]})";

TEST_F(OpRunsTest, EachCommandCountsForItsOp) {
  run();  // before it begins
  count_runs(true);
  run();
  EXPECT_EQ(runs_json(), kOnce);
  count_runs(false);
  run();
  EXPECT_EQ(runs_json(), kOnce);
  count_runs(true);
  EXPECT_EQ(runs_json(), "{}");
}

TEST_F(OpRunsTest, AReplayCountsEachOfItsCommands) {
  count_runs(true);
  const auto recording = fake_.device().make_recording(1);
  stream_.begin_recording(recording);
  run();
  stream_.end_recording();
  EXPECT_EQ(runs_json(), "{}");
  recording->replay(stream_);
  EXPECT_EQ(runs_json(), kOnce);
  recording->replay(stream_);
  EXPECT_EQ(runs_json(), R"({"aten::mm": [0, 4, 0], "aten::softmax": [4, 0, 2]})");
}

}  // namespace
}  // namespace graft
