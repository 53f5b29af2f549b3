// tests/drivers/check/property_cases.cpp: properties agree with themselves, with the memory and
// with what kernels do.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "check/cases.h"
#include "check/programs.h"

using graft::check::build;
using graft::check::KernelText;
using graft::check::kKernelSlots;
using graft::check::launch;
using graft::check::Omitted;
using graft::check::Session;
using graft::check::words_at;
using graft::check::zeros;

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

constexpr uint32_t kManyArguments = 200;  // of a device that states no limit

void require_feature(const Session& session, uint32_t feature, const char* name) {
  if ((session.properties.features & feature) == 0) throw Omitted(name);
}

void require_groups(const Session& session) {
  if (session.properties.device_class != GRAFT_GPU_LIKE) {
    throw Omitted("groups of work-items: the device is CPU-like");
  }
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

DRIVER_CASE(float64, "properties: GRAFT_FEATURE_FLOAT64: a kernel computes in float64",
            kKernelSlots, kOpen) {
  require_feature(session, GRAFT_FEATURE_FLOAT64, "GRAFT_FEATURE_FLOAT64");
  constexpr uint64_t kCount = 100;
  KernelText text;
  text.type = "double";
  text.body = "p0[i] = 1.0 / (double)((int)i + n);";
  graft_stream stream = session.stream();
  const graft_address x = zeros(session, stream, 2 * kCount);
  session.expect(
      launch(session, stream, build(session, text), text, {{x}, 8 * kCount, kCount, 1, 3}),
      GRAFT_OK, "kernel_launch");
  const auto bytes = session.download(stream, x, 8 * kCount);
  for (uint64_t i = 0; i < kCount; ++i) {
    double got = 0;
    std::memcpy(&got, bytes.data() + 8 * i, 8);
    const double wanted = 1.0 / (static_cast<double>(i) + 3);
    session.require(std::abs(got - wanted) <= 1e-15 * wanted,
                    "1 / " + std::to_string(i + 3) + " in float64 is off by " +
                        std::to_string(std::abs(got / wanted - 1) * 1e9) + "e-9 of it");
  }
}

DRIVER_CASE(atomics, "properties: GRAFT_FEATURE_INT64_ATOMICS: 64 bits are added at once",
            kKernelSlots, kOpen) {
  require_feature(session, GRAFT_FEATURE_INT64_ATOMICS, "GRAFT_FEATURE_INT64_ATOMICS");
  constexpr uint64_t kCount = 10000;
  KernelText text;
  text.type = "i64";
  text.body = "ATOMIC_ADD(p0, ((i64)n << 33) + 1);";
  graft_stream stream = session.stream();
  const graft_address x = zeros(session, stream, 2);
  session.expect(launch(session, stream, build(session, text), text, {{x}, 8, kCount, 1, 1}),
                 GRAFT_OK, "kernel_launch");
  const auto bytes = session.download(stream, x, 8);
  uint64_t sum = 0;
  std::memcpy(&sum, bytes.data(), 8);
  session.require(sum == kCount * ((1ull << 33) + 1),
                  std::to_string(kCount) + " atomic additions gave " + std::to_string(sum) +
                      " instead of " + std::to_string(kCount * ((1ull << 33) + 1)));
}

DRIVER_CASE(largest_group, "properties: a group of max_group_size work-items runs", kKernelSlots,
            kOpen) {
  require_groups(session);
  const uint32_t group = session.properties.max_group_size;
  constexpr uint64_t kGroups = 3;
  graft_stream stream = session.stream();
  const KernelText text;
  const uint64_t count = kGroups * group;
  const graft_address x = zeros(session, stream, count);
  session.expect(
      launch(session, stream, build(session, text), text, {{x}, 4 * count, kGroups, group, 5}),
      GRAFT_OK, "kernel_launch of groups of " + std::to_string(group) + " work-items");
  graft::check::require_sum(session, stream, x, count, 5);
}

DRIVER_CASE(local_memory, "properties: a group gets local_memory_bytes of local memory",
            kKernelSlots, kOpen) {
  require_groups(session);
  const uint64_t bytes = session.properties.local_memory_bytes / 4 * 4;
  if (bytes == 0) throw Omitted("local memory");
  KernelText text;
  text.local = true;
  text.body =
      "for (int w = l; w < n; w += s) shared[w] = w;\n  BARRIER;\n  p0[i] = shared[n - 1 - l];";
  constexpr uint64_t kGroups = 4;
  const auto words = static_cast<int>(std::min<uint64_t>(bytes / 4, 1u << 30));
  const uint32_t group = std::min({64u, session.properties.max_group_size, uint32_t(words)});
  graft_stream stream = session.stream();
  const uint64_t count = kGroups * group;
  const graft_address x = zeros(session, stream, count);
  session.expect(launch(session, stream, build(session, text), text,
                        {{x}, 4 * count, kGroups, group, words}, bytes),
                 GRAFT_OK,
                 "kernel_launch with " + std::to_string(bytes) + " bytes of local memory");
  const auto found = words_at(session, stream, x, count);
  for (uint64_t i = 0; i < count; ++i) {
    session.require(found[i] == words - 1 - static_cast<int>(i % group),
                    "a word of " + std::to_string(bytes) + " bytes of local memory is lost");
  }
}

DRIVER_CASE(most_arguments, "properties: a launch of max_arguments arguments runs", kKernelSlots,
            kOpen) {
  const uint32_t stated = session.properties.max_arguments;
  KernelText text;
  text.addresses = stated == 0 ? kManyArguments : stated;
  text.scalar = false;
  text.body = "p0[i] = 1";
  for (uint32_t k = 1; k < text.addresses; ++k) text.body += " + p" + std::to_string(k) + "[0]";
  text.body += ";";
  const std::string what = "kernel_launch of " + std::to_string(text.addresses) + " addresses" +
                           (stated == 0 ? ", where max_arguments is 0 for no limit" : "");
  graft_stream stream = session.stream();
  const graft_address out = zeros(session, stream, 10), in = zeros(session, stream, 10);
  const uint32_t three = 3;
  session.expect(session.table.fill(stream, in, 40, &three, 4, 0), GRAFT_OK, "fill");
  std::vector<graft_address> addresses(text.addresses, in);
  addresses[0] = out;
  session.expect(launch(session, stream, build(session, text), text, {addresses, 40, 10, 1, 0}),
                 GRAFT_OK, what);
  const int wanted = 1 + 3 * static_cast<int>(text.addresses - 1);
  for (const int got : words_at(session, stream, out, 10)) {
    session.require(got == wanted, what + " gave " + std::to_string(got) + " instead of " +
                                       std::to_string(wanted));
  }
}

DRIVER_CASE(shuffles,
            "properties: GRAFT_FEATURE_SHUFFLES: work-items of a sub-group exchange values",
            kKernelSlots, kOpen) {
  require_feature(session, GRAFT_FEATURE_SHUFFLES, "GRAFT_FEATURE_SHUFFLES");
  require_groups(session);
  if (std::string(session.properties.dialect) != "opencl-c") {
    throw Omitted("a test kernel with shuffles in this dialect");
  }
  KernelText text;
  text.addresses = 2;
  text.body = "p0[i] = SHUFFLE((int)i * 3 + n, 1);\n  p1[i] = (int)get_sub_group_size();";
  const uint32_t group = session.properties.sub_group_size;
  constexpr uint64_t kGroups = 4;
  const uint64_t count = kGroups * group;
  graft_stream stream = session.stream();
  const graft_address x = zeros(session, stream, count), sizes = zeros(session, stream, count);
  session.expect(launch(session, stream, build(session, text), text,
                        {{x, sizes}, 4 * count, kGroups, group, 7}),
                 GRAFT_OK, "kernel_launch");
  const auto values = words_at(session, stream, x, count);
  const auto size = words_at(session, stream, sizes, count);
  for (uint64_t i = 0; i < count; ++i) {
    session.require(size[i] >= 2 && (size[i] & (size[i] - 1)) == 0,
                    "a sub-group of " + std::to_string(size[i]) +
                        " work-items, where shuffles need a power of two above 1");
    session.require(values[i] == static_cast<int>(i ^ 1) * 3 + 7,
                    "work-item " + std::to_string(i) + " did not get its neighbour's value");
  }
}
