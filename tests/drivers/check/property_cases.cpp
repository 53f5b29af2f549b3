// tests/drivers/check/property_cases.cpp: properties agree with themselves and with the memory.
#include <algorithm>
#include <cstring>
#include <string>

#include "check/cases.h"

using graft::check::Omitted;
using graft::check::Session;

namespace {

graft_device_properties read(const Session& session) {
  graft_device_properties properties;
  std::memset(&properties, 0, sizeof properties);
  properties.struct_size = sizeof properties;
  session.expect(session.table.device_properties(0, &properties), GRAFT_OK, "device_properties(0)");
  properties.struct_size = sizeof properties;
  return properties;
}

bool power_of_two(uint64_t number) { return number != 0 && (number & (number - 1)) == 0; }

void require_dialect(const Session& session) {
  const graft_device_properties& p = session.properties;
  const std::string given = p.dialect;
  if (given.empty()) return;
  std::string known;
  uint32_t classes = 0;
#define GRAFT_LOOK(text, served)             \
  known += std::string(" \"") + text + "\""; \
  if (given == text) classes = served;
  GRAFT_DIALECTS(GRAFT_LOOK)
#undef GRAFT_LOOK
  session.require(classes != 0, "the dialect \"" + given + "\" is none of" + known);
  session.require((classes >> p.device_class & 1) != 0,
                  "the dialect \"" + given + "\" does not serve the device's class");
  session.require(session.table.program_compile != nullptr || session.table.kernel_find != nullptr,
                  "a dialect is stated, but neither program_compile nor kernel_find is there");
}

}  // namespace

DRIVER_CASE(consistent, "properties: they do not contradict each other", "", kOpen) {
  const graft_device_properties& p = session.properties;
  session.require(p.device_class <= GRAFT_GPU_LIKE, "device_class is no graft_device_class");
  require_dialect(session);
  session.require(p.allocation_alignment <= p.memory_bytes,
                  "allocation_alignment is larger than memory_bytes");
  session.require(p.max_allocation_bytes <= p.memory_bytes,
                  "max_allocation_bytes is larger than memory_bytes");
  if (p.device_class == GRAFT_GPU_LIKE) {
    session.require(p.sub_group_size <= p.max_group_size,
                    "sub_group_size is larger than max_group_size");
    session.require((p.features & GRAFT_FEATURE_SHUFFLES) == 0 ||
                        (p.sub_group_size > 1 && power_of_two(p.sub_group_size)),
                    "GRAFT_FEATURE_SHUFFLES needs a sub_group_size that is a power of two above 1");
  }
  uint32_t dtypes = 0;
#define GRAFT_ADD(name, value, bytes, text) dtypes |= 1u << value;
  GRAFT_DTYPES(GRAFT_ADD)
#undef GRAFT_ADD
  session.require((p.dtypes & ~dtypes) == 0,
                  "dtypes has bits that are no graft_dtype's: give 1 << GRAFT_FLOAT32 and so on");
}

DRIVER_CASE(constant, "properties: they are the same at each call", "", kOpen) {
  const graft_device_properties opened = read(session);
  for (int i = 0; i < 3; ++i) {
    const graft_device_properties again = read(session);
    session.require(std::memcmp(&again, &opened, sizeof again) == 0,
                    "device_properties gives something else at another call");
  }
  graft_device_properties before = session.properties;
  before.struct_size = sizeof before;
  session.require(std::memcmp(&before, &opened, sizeof before) == 0,
                  "device_properties gives something else once the device is open");
}

DRIVER_CASE(memory_is_there, "properties: half of memory_bytes can be allocated", "", kOpen) {
  const graft_device_properties& p = session.properties;
  const uint64_t half = p.memory_bytes / 2;
  uint64_t piece = std::max<uint64_t>(half / 4, 1);
  if (p.max_allocation_bytes != 0) piece = std::min(piece, p.max_allocation_bytes);
  graft_stream stream = session.stream();
  for (uint64_t done = 0; done + piece <= half; done += piece) {
    graft_address address = 0;
    session.expect(session.table.memory_allocate(session.device, piece, &address), GRAFT_OK,
                   "memory_allocate of " + std::to_string(piece) + " bytes after " +
                       std::to_string(done) + ", where memory_bytes is " +
                       std::to_string(p.memory_bytes) + ",");
    session.upload(stream, address + piece - 1, {1});
  }
}

DRIVER_CASE(no_more_memory, "properties: more than memory_bytes cannot be allocated", "", kOpen) {
  graft_address address = 0;
  const uint64_t bytes = session.properties.memory_bytes + session.properties.allocation_alignment;
  session.expect(session.table.memory_allocate(session.device, bytes, &address),
                 GRAFT_OUT_OF_MEMORY,
                 "memory_allocate of " + std::to_string(bytes) + " bytes, where memory_bytes is " +
                     std::to_string(session.properties.memory_bytes) + ",");
}

DRIVER_CASE(largest_allocation, "properties: one allocation can have max_allocation_bytes", "",
            kOpen) {
  const graft_device_properties& p = session.properties;
  if (p.max_allocation_bytes == 0) throw Omitted("a limit of one allocation");
  const uint64_t bytes = std::min(p.max_allocation_bytes, p.memory_bytes / 2);
  const graft_address address = session.allocate(bytes);
  session.upload(session.stream(), address + bytes - 1, {1});
}
