// tests/drivers/check/memory_cases.cpp: allocation, limits, leaks, pinned memory and host views.
#include <algorithm>
#include <cstring>
#include <vector>

#include "check/cases.h"

using graft::check::Omitted;
using graft::check::pattern;

DRIVER_CASE(alignment, "memory: addresses are aligned as the properties say", "", kOpen) {
  for (uint64_t bytes : {1ull, 3ull, 511ull, 512ull, 4097ull, 1048577ull}) {
    const graft_address address = session.allocate(bytes);
    session.require(address % session.properties.allocation_alignment == 0,
                    "the address of " + std::to_string(bytes) +
                        " bytes is no multiple of allocation_alignment");
  }
}

DRIVER_CASE(no_overlap, "memory: allocations do not overlap", "", kOpen) {
  std::vector<std::pair<graft_address, uint64_t>> all;
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t bytes = 1 + (i * 7919) % 9000;
    all.emplace_back(session.allocate(bytes), bytes);
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) {
    session.require(all[i - 1].first + all[i - 1].second <= all[i].first,
                    "two live allocations share bytes");
  }
}

DRIVER_CASE(too_much, "memory: an impossible size fails and leaves the device usable", "", kOpen) {
  graft_address address = 0;
  session.expect(session.table.memory_allocate(session.device, 1ull << 55, &address),
                 GRAFT_OUT_OF_MEMORY, "memory_allocate of 32 PiB");
  session.require(address == 0, "a failed memory_allocate wrote its out_ parameter");
  graft_stream stream = session.stream();
  const auto bytes = pattern(1000, 1);
  const graft_address after = session.allocate(1000);
  session.upload(stream, after, bytes);
  session.require(session.download(stream, after, 1000) == bytes,
                  "after an allocation failed, a copy gives wrong bytes");
}

DRIVER_CASE(no_leak, "memory: what is freed can be had again", "", kOpen) {
  const uint64_t chunk = std::max<uint64_t>(session.properties.memory_bytes / 8, 1);
  const uint64_t limit = session.properties.max_allocation_bytes;
  const uint64_t bytes = limit == 0 ? chunk : std::min(chunk, limit);
  // A quarter more than there is: large devices give memory at some ten GB/s.
  const uint64_t rounds = session.properties.memory_bytes / bytes * 5 / 4 + 1;
  for (uint64_t i = 0; i < rounds && i < 200; ++i) {
    const graft_address address = session.allocate(bytes);
    session.expect(session.table.memory_free(session.device, address), GRAFT_OK, "memory_free");
  }
}

DRIVER_CASE(free_is_reported, "memory: memory_info follows allocate and free", "memory_info",
            kOpen) {
  auto free_bytes = [&] {
    uint64_t free = 0;
    uint64_t total = 0;
    session.expect(session.table.memory_info(session.device, &free, &total), GRAFT_OK,
                   "memory_info");
    session.require(free <= total, "memory_info: free is more than total");
    return free;
  };
  const uint64_t before = free_bytes();
  const graft_address address = session.allocate(16u << 20);
  const uint64_t during = free_bytes();
  session.expect(session.table.memory_free(session.device, address), GRAFT_OK, "memory_free");
  session.require(during + (8u << 20) <= before, "memory_info did not see 16 MiB being allocated");
  session.require(free_bytes() + (1u << 20) >= before,
                  "memory_info did not see 16 MiB being freed");
}

DRIVER_CASE(interior, "memory: addresses inside an allocation are accepted", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address base = session.allocate(4096);
  const auto all = pattern(4096, 2);
  session.upload(stream, base, all);
  const auto part = pattern(100, 3);
  session.upload(stream, base + 1001, part);
  auto expected = all;
  std::copy(part.begin(), part.end(), expected.begin() + 1001);
  session.require(session.download(stream, base, 4096) == expected,
                  "a copy to the middle of an allocation went elsewhere");
}

DRIVER_CASE(pinned, "pinned memory: can be written and copied from", "host_allocate", kOpen) {
  void* pointer = nullptr;
  session.expect(session.table.host_allocate(session.device, 10000, &pointer), GRAFT_OK,
                 "host_allocate");
  const auto bytes = pattern(10000, 4);
  std::memcpy(pointer, bytes.data(), bytes.size());
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(10000);
  session.expect(session.table.copy(stream, address, reinterpret_cast<uint64_t>(pointer), 10000,
                                    GRAFT_HOST_TO_DEVICE, 0),
                 GRAFT_OK, "copy from pinned memory");
  session.require(session.download(stream, address, 10000) == bytes,
                  "bytes copied from pinned memory are wrong");
  session.expect(session.table.host_free(session.device, pointer), GRAFT_OK, "host_free");
}

DRIVER_CASE(host_view, "host view: shows the device's bytes both ways", "memory_host_view", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(5000);
  const auto bytes = pattern(5000, 5);
  session.upload(stream, address, bytes);
  void* view = nullptr;
  const graft_status status =
      session.table.memory_host_view(session.device, address + 10, 4990, &view);
  if (status == GRAFT_UNSUPPORTED) throw Omitted("a host view of this device's memory");
  session.expect(status, GRAFT_OK, "memory_host_view");
  session.require(std::memcmp(view, bytes.data() + 10, 4990) == 0,
                  "the host view shows other bytes");
  std::memset(view, 7, 4990);
  const auto read = session.download(stream, address + 10, 4990);
  session.require(std::all_of(read.begin(), read.end(), [](uint8_t byte) { return byte == 7; }),
                  "bytes written through the host view did not reach the device");
}
