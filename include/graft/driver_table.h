// include/graft/driver_table.h: what the lists of graft/driver.h and graft/extensions.h say of
// their tables, for programs in C++ that load or test drivers; optional, inline only.
//
// table_facts<graft_blas_table> has the extension's name and version and, for each slot, its name
// and whether a driver must fill it. A program asks a driver for a table and checks it so:
//
//   const graft::TableFacts& facts = graft::table_facts<graft_blas_table>;
//   const void* table = nullptr;
//   if (driver.extension(facts.name, facts.version, &table) == GRAFT_OK) {
//     const std::string fault = graft::fault_of(facts, table);
//     if (!fault.empty()) return refuse(facts.name, fault);
//   }
//
// A table of another release may have fewer or more slots than this header's struct: no slot past
// its slot_count may be read. A new slot or extension stands in the lists alone.
//
// All functions are thread-safe.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_TABLE_H_
#define GRAFT_DRIVER_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "graft/driver.h"
#include "graft/extensions.h"

// Two drivers of one process must not share this: each may be built with another release.
#pragma GCC visibility push(hidden)

namespace graft {

// One slot of a list.
struct SlotFacts {
  const char* name;  // as in the list
  bool required;     // a driver's table must have it
};

// A list's slots, in the table's order. Refers to the array, which outlives it; C++17 has no
// std::span.
class SlotList {
 public:
  template <size_t count>
  constexpr SlotList(const SlotFacts (&slots)[count]) : first_(slots), count_(count) {}

  constexpr size_t size() const { return count_; }
  constexpr const SlotFacts& operator[](size_t i) const { return first_[i]; }

 private:
  const SlotFacts* first_;
  size_t count_;
};

// One table. A slot's place in slots is its place in the table. The facts of a table never change
// while the program runs, and are the same in each of its files: lists of headers make them. Name
// and slots are static.
struct TableFacts {
  const char* name;  // for the slot extension; "" for graft_driver_table
  uint32_t version;  // for the slot extension; 0 for graft_driver_table
  SlotList slots;
};

// The facts of a table's type: graft_driver_table or graft_NAME_table of extensions.h.
template <class Table>
extern const TableFacts table_facts;

// Each entry of a list becomes one SlotFacts; REQUIRED and OPTIONAL become true and false.
#define GRAFT_IS_REQUIRED true
#define GRAFT_IS_OPTIONAL false
#define GRAFT_SLOT_FACTS(presence, name, parameters) {#name, GRAFT_IS_##presence},
#define GRAFT_TABLE_FACTS(table, name, version, SLOTS)                    \
  inline constexpr SlotFacts table##_slots[] = {SLOTS(GRAFT_SLOT_FACTS)}; \
  template <>                                                             \
  inline constexpr TableFacts table_facts<graft_##table##_table> = {name, version, table##_slots};
#define GRAFT_EXTENSION_FACTS(name, version, SLOTS) \
  GRAFT_TABLE_FACTS(name, "graft." #name, version, SLOTS)
GRAFT_TABLE_FACTS(driver, "", 0, GRAFT_DRIVER_SLOTS)
GRAFT_EXTENSIONS(GRAFT_EXTENSION_FACTS)
#undef GRAFT_EXTENSION_FACTS
#undef GRAFT_TABLE_FACTS
#undef GRAFT_SLOT_FACTS

// The names of the required slots that are NULL or not among the table's first count, separated by
// ", "; "" if there are none.
// first: the address of the table's first slot, after the prelude. Reads count slots at most.
inline std::string missing_slots(const SlotList& slots, const void* first, uint32_t count) {
  std::string missing;
  for (size_t i = 0; i < slots.size(); ++i) {
    void (*slot)() = nullptr;
    const char* at = static_cast<const char*>(first) + i * sizeof slot;
    if (i < count) std::memcpy(&slot, at, sizeof slot);
    if (slot == nullptr && slots[i].required) {
      missing += (missing.empty() ? "" : ", ") + std::string(slots[i].name);
    }
  }
  return missing;
}

// What is wrong with a driver's table of an extension, for "the driver ...: <fault>"; "" if Graft
// takes the table. Reads the prelude and at most the slots that both sides know.
inline std::string fault_of(const TableFacts& facts, const void* table) {
  if (table == nullptr) return "extension returned OK and no table";
  if (reinterpret_cast<uintptr_t>(table) % alignof(void*) != 0) {
    return "the address of its table is not aligned to 8 bytes";
  }
  const uint32_t count = *static_cast<const uint32_t*>(table);
  if (count > GRAFT_MAX_EXTENSION_SLOTS) {
    return "its table claims " + std::to_string(count) + " slots, more than " +
           std::to_string(GRAFT_MAX_EXTENSION_SLOTS);
  }
  const char* const first = static_cast<const char*>(table) + GRAFT_EXTENSION_PRELUDE_BYTES;
  const std::string missing = missing_slots(facts.slots, first, count);
  if (missing.empty()) return "";
  return "its table of " + std::to_string(count) + " slots lacks required slots: " + missing;
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_TABLE_H_
