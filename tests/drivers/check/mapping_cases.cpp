// tests/drivers/check/mapping_cases.cpp: addresses that get their memory later.
#include <string>
#include <vector>

#include "check/cases.h"

using graft::check::pattern;
using graft::check::Session;

namespace {

constexpr const char* kSlots = "memory_reserve memory_map memory_unmap memory_unreserve";

uint64_t unit_of(const Session& session) {
  const uint64_t unit = session.properties.map_granularity;
  if (unit == 0) throw graft::check::Omitted("map_granularity");
  session.require((unit & (unit - 1)) == 0, "map_granularity is no power of two");
  return unit;
}

graft_address reserve(const Session& session, uint64_t bytes) {
  graft_address address = 0;
  session.expect(session.table.memory_reserve(session.device, bytes, &address), GRAFT_OK,
                 "memory_reserve of " + std::to_string(bytes) + " bytes");
  session.require(address != 0 && address % unit_of(session) == 0,
                  "memory_reserve gave an address that is no multiple of map_granularity, or 0");
  return address;
}

void map(const Session& session, graft_address address, uint64_t bytes) {
  session.expect(session.table.memory_map(session.device, address, bytes), GRAFT_OK, "memory_map");
}

void unmap(const Session& session, graft_address address, uint64_t bytes) {
  session.expect(session.table.memory_unmap(session.device, address, bytes), GRAFT_OK,
                 "memory_unmap");
}

}  // namespace

DRIVER_CASE(mapping, "mapping: neighbours are one allocation, and parts can go", kSlots, kOpen) {
  const uint64_t unit = unit_of(session);
  const graft_address begin = reserve(session, 4 * unit);
  map(session, begin, unit);
  map(session, begin + unit, 2 * unit);
  graft_stream stream = session.stream();
  const std::vector<uint8_t> sent = pattern(3 * unit, 5);
  session.upload(stream, begin, sent);
  session.require(session.download(stream, begin, 3 * unit) == sent,
                  "bytes across two mappings do not come back");
  unmap(session, begin + unit, unit);
  session.require(session.download(stream, begin, unit) == pattern(unit, 5),
                  "memory_unmap of a part took what lies before it");
  const std::vector<uint8_t> last(sent.begin() + 2 * int64_t(unit), sent.end());
  session.require(session.download(stream, begin + 2 * unit, unit) == last,
                  "memory_unmap of a part took what lies behind it");
  map(session, begin + unit, unit);
  session.upload(stream, begin, sent);
  session.require(session.download(stream, begin, 3 * unit) == sent,
                  "bytes do not come back from memory that was mapped again");
  unmap(session, begin, 3 * unit);
  session.expect(session.table.memory_unreserve(session.device, begin), GRAFT_OK,
                 "memory_unreserve");
}

DRIVER_CASE(mapping_gives_back, "mapping: what is unmapped can be had again", kSlots, kOpen) {
  const uint64_t unit = unit_of(session);
  const uint64_t half = session.properties.memory_bytes / 2 / unit * unit;
  const graft_address begin = reserve(session, half);
  for (int i = 0; i < 6; ++i) {
    map(session, begin, half);
    unmap(session, begin, half);
  }
  const uint64_t whole = session.properties.memory_bytes / unit * unit + unit;
  const graft_address beyond = reserve(session, whole);
  session.expect(session.table.memory_map(session.device, beyond, whole), GRAFT_OUT_OF_MEMORY,
                 "memory_map of more than memory_bytes");
  map(session, beyond, unit);
  session.upload(session.stream(), beyond, {1});
}
