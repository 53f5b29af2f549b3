// tests/runtime/stream/stream_test.cpp: order, late errors and the defaults of missing slots.
#include "runtime/stream/stream.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/driver/bounded_wait.h"
#include "runtime/stream/event.h"
#include "runtime/stream/host_callback.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class StreamTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(StreamTest, CopiesAndFillsInOrder) {
  Stream& stream = fake_.open().default_stream();
  controls().hold = true;
  std::vector<uint16_t> host(4, 0);
  Block* block = stream.allocator().allocate(8, stream);
  const uint16_t pattern = 0x1234;
  stream.fill(block->address, 8, &pattern, sizeof(pattern));
  stream.copy(reinterpret_cast<uintptr_t>(host.data()), block->address, 8, GRAFT_DEVICE_TO_HOST);
  EXPECT_FALSE(stream.query());
  EXPECT_EQ(host[0], 0);
  stream.synchronize();
  EXPECT_TRUE(stream.query());
  EXPECT_EQ(host, std::vector<uint16_t>(4, 0x1234));
  EXPECT_EQ(stream.counts().copied_bytes, 8u);
  EXPECT_EQ(stream.counts().filled_bytes, 8u);
  stream.allocator().free(block);
}

TEST_F(StreamTest, RefusedCommandThrowsWithEveryName) {
  Stream& stream = fake_.open().default_stream();
  controls().message = "the bus is on fire";
  controls().fail_now = GRAFT_IO;
  const OpScope scope("aten::add");
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { stream.fill(8, 4, "abcd", 4); }, &status);
  EXPECT_EQ(status, GRAFT_IO);
  EXPECT_EQ(text, "aten::add failed on graft:0 (driver 'fake'): fill: IO: the bus is on fire");
  stream.synchronize();
}

TEST_F(StreamTest, LateErrorIsThrownOnceWithItsOp) {
  Stream& stream = fake_.open().default_stream();
  controls().hold = true;
  controls().message = "kernel trapped";
  {
    const OpScope scope("aten::mul");
    controls().fail_late = GRAFT_LAUNCH_FAILED;
    stream.launch(nullptr, 1, {});
  }
  const OpScope scope("aten::item");
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { stream.synchronize(); }, &status);
  EXPECT_EQ(status, GRAFT_LAUNCH_FAILED);
  EXPECT_TRUE(has(text, "aten::mul failed on graft:0 (driver 'fake'): LAUNCH_FAILED: kernel"));
  EXPECT_FALSE(has(text, "aten::item"));
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_TRUE(stream.query());
  EXPECT_FALSE(stream.device().lost());
}

TEST_F(StreamTest, SettledErrorWaitsForTheNextQuestion) {
  Stream& stream = fake_.open().default_stream();
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  stream.launch(nullptr, 1, {});
  stream.settle();
  char host = 0;
  Block* block = stream.allocator().allocate(1, stream);
  const auto to_host = [&] {
    stream.copy(reinterpret_cast<uintptr_t>(&host), block->address, 1, GRAFT_DEVICE_TO_HOST);
  };
  EXPECT_TRUE(has(error_of(to_host), "LAUNCH_FAILED"));
  EXPECT_EQ(error_of(to_host), "");
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
  stream.allocator().free(block);
}

TEST_F(StreamTest, OfSeveralErrorsTheFirstIsThrownAndTheOthersAreCounted) {
  Stream& stream = fake_.open().default_stream();
  for (const graft_status status : {GRAFT_LAUNCH_FAILED, GRAFT_TIMEOUT, GRAFT_IO}) {
    controls().fail_late = status;
    stream.launch(nullptr, 1, {});
    if (status != GRAFT_IO) stream.settle();
  }
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { stream.synchronize(); }, &status);
  EXPECT_EQ(status, GRAFT_LAUNCH_FAILED);
  EXPECT_TRUE(has(text, "After it 2 more failed on this stream"));
  stream.synchronize();
  EXPECT_TRUE(stream.query());
}

TEST_F(StreamTest, ReadCopiesAndWaits) {
  Stream& stream = fake_.open().default_stream();
  controls().hold = true;
  Block* block = stream.allocator().allocate(8, stream);
  const uint16_t pattern = 0x1234;
  stream.fill(block->address, 8, &pattern, sizeof(pattern));
  std::vector<uint16_t> host(4, 0);
  stream.read(host.data(), block->address, 8);
  EXPECT_EQ(host, std::vector<uint16_t>(4, 0x1234));
  controls().fail_late = GRAFT_TIMEOUT;
  stream.launch(nullptr, 1, {});
  EXPECT_THROW(stream.read(host.data(), block->address, 8), Error);
  stream.read(host.data(), block->address, 8);
  stream.allocator().free(block);
}

