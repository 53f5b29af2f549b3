// tests/runtime/platform/peer_copy_test.cpp: copies from one device to another.
#include "runtime/platform/peer_copy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/platform/device.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;

class PeerCopyTest : public testing::Test {
 protected:
  fake::Fake fake_;
};

TEST_F(PeerCopyTest, PeerCopyGoesThroughTheHost) {
  Device& to = fake_.open();
  Device& from = fake_.open_second();
  Block* source = from.allocator().allocate(40 << 20, from.default_stream());
  Block* target = to.allocator().allocate(40 << 20, to.default_stream());
  from.default_stream().fill(source->address, source->bytes, "graft", 4);
  peer_copy(to.default_stream(), to, target->address, from, source->address, source->bytes);
  to.synchronize();
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(source->address),
                        reinterpret_cast<void*>(target->address), source->bytes),
            0);
  from.allocator().free(source);
  to.allocator().free(target);
}

TEST_F(PeerCopyTest, TheDriversOwnCopyIsOneCommand) {
  fake::table().peer_copy = [](graft_stream stream, graft_address to, graft_device,
                               graft_address from, uint64_t bytes, uint32_t tag) {
    return fake::enqueue(stream, tag, [=] {
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    });
  };
  Device& to = fake_.open();
  Device& from = fake_.open_second();
  Block* source = from.allocator().allocate(4, from.default_stream());
  Block* target = to.allocator().allocate(4, to.default_stream());
  from.default_stream().fill(source->address, 4, "peer", 4);
  const uint64_t before = to.streams().counts().copied_bytes;
  peer_copy(to.default_stream(), to, target->address, from, source->address, 4);
  peer_copy(to.default_stream(), to, target->address, from, source->address, 0);
  to.synchronize();
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(target->address), "peer", 4), 0);
  EXPECT_EQ(to.streams().counts().copied_bytes, before + 4);
  EXPECT_EQ(from.streams().counts().copied_bytes, 0u);
  EXPECT_EQ(controls().host_allocations, 0);
  from.allocator().free(source);
  to.allocator().free(target);
}

}  // namespace
}  // namespace graft
