// tests/drivers/check/copy_cases.cpp: copies and fills, their ranges and their patterns.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check/cases.h"

using graft::check::pattern;
using graft::check::Session;

namespace {

constexpr uint64_t kRoom = 4096;

// Runs write on room full of a known pattern and compares all of the room afterwards.
template <class Write, class Expect>
void compare_room(Session& session, const std::string& what, Write write, Expect expect) {
  graft_stream stream = session.stream();
  const graft_address room = session.allocate(kRoom);
  std::vector<uint8_t> expected = pattern(kRoom, 9);
  session.upload(stream, room, expected);
  session.expect(write(stream, room), GRAFT_OK, what);
  expect(expected);
  const std::vector<uint8_t> got = session.download(stream, room, kRoom);
  for (uint64_t i = 0; i < kRoom; ++i) {
    session.require(got[i] == expected[i],
                    what + ": byte " + std::to_string(i) + " of the room is wrong");
  }
}

}  // namespace

DRIVER_CASE(round_trip, "copy: sizes from 1 byte to 8 MiB come back as they went", "", kOpen) {
  graft_stream stream = session.stream();
  for (uint64_t bytes : {1ull, 2ull, 3ull, 7ull, 8ull, 63ull, 64ull, 65ull, 4095ull, 4096ull,
                         100001ull, 8ull << 20}) {
    const graft_address address = session.allocate(bytes);
    const auto sent = pattern(bytes, static_cast<uint8_t>(bytes));
    session.upload(stream, address, sent);
    session.require(session.download(stream, address, bytes) == sent,
                    "a round trip of " + std::to_string(bytes) + " bytes changed them");
  }
}

DRIVER_CASE(copy_range, "copy: writes its range and nothing beside it", "", kOpen) {
  for (uint64_t bytes : {1ull, 5ull, 64ull, 999ull}) {
    const auto sent = pattern(bytes + 64, 10);
    compare_room(
        session, "copy of " + std::to_string(bytes) + " bytes to the device",
        [&](graft_stream stream, graft_address room) {
          return session.table.copy(stream, room + 100, reinterpret_cast<uint64_t>(sent.data()),
                                    bytes, GRAFT_HOST_TO_DEVICE, 0);
        },
        [&](std::vector<uint8_t>& expected) {
          std::copy_n(sent.begin(), bytes, expected.begin() + 100);
        });
  }
}

DRIVER_CASE(copy_within, "copy: within the device", "", kOpen) {
  compare_room(
      session, "copy within the device",
      [&](graft_stream stream, graft_address room) {
        return session.table.copy(stream, room + 3001, room + 17, 777, GRAFT_DEVICE_TO_DEVICE, 0);
      },
      [](std::vector<uint8_t>& expected) {
        std::copy_n(expected.begin() + 17, 777, expected.begin() + 3001);
      });
}

DRIVER_CASE(download_range, "copy: to the host writes its range and nothing beside it", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(1000);
  const auto sent = pattern(1000, 11);
  session.upload(stream, address, sent);
  std::vector<uint8_t> got(300, 0xCD);
  session.expect(session.table.copy(stream, reinterpret_cast<uint64_t>(got.data() + 100),
                                    address + 50, 99, GRAFT_DEVICE_TO_HOST, 0),
                 GRAFT_OK, "copy to the host");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.require(std::equal(got.begin() + 100, got.begin() + 199, sent.begin() + 50),
                  "a copy to the host gave wrong bytes");
  for (size_t i = 0; i < got.size(); ++i) {
    session.require((i >= 100 && i < 199) || got[i] == 0xCD, "a copy to the host left its range");
  }
}

DRIVER_CASE(nothing, "copy and fill: 0 bytes succeed and do nothing", "", kOpen) {
  compare_room(
      session, "copy of 0 bytes",
      [&](graft_stream stream, graft_address room) {
        const uint8_t one = 1;
        session.expect(session.table.fill(stream, room, 0, &one, 1, 0), GRAFT_OK,
                       "fill of 0 bytes");
        return session.table.copy(stream, room, room + 64, 0, GRAFT_DEVICE_TO_DEVICE, 0);
      },
      [](std::vector<uint8_t>&) {});
}

DRIVER_CASE(fill_patterns, "fill: patterns of 1, 2, 4, 8 and 16 bytes", "", kOpen) {
  for (uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    const auto unit = pattern(width, 12);
    const uint64_t bytes = width * 37ull;
    compare_room(
        session, "fill with a pattern of " + std::to_string(width) + " bytes",
        [&](graft_stream stream, graft_address room) {
          return session.table.fill(stream, room + 160, bytes, unit.data(), width, 0);
        },
        [&](std::vector<uint8_t>& expected) {
          for (uint64_t i = 0; i < bytes; ++i) expected[160 + i] = unit[i % width];
        });
  }
}

