// drivers/trace/rules/property.cpp: rules of what a driver says of its devices.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "rules/hooks.h"

namespace graft::trace {
namespace {

struct DialectRow {
  const char* name;
  uint32_t classes;
};
#define GRAFT_TRACE_DIALECT(name, classes) {name, classes},
constexpr DialectRow kDialects[] = {GRAFT_DIALECTS(GRAFT_TRACE_DIALECT)};

#define GRAFT_TRACE_DTYPE_BIT(name, value, bytes, text) | 1u << value
constexpr uint32_t kDtypes = 0u GRAFT_DTYPES(GRAFT_TRACE_DTYPE_BIT);

// Numbers that no sensor reads, by GRAFT_SENSORS' units.
struct SensorRange {
  int64_t least, most;
};
constexpr SensorRange kSensors[] = {
    {-273'150, 1'000'000}, {0, 100'000'000}, {0, 1'000'000'000'000}, {0, 100}};

std::string flaw_of_dialect(const graft_device_properties& given) {
  if (given.dialect[0] == '\0') return "";
  for (const DialectRow& row : kDialects) {
    if (std::strcmp(row.name, given.dialect) != 0) continue;
    const bool serves = given.device_class < 32 && (row.classes >> given.device_class & 1u) != 0;
    return serves ? "" : "the dialect '" + std::string(row.name) + "' has no such device class";
  }
  return "the dialect '" + std::string(given.dialect) + "' is unknown";
}

std::string flaw_of(const graft_device_properties& given) {
  for (const auto& [text, size] : {std::pair{given.name, sizeof given.name},
                                   {given.vendor, sizeof given.vendor},
                                   {given.dialect, sizeof given.dialect}}) {
    if (::strnlen(text, size) == size) return "a text has no end";
  }
  if (given.device_class > GRAFT_GPU_LIKE) return "device_class is unknown";
  if (given.compute_units == 0) return "compute_units is 0";
  if (given.max_group_size == 0) return "max_group_size is 0";
  if (given.priority_lowest < 0 || given.priority_highest > 0) {
    return "the priorities do not include 0, the normal one";
  }
  const uint64_t alignment = given.allocation_alignment;
  if ((alignment & (alignment - 1)) != 0) return "allocation_alignment is no power of two";
  if ((given.dtypes & ~kDtypes) != 0) return "dtypes has bits that are no graft_dtype";
  if (given.max_allocation_bytes > given.memory_bytes) {
    return "max_allocation_bytes is more than memory_bytes";
  }
  return flaw_of_dialect(given);
}

// The caller's struct, and a copy of it with a margin behind it for the driver.
template <class Facts>
struct LentFacts {
  Facts* given;
  std::vector<uint64_t> room;
};
constexpr size_t kMarginWords = 64;
constexpr uint64_t kCanary = 0xa5a5a5a5a5a5a5a5;

template <class Facts>
void lend_facts(TraceCall& call, Facts*& facts) {
  const size_t words = (size_t{facts->struct_size} + 7) / 8;
  const auto lent = std::make_shared<LentFacts<Facts>>(LentFacts<Facts>{facts, {}});
  lent->room.assign(words + kMarginWords, kCanary);
  std::memcpy(lent->room.data(), facts, facts->struct_size);
  facts = reinterpret_cast<Facts*>(lent->room.data());
  call.kept.push_back(lent);
}

// Gives the caller what the driver wrote; nothing if the call failed, or the caller's struct is of
// an older minor.
template <class Facts>
std::optional<Facts> settle_facts(TraceCall& call, graft_status status) {
  const auto lent = std::static_pointer_cast<LentFacts<Facts>>(call.kept.front());
  const uint32_t known = lent->given->struct_size;
  const size_t words = lent->room.size() - kMarginWords;
  std::vector<uint8_t> behind(8 * words - known + 8 * kMarginWords);
  std::memcpy(behind.data(), reinterpret_cast<const char*>(lent->room.data()) + known,
              behind.size());
  if (std::any_of(behind.begin(), behind.end(), [](uint8_t byte) { return byte != 0xa5; })) {
    call.driver_broke("past-struct",
                      "wrote behind the struct of " + std::to_string(known) + " bytes",
                      "Touch no byte beyond struct_size.");
  }
  if (status != GRAFT_OK) return std::nullopt;
  std::memcpy(lent->given, lent->room.data(), known);
  if (known < sizeof(Facts)) return std::nullopt;
  Facts filled{};
  std::memcpy(&filled, lent->room.data(), sizeof filled);
  return filled;
}

// Against one another, and against those of earlier calls.
void check_properties(TraceCall& call, uint32_t ordinal, const graft_device_properties& given) {
  const std::string flaw = flaw_of(given);
  if (!flaw.empty()) {
    call.driver_broke("properties", flaw, "State what the device has, in driver.h's terms.");
  }
  const std::lock_guard lock(call.layer.mutex);
  const auto [found, fresh] = call.layer.ledger.properties.emplace(ordinal, given);
  if (!fresh && std::memcmp(&found->second, &given, sizeof given) != 0) {
    call.driver_broke("changed", "the properties differ from those of an earlier call",
                      "Give the same properties at each call.");
    found->second = given;
  }
}

}  // namespace

void PropertyBefore::device_properties(TraceCall& call, uint32_t,
                                       graft_device_properties*& properties) {
  lend_facts(call, properties);
}

void PropertyAfter::device_properties(TraceCall& call, graft_status status, uint32_t ordinal,
                                      graft_device_properties*) {
  const auto filled = settle_facts<graft_device_properties>(call, status);
  if (filled) check_properties(call, ordinal, *filled);
}

void PropertyBefore::device_identity(TraceCall& call, uint32_t, graft_device_identity*& identity) {
  lend_facts(call, identity);
}

void PropertyAfter::device_identity(TraceCall& call, graft_status status, uint32_t,
                                    graft_device_identity*) {
  const auto filled = settle_facts<graft_device_identity>(call, status);
  if (!filled) return;
  const auto has_end = [](const auto& text) { return ::strnlen(text, sizeof text) < sizeof text; };
  if (!has_end(filled->driver_version) || !has_end(filled->firmware_version)) {
    call.driver_broke("properties", "a text has no end", "End each text in a zero byte.");
  }
  if ((filled->known & ~(GRAFT_IDENTITY_UUID | GRAFT_IDENTITY_PCI)) != 0) {
    call.driver_broke("properties", "known has bits that are no GRAFT_IDENTITY_ bit",
                      "Set the bits of driver.h.");
  }
}

void PropertyBefore::device_link(TraceCall& call, uint32_t, uint32_t, graft_device_link*& link) {
  lend_facts(call, link);
}

void PropertyAfter::device_link(TraceCall& call, graft_status status, uint32_t, uint32_t,
                                graft_device_link*) {
  const auto filled = settle_facts<graft_device_link>(call, status);
  if (filled && filled->kind > GRAFT_LINK_SHARED) {
    call.driver_broke("properties", "kind is no graft_link_kind", "Use a kind of GRAFT_LINKS.");
  }
}

void PropertyAfter::device_sensor(TraceCall& call, graft_status status, graft_device,
                                  uint32_t sensor, int64_t* out_value) {
  if (status != GRAFT_OK || sensor >= std::size(kSensors)) return;
  const SensorRange range = kSensors[sensor];
  if (*out_value < range.least || *out_value > range.most) {
    call.driver_broke("impossible", std::to_string(*out_value) + " is out of the sensor's range",
                      "Use the unit of GRAFT_SENSORS.");
  }
}

}  // namespace graft::trace
