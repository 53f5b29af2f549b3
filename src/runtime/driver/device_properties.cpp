// src/runtime/driver/device_properties.cpp: what a driver says of a device, read and checked.
#include "runtime/driver/device_properties.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/driver/error.h"
#include "runtime/driver/facts_room.h"
#include "runtime/driver/readable_text.h"

namespace graft {
namespace {

using Properties = graft_device_properties;

struct Dialect {
  std::string_view name;
  uint32_t classes;
};

constexpr Dialect kDialects[] = {
#define GRAFT_ROW(text, classes) {text, classes},
    GRAFT_DIALECTS(GRAFT_ROW)
#undef GRAFT_ROW
};

char small(char letter) { return letter >= 'A' && letter <= 'Z' ? char(letter + 32) : letter; }

// Letters to change, add or leave out, whatever their case.
size_t difference(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (small(a[i]) == small(b[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

std::string quoted(std::string_view text) { return "'" + readable(text) + "'"; }

std::string unknown_dialect(std::string_view given) {
  std::string known;
  const Dialect* nearest = &kDialects[0];
  for (const Dialect& one : kDialects) {
    known += (known.empty() ? "" : ", ") + quoted(one.name);
    if (difference(given, one.name) < difference(given, nearest->name)) nearest = &one;
  }
  std::string text = "the dialect " + quoted(given) + ", expected one of " + known;
  const size_t most = std::max(given.size(), nearest->name.size()) / 2;
  if (difference(given, nearest->name) <= most) {
    text += " (did you mean " + quoted(nearest->name) + "?)";
  }
  return text;
}

std::string wrong_dialect(const Properties& p, const graft_driver_table& table) {
  const std::string_view given = p.dialect;
  if (given.empty()) return {};
  const auto* found = std::find_if(std::begin(kDialects), std::end(kDialects),
                                   [&](const Dialect& one) { return one.name == given; });
  if (found == std::end(kDialects)) return unknown_dialect(given);
  if ((found->classes & 1u << p.device_class) == 0) {
    const bool gpu = p.device_class == GRAFT_GPU_LIKE;
    return "the dialect " + quoted(given) + " for a device of the class " +
           (gpu ? "GRAFT_GPU_LIKE, but the dialect serves GRAFT_CPU_LIKE only"
                : "GRAFT_CPU_LIKE, but the dialect serves GRAFT_GPU_LIKE only");
  }
  if (table.program_compile == nullptr && table.kernel_find == nullptr) {
    return "the dialect " + quoted(given) +
           ", but its driver lacks program_compile and kernel_find (without both, state \"\")";
  }
  return {};
}

std::string wrong_memory(const Properties& p) {
  if (p.memory_bytes == 0) return "no memory";
  if (!std::has_single_bit(p.allocation_alignment)) {
    return "an alignment of " + std::to_string(p.allocation_alignment) +
           ", expected a power of two";
  }
  const std::string all = std::to_string(p.memory_bytes) + " bytes of memory";
  if (p.allocation_alignment > p.memory_bytes) {
    return "an alignment of " + std::to_string(p.allocation_alignment) + " bytes with " + all;
  }
  if (p.max_allocation_bytes > p.memory_bytes) {
    return "allocations of up to " + std::to_string(p.max_allocation_bytes) + " bytes with " + all;
  }
  return {};
}

std::string wrong_groups(const Properties& p) {
  if (p.max_group_size == 0) return "groups of 0 work-items at most (max_group_size)";
  if (p.device_class != GRAFT_GPU_LIKE) return {};
  std::string sub = "sub-groups of " + std::to_string(p.sub_group_size) + " work-items";
  if (p.sub_group_size == 0) return sub;
  if (p.sub_group_size > p.max_group_size) {
    return sub + " in groups of at most " + std::to_string(p.max_group_size);
  }
  const bool exchange = (p.features & GRAFT_FEATURE_SHUFFLES) != 0;
  if (exchange && (p.sub_group_size == 1 || !std::has_single_bit(p.sub_group_size))) {
    return "GRAFT_FEATURE_SHUFFLES with " + sub + ", expected a power of two above 1";
  }
  return {};
}

// Empty where nothing is wrong.
std::string wrong(const Properties& p, const graft_driver_table& table) {
  if (p.device_class > GRAFT_GPU_LIKE) return "an unknown device class";
  if (p.compute_units == 0) return "no compute units";
  if (p.priority_highest > p.priority_lowest) return "a priority_highest above priority_lowest";
  if (p.priority_highest > 0 || p.priority_lowest < 0) {
    return "stream priorities from " + std::to_string(p.priority_highest) + " to " +
           std::to_string(p.priority_lowest) + ", expected a range that holds 0";
  }
  for (std::string text : {wrong_memory(p), wrong_groups(p), wrong_dialect(p, table)}) {
    if (!text.empty()) return text;
  }
  return {};
}

// Ends a string of the struct and makes it readable in place; '?' is no longer than what it
// replaces.
template <size_t size>
void make_readable(char (&text)[size]) {
  text[size - 1] = '\0';
  const std::string shown = readable(text);
  std::memcpy(text, shown.c_str(), shown.size() + 1);
  std::replace(text, text + shown.size(), '\n', ' ');
}

}  // namespace

uint32_t all_dtypes() {
  uint32_t bits = 0;
#define GRAFT_ADD(name, value, bytes, text) bits |= 1u << GRAFT_##name;
  GRAFT_DTYPES(GRAFT_ADD)
#undef GRAFT_ADD
  return bits;
}

uint32_t computed_dtypes(const Properties& properties) {
  uint32_t bits = properties.dtypes == 0 ? all_dtypes() : properties.dtypes & all_dtypes();
  if ((properties.features & GRAFT_FEATURE_FLOAT64) == 0) {
    bits &= ~(1u << GRAFT_FLOAT64 | 1u << GRAFT_COMPLEX128);
  }
  return bits;
}

Properties read_properties(const Driver& driver, uint32_t ordinal) {
  FactsRoom<Properties> room;
  Properties& properties = room.facts;
  const std::string device = "device " + std::to_string(ordinal);
  const graft_status status =
      Driver::call_locked(driver.table().device_properties, ordinal, &properties);
  if (status != GRAFT_OK) driver.fail(status, "device_properties", device, {});
  properties.struct_size = sizeof(properties);
  make_readable(properties.name);
  make_readable(properties.vendor);
  make_readable(properties.dialect);
  if (properties.dtypes != 0) {
    const uint32_t known = properties.dtypes & all_dtypes();
    properties.dtypes = known == all_dtypes() ? 0 : known;
  }
  const std::string text = room.overrun() ? "more than struct_size bytes of properties"
                                          : wrong(properties, driver.table());
  if (!text.empty()) {
    throw Error(GRAFT_INVALID_ARGUMENT, device + " of driver '" + driver.name() + "' claims " +
                                            text + ", so Graft does not use it. Ask its vendor.");
  }
  return properties;
}

}  // namespace graft