DRIVER_CASE(fill_copies, "fill: takes its pattern at the call", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(64);
  uint32_t unit = 0x01020304;
  session.delay(stream, 30);
  session.expect(session.table.fill(stream, address, 64, &unit, 4, 0), GRAFT_OK, "fill");
  unit = 0;
  session.require(session.download(stream, address, 1)[0] == 4,
                  "the pattern was read after fill had returned");
}

DRIVER_CASE(wrong_pattern, "fill: a pattern of 3 bytes is refused", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(64);
  const uint32_t unit = 0;
  session.expect(session.table.fill(stream, address, 63, &unit, 3, 0), GRAFT_INVALID_ARGUMENT,
                 "fill with a pattern of 3 bytes");
}

DRIVER_CASE(peer, "copy: between two devices of the driver", "peer_copy", kOpen) {
  uint32_t count = 0;
  session.expect(session.table.device_count(&count), GRAFT_OK, "device_count");
  graft_device other = session.device;
  if (count > 1) session.expect(session.table.device_open(1, &other), GRAFT_OK, "device_open(1)");
  graft_address to = 0;
  session.expect(session.table.memory_allocate(other, 5000, &to), GRAFT_OK, "memory_allocate");
  graft_stream stream = nullptr;
  session.expect(session.table.stream_create(other, 0, &stream), GRAFT_OK, "stream_create");
  const graft_address from = session.allocate(5000);
  const auto bytes = pattern(5000, 13);
  session.upload(session.stream(), from, bytes);
  session.expect(session.table.peer_copy(stream, to, session.device, from, 5000, 0), GRAFT_OK,
                 "peer_copy");
  session.require(session.download(stream, to, 5000) == bytes, "peer_copy gave wrong bytes");
}

namespace {

// Rows of every second place of a block, to the dense order and back.
graft_strided_copy rows_of(uint32_t kind, uint64_t to, uint64_t from, bool packs) {
  graft_strided_copy rows = {};
  rows.struct_size = sizeof rows;
  rows.kind = kind;
  rows.to = to;
  rows.from = from;
  rows.row_bytes = 96;
  const uint64_t wide[3] = {160, 160 * 5, 160 * 5 * 4}, dense[3] = {96, 96 * 3, 96 * 3 * 2};
  for (int i = 0; i < 3; ++i) {
    rows.counts[i] = uint64_t(3 - i);
    rows.to_strides[i] = packs ? dense[i] : wide[i];
    rows.from_strides[i] = packs ? wide[i] : dense[i];
  }
  return rows;
}

// What the copy makes of bytes, on the host.
std::vector<uint8_t> moved(const graft_strided_copy& rows, const std::vector<uint8_t>& from,
                           std::vector<uint8_t> to) {
  for (uint64_t k = 0; k < rows.counts[2]; ++k) {
    for (uint64_t j = 0; j < rows.counts[1]; ++j) {
      for (uint64_t i = 0; i < rows.counts[0]; ++i) {
        const auto at = [&](const uint64_t(&s)[3]) { return i * s[0] + j * s[1] + k * s[2]; };
        std::memcpy(&to[at(rows.to_strides)], &from[at(rows.from_strides)], rows.row_bytes);
      }
    }
  }
  return to;
}

}  // namespace

DRIVER_CASE(strided, "copy: copy_strided moves its rows and nothing beside them", "copy_strided",
            kOpen) {
  graft_stream stream = session.stream();
  const graft_address first = session.allocate(kRoom), second = session.allocate(kRoom);
  const std::vector<uint8_t> source = pattern(kRoom, 1), before = pattern(kRoom, 2);
  const auto copy = [&](uint32_t kind, uint64_t to, uint64_t from, bool packs) {
    const graft_strided_copy rows = rows_of(kind, to, from, packs);
    const graft_status status = session.table.copy_strided(stream, &rows, 0);
    if (status == GRAFT_UNSUPPORTED) throw graft::check::Omitted("rows of 96 bytes");
    session.expect(status, GRAFT_OK, "copy_strided");
    session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
    return rows;
  };
  for (const bool packs : {true, false}) {
    const std::string way = packs ? ", packing" : ", spreading";
    session.upload(stream, first, before);
    const auto in =
        copy(GRAFT_HOST_TO_DEVICE, first, reinterpret_cast<uint64_t>(source.data()), packs);
    session.require(session.download(stream, first, kRoom) == moved(in, source, before),
                    "copy_strided to the device is wrong" + way);
    session.upload(stream, first, source);
    session.upload(stream, second, before);
    const auto within = copy(GRAFT_DEVICE_TO_DEVICE, second, first, packs);
    session.require(session.download(stream, second, kRoom) == moved(within, source, before),
                    "copy_strided on the device is wrong" + way);
    std::vector<uint8_t> host = before;
    const auto out =
        copy(GRAFT_DEVICE_TO_HOST, reinterpret_cast<uint64_t>(host.data()), first, packs);
    session.require(host == moved(out, source, before), "copy_strided to the host is wrong" + way);
  }
}
