// tests/deploy/late_failure_test.cpp: queued calls that fail, at once or later.
#include <thread>

#include "tests/deploy/queue_fixture.h"

namespace graft::deploy::test {
namespace {

using LateFailureTest = QueueTest;

TEST_F(LateFailureTest, ALateFailureIsToldOnceByTheQueueWithTheModelsName) {
  const auto model = rows_by_number();
  const auto other = small();
  Queue queue(device()), apart(device());
  const std::vector<int64_t> wrong = {0, 7}, right = {1, 0};
  const Floats x = counted(2, 1);
  const auto failed = model->enqueue(queue, Inputs{{two_numbers(wrong)}});
  const auto elsewhere = other->enqueue(apart, Inputs{{table(x)}});
  const std::string text = refusal([&] { queue.synchronize(); });
  EXPECT_NE(text.find("deployed model.graft"), std::string::npos) << text;
  EXPECT_NE(text.find("index 7 is out of range"), std::string::npos) << text;
  EXPECT_NO_THROW(queue.synchronize());
  EXPECT_NO_THROW(apart.synchronize());
  EXPECT_EQ(values_of(elsewhere->on_host(0)), expected(x));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(refusal([&] { failed->on_host(0); }), text);
  const auto again = model->enqueue(queue, Inputs{{two_numbers(right)}});
  EXPECT_EQ(values_of(again->on_host(0)), (Floats{-4, 5, 6, 1, -2, 3}));
  EXPECT_NO_THROW(queue.synchronize());
}

TEST_F(LateFailureTest, AWaitingCallIsNotBlamedForAQueuedOne) {
  const auto model = rows_by_number();
  Queue queue(device());
  const std::vector<int64_t> wrong = {9, 1}, right = {1, 1};
  const auto failed = model->enqueue(queue, Inputs{{two_numbers(wrong)}});
  const auto results = model->run(std::vector{two_numbers(right)});
  EXPECT_EQ(values_of(results[0]), (Floats{-4, 5, 6, -4, 5, 6}));
  EXPECT_NE(refusal([&] {
              while (!queue.query()) std::this_thread::yield();
            }).find("index 9"),
            std::string::npos);
  EXPECT_TRUE(queue.query());
}

TEST_F(LateFailureTest, AClosedModelsFailureIsStillTold) {
  Queue queue(device());
  const std::vector<int64_t> wrong = {0, 5};
  rows_by_number()->enqueue(queue, Inputs{{two_numbers(wrong)}});
  EXPECT_NE(refusal([&] { queue.synchronize(); }).find("deployed model.graft"), std::string::npos);
}

TEST_F(LateFailureTest, WrongInputsAreNamedAndNothingIsQueued) {
  const auto model = small();
  Queue queue(device());
  const Floats x = counted(2, 1);
  const auto good = model->enqueue(queue, Inputs{{table(x)}});
  const DeviceArray flat = queue.allocate(shaped(GRAFT_FLOAT32, nullptr, {6}));
  EXPECT_NE(refusal([&] {
              model->enqueue(queue, Inputs{{{}, &flat}});
            }).find("\"x\") is float32[6], the model takes float32[?, 3]"),
            std::string::npos);
  const Floats many(65 * 3);
  EXPECT_NE(refusal([&] { model->enqueue(queue, Inputs{{table(many)}}); }).find("s0"),
            std::string::npos);
  EXPECT_NE(refusal([&] { model->enqueue(queue, {}); }).find("takes 1 inputs, got 0"),
            std::string::npos);
  EXPECT_NO_THROW(queue.synchronize());
  EXPECT_EQ(values_of(good->on_host(0)), expected(x));
}

}  // namespace
}  // namespace graft::deploy::test
