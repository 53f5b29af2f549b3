// tests/drivers/check/ability_cases.cpp: kernels do what the device's properties say.
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