TEST_F(StreamTest, LostDeviceStaysLostWithOneText) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  controls().message = "fell off the bus";
  controls().fail_late = GRAFT_DEVICE_LOST;
  {
    const OpScope scope("aten::conv");
    stream.launch(nullptr, 1, {});
  }
  graft_status status = GRAFT_OK;
  const std::string first = error_of([&] { stream.synchronize(); }, &status);
  EXPECT_EQ(status, GRAFT_DEVICE_LOST);
  EXPECT_TRUE(has(first, "graft:0 (driver 'fake') is lost (during aten::conv): fell off the"));
  EXPECT_TRUE(device.lost());
  EXPECT_EQ(error_of([&] { stream.launch(nullptr, 1, {}); }), first);
  EXPECT_EQ(error_of([&] { device.allocator().allocate(1, stream); }), first);
  EXPECT_EQ(error_of([&] { device.stream_from_pool(0); }), first);
}

TEST_F(StreamTest, ExceptionOutOfASlotBecomesAnError) {
  fake::table().kernel_launch = [](graft_stream, graft_kernel,
                                   const graft_launch*) -> graft_status {
    throw std::runtime_error("ouch");
  };
  Stream& stream = fake_.open().default_stream();
  graft_status status = GRAFT_OK;
  EXPECT_TRUE(has(error_of([&] { stream.launch(nullptr, 1, {}); }, &status),
                  "threw a C++ exception: ouch"));
  EXPECT_EQ(status, GRAFT_INTERNAL);
}

TEST_F(StreamTest, UnknownStatusIsAnInternalError) {
  Stream& stream = fake_.open().default_stream();
  controls().fail_now = 15;
  graft_status status = GRAFT_OK;
  EXPECT_TRUE(
      has(error_of([&] { stream.launch(nullptr, 1, {}); }, &status), "returned the status 15"));
  EXPECT_EQ(status, GRAFT_INTERNAL);
}

TEST_F(StreamTest, WithoutKernelsLaunchIsUnsupported) {
  fake::table().kernel_find = nullptr;
  fake::table().kernel_launch = nullptr;
  graft_status status = GRAFT_OK;
  error_of([&] { fake_.open().default_stream().launch(nullptr, 1, {}); }, &status);
  EXPECT_EQ(status, GRAFT_UNSUPPORTED);
}

TEST_F(StreamTest, QueryWithoutTheSlotStillFindsLateErrors) {
  Stream& stream = fake_.open().default_stream();
  ASSERT_EQ(fake_.driver().table().stream_query, nullptr);
  controls().hold = true;
  controls().fail_late = GRAFT_TIMEOUT;
  stream.launch(nullptr, 1, {});
  EXPECT_FALSE(stream.query());
  fake::release(stream);
  EXPECT_TRUE(has(error_of([&] { stream.query(); }), "TIMEOUT"));
  EXPECT_TRUE(stream.query());
}

TEST_F(StreamTest, CallbackRunsAfterTheCommandsWithoutTheSlot) {
  Stream& stream = fake_.open().default_stream();
  controls().hold = true;
  char host = 0;
  stream.copy(reinterpret_cast<uintptr_t>(&host), reinterpret_cast<uintptr_t>("x"), 1,
              GRAFT_DEVICE_TO_HOST);
  char seen = 0;
  host_callback(stream, [&] { seen = host; });
  EXPECT_EQ(seen, 'x');
  EXPECT_NO_THROW(host_callback(stream, [] { throw 1; }));
}

TEST_F(StreamTest, WaitWithoutTheSlotWaitsOnTheHost) {
  Device& device = fake_.open();
  Stream& first = device.default_stream();
  Stream& second = device.stream_from_pool(0);
  controls().hold = true;
  char host = 0;
  first.copy(reinterpret_cast<uintptr_t>(&host), reinterpret_cast<uintptr_t>("y"), 1,
             GRAFT_DEVICE_TO_HOST);
  Event event(device, false);
  event.record(first);
  second.wait(event);
  EXPECT_EQ(host, 'y');
}

TEST_F(StreamTest, ArmedCheckRunsOnceAndMayThrow) {
  Stream& stream = fake_.open().default_stream();
  int calls = 0;
  const auto check = [](Stream& checked, void* context) {
    ++*static_cast<int*>(context);
    checked.synchronize();  // the lock is free
    throw Error(GRAFT_INVALID_ARGUMENT, "index 7 is out of range");
  };
  stream.arm({check, &calls});
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "index 7 is out of range");
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
  EXPECT_EQ(calls, 1);
}

TEST_F(StreamTest, ShutDownDrainsAndRefusesMore) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  controls().hold = true;
  Block* block = device.allocator().allocate(1, stream);
  stream.launch(nullptr, 1, {});
  Patience patience;
  EXPECT_TRUE(device.shut_down(patience));
  EXPECT_EQ(stream.handle()->done, 1u);
  EXPECT_TRUE(has(error_of([&] { stream.launch(nullptr, 1, {}); }), "shut down"));
  device.allocator().free(block);
}

}  // namespace
}  // namespace graft
