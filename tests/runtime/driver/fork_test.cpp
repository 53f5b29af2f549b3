// tests/runtime/driver/fork_test.cpp: a forked child touches no driver and says why it cannot.
#include "runtime/driver/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/driver/bounded_wait.h"
#include "runtime/stream/event.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

std::atomic<int> slot_calls{0};

// Runs body in a forked child; true when it returned true there.
template <class Body>
bool in_child(Body&& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int state = 0;
  ::waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

TEST(ForkTest, ChildDoesNothingToTheDriver) {
  fake::Fake fake;
  fake::table().memory_free = [](graft_device device, graft_address address) {
    ++slot_calls;
    return fake::memory_free(device, address);
  };
  fake::table().event_destroy = [](graft_event event) {
    ++slot_calls;
    return delete event, GRAFT_OK;
  };
  fake::table().device_close = [](graft_device device) {
    ++slot_calls;
    return delete device, GRAFT_OK;
  };
  fake::table().extension = [](const char*, uint32_t, const void**) {
    ++slot_calls;
    return GRAFT_NOT_FOUND;
  };
  Device& device = fake.open();
  Stream& stream = device.default_stream();
  Stream& recording = device.stream_from_pool(0);
  recording.begin_recording(device.make_recording(1));
  Block* block = device.allocator().allocate(100, stream);
  PinnedBlock* pinned = device.pinned_allocator().allocate(100);
  auto event = std::make_unique<Event>(device, false);
  EXPECT_FALSE(forked_child());
  slot_calls = 0;
  EXPECT_TRUE(in_child([&] {
    const std::string text = fake::error_of([&] { device.allocator().allocate(1, stream); });
    bool right = forked_child() && fake::has(text, "Cannot re-initialize Graft in forked");
    right &= fake::error_of([&] { stream.launch(nullptr, 1, {}); }) == text;
    right &= fake::error_of([&] { device.synchronize(); }) == text;
    recording.end_recording();
    event.reset();
    device.allocator().free(block);
    device.pinned_allocator().free(pinned);
    device.allocator().empty_cache();
    Patience patience;
    device.shut_down(patience);
    fake.close();
    return right && slot_calls == 0;
  }));
  EXPECT_FALSE(forked_child());
  recording.end_recording();
  device.allocator().free(block);
  device.pinned_allocator().free(pinned);
}

TEST(ForkTest, ChildDoesNotWaitForAThreadOfTheParent) {
  fake::Fake fake;
  Device& device = fake.open();
  Stream& stream = device.default_stream();
  Block* block = device.allocator().allocate(100, stream);
  bool right = false;
  stream.command("hold the lock of the stream", [&](uint32_t) {
    right = in_child([&] {
      device.allocator().free(block);
      return !fake::error_of([&] { device.refuse_unusable(); }).empty();
    });
    return GRAFT_OK;
  });
  EXPECT_TRUE(right);
  device.allocator().free(block);
}

}  // namespace
}  // namespace graft
