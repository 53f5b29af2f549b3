// tests/runtime/memory/caching_threads_test.cpp: many threads on few streams; meant for the thread
// sanitizer.
#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "runtime/memory/caching_allocator.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 400;

// Writes its own mark over a block by its stream, reads it back, and frees it, shared or not.
void work(Device& device, int number) {
  std::mt19937_64 random(static_cast<uint64_t>(number));
  const auto mark = static_cast<char>('a' + number);
  for (int round = 0; round < kRounds; ++round) {
    Stream& stream = round % 8 == 0 ? device.stream_from_pool(0) : device.default_stream();
    const uint64_t bytes = 1 + random() % 4000;
    Block* block = device.allocator().allocate(bytes, stream);
    stream.fill(block->address, bytes, &mark, 1);
    std::string seen(bytes, ' ');
    PinnedBlock* pinned = device.pinned_allocator().allocate(bytes);
    stream.copy(reinterpret_cast<uintptr_t>(seen.data()), block->address, bytes,
                GRAFT_DEVICE_TO_HOST);
    if (round % 3 == 0) {
      Stream& side = device.stream_from_pool(0);
      Event event(device, false);
      event.record(stream);
      side.wait(event);
      device.allocator().record_stream(block, side);
      device.pinned_allocator().record_stream(pinned, side);
    }
    stream.synchronize();
    EXPECT_EQ(seen, std::string(bytes, mark));
    device.allocator().free(block);
    device.pinned_allocator().free(pinned);
    if (round % 100 == 0) device.allocator().empty_cache();
    if (round % 50 == 0) device.allocator().statistics();
  }
}

TEST(CachingThreadsTest, ThreadsShareStreamsAndMemory) {
  fake::Fake fake;
  Device& device = fake.open();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&device, i] { work(device, i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device.allocator().statistics().allocation.all().current, 0);
  device.synchronize();
  device.allocator().empty_cache();
  EXPECT_EQ(fake::controls().used, 0u);
}

TEST(CachingThreadsTest, BlocksCrossThreads) {
  fake::Fake fake;
  Device& device = fake.open();
  std::mutex mutex;
  std::vector<Block*> passed;
  bool over = false;
  std::thread consumer([&] {
    for (bool last = false; !last;) {
      std::vector<Block*> mine;
      {
        std::lock_guard<std::mutex> lock(mutex);
        mine.swap(passed);
        last = over;
      }
      for (Block* block : mine) device.allocator().free(block);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    Block* block = device.allocator().allocate(512 + i, device.default_stream());
    std::lock_guard<std::mutex> lock(mutex);
    passed.push_back(block);
  }
  {
    std::lock_guard<std::mutex> lock(mutex);
    over = true;
  }
  consumer.join();
  EXPECT_EQ(device.allocator().statistics().allocation.all().current, 0);
}

TEST(CachingThreadsTest, CommandsOfOneStreamAreSerialised) {
  fake::Fake fake;
  static std::atomic<int> inside{0};
  static std::atomic<int> most{0};
  fake::table().kernel_launch = [](graft_stream, graft_kernel, const graft_launch*) {
    const int now = ++inside;
    if (now > most) most = now;
    --inside;
    return GRAFT_OK;
  };
  Device& device = fake.open();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) device.default_stream().launch(nullptr, 1, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(device.streams().counts().launches, uint64_t{kThreads} * 2000);
}

}  // namespace
}  // namespace graft
