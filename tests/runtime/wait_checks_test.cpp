// tests/runtime/wait_checks_test.cpp: what streams ask after a wait.
#include <gtest/gtest.h>

#include "runtime/stream/event.h"
#include "runtime/wait/checks.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class ConcernsTest : public testing::Test {
 protected:
  // A question that is asked again while more is set.
  WaitChecks::Question counting() {
    return [this] {
      ++asked_;
      return more_;
    };
  }

  fake::Fake fake_;
  int asked_ = 0;
  bool more_ = true;
};

TEST_F(ConcernsTest, AreAskedAfterEveryKindOfWaitUntilTheySayNo) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  Event event(device, false);
  event.record(stream);
  stream.concerns().add(this, counting());
  stream.synchronize();
  EXPECT_EQ(asked_, 1);
  EXPECT_TRUE(stream.query());
  EXPECT_EQ(asked_, 2);
  event.synchronize();
  EXPECT_EQ(asked_, 3);
  device.synchronize();
  EXPECT_EQ(asked_, 4);
  stream.settle();
  more_ = false;
  stream.synchronize();
  stream.synchronize();
  EXPECT_EQ(asked_, 5);
}

TEST_F(ConcernsTest, FollowTheMarksThatStreamsWaitFor) {
  fake::table().stream_wait_event = [](graft_stream, graft_event) { return GRAFT_OK; };
  Device& device = fake_.open();
  Stream& first = device.stream_from_pool(0);
  Stream& second = device.stream_from_pool(0);
  Event event(device, false), later(device, false);
  first.concerns().add(this, counting());
  event.record(first);
  second.wait(event);
  second.synchronize();
  EXPECT_EQ(asked_, 1);
  later.record(second);
  device.default_stream().wait(later);
  device.default_stream().synchronize();
  EXPECT_EQ(asked_, 2);
}

TEST_F(ConcernsTest, AreAskedByTheWaitItselfWhereStreamsCannotWait) {
  Device& device = fake_.open();
  Stream& first = device.stream_from_pool(0);
  Event event(device, false);
  first.concerns().add(this, counting());
  event.record(first);
  device.default_stream().wait(event);
  EXPECT_EQ(asked_, 1);
}

TEST_F(ConcernsTest, OfOneOwnerCountOnce) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  for (int i = 0; i < 3; ++i) stream.concerns().add(this, counting());
  stream.synchronize();
  EXPECT_EQ(asked_, 1);
}

TEST_F(ConcernsTest, FailTheWaitThatAsks) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  const int other = 0;
  stream.concerns().add(this, []() -> bool { throw Error(GRAFT_TIMEOUT, "rank 1 is gone"); });
  stream.concerns().add(&other, counting());
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "rank 1 is gone");
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
  EXPECT_EQ(asked_, 2);
}

TEST_F(ConcernsTest, AreAskedBeforeALateErrorIsTold) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  stream.launch(nullptr, 1, {});
  stream.concerns().add(this, []() -> bool { throw Error(GRAFT_TIMEOUT, "rank 1 is gone"); });
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "rank 1 is gone");
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
}

TEST_F(ConcernsTest, LateErrorsAreTakenWithoutAWait) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  EXPECT_FALSE(stream.take_late().has_value());
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  stream.launch(nullptr, 1, {});
  stream.settle();
  const std::optional<Error> error = stream.take_late();
  ASSERT_TRUE(error.has_value());
  EXPECT_TRUE(has(error->what(), "LAUNCH_FAILED"));
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
}

}  // namespace
}  // namespace graft
