// include/graft/driver_slot.h: error texts, exception guards and tables for the slots of a driver
// written in C++; optional, inline only.
//
// The ABI, graft/driver.h, is C and does not need this header, which saves drivers in C++ repeated
// lines. A slot reports a failure as
//
//   return graft::fail(GRAFT_INVALID_ARGUMENT, "what was given, what was expected, what to do");
//
// The driver's slots are static functions of a struct, which may have bases in several files. The
// table takes each slot that the struct has, so guarded that no exception crosses the boundary:
//
//   struct Slots {
//     static graft_status device_count(uint32_t* out_count);
//     ...
//   };
//   constexpr auto kBlas = graft::extension_of<graft_blas_table, LibrarySlots>();
//   graft_status Slots::extension(const char* name, uint32_t version, const void** out_table) {
//     return graft::find_extension(name, version, out_table, kBlas);
//   }
//
//   constexpr graft_driver_table kTable = graft::table_of<Slots>("acme");
//   graft_status graft_driver_query(graft_driver_table* table) {
//     return graft_driver_fill(table, &kTable);
//   }
//
// A slot that a setting switches off becomes NULL in a copy of the table before the copy is given.
//
// All functions are thread-safe: each thread has its own text.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_SLOT_H_
#define GRAFT_DRIVER_SLOT_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "graft/driver.h"
#include "graft/driver_table.h"
#include "graft/extensions.h"

// Two drivers of one process must not share the texts.
#pragma GCC visibility push(hidden)

namespace graft {

// The text of the calling thread's last failure, "" if it never failed. Valid until the thread
// fails again or ends.
inline std::string& last_text() {
  thread_local std::string text;
  return text;
}

// Keeps text for last_message and returns status. Throws nothing; the caller's copy of text may
// throw std::bad_alloc.
inline graft_status fail(graft_status status, std::string text) {
  last_text() = std::move(text);
  return status;
}

// Copies text to the caller's buffer, cut to capacity and ended by a zero byte.
inline void copy_text(const std::string& text, char* out, size_t capacity) {
  if (out == nullptr || capacity == 0) return;
  size_t bytes = std::min(capacity - 1, text.size());
  std::memcpy(out, text.data(), bytes);
  out[bytes] = '\0';
}

// The slot last_message: fills in the calling thread's text.
inline graft_status last_message(char* out_text, size_t capacity) {
  copy_text(last_text(), out_text, capacity);
  return GRAFT_OK;
}

// slot: a function, or a static function of a struct.
// Guarded<&slot>::call goes into a table. It returns the slot's status, OUT_OF_MEMORY if the slot
// threw std::bad_alloc, INTERNAL with the exception's text if it threw another std::exception.
template <auto slot>
struct Guarded;

template <class... Arguments, graft_status (*slot)(Arguments...)>
struct Guarded<slot> {
  static graft_status call(Arguments... arguments) {
    try {
      return slot(arguments...);
    } catch (const std::bad_alloc&) {
      return fail(GRAFT_OUT_OF_MEMORY, "no host memory left");
    } catch (const std::exception& error) {
      return fail(GRAFT_INTERNAL, error.what());
    }
  }
};

// take_slots<Slots>(table) sets the slots of table that Slots has, guarded. It does not compile if
// Slots lacks a required slot, or if a function has other parameters than its slot. An optional
// slot whose function is misspelt, private or overloaded counts as missing: graft-driver-check
// lists those as "omits NAME". The question is a lambda's return type, because C++17 has no
// requires.
#define GRAFT_TAKE_SLOT(presence, slot, parameters)                                              \
  {                                                                                              \
    constexpr auto ask = [](auto* slots) -> decltype(static_cast<void>(                          \
                                             &std::remove_pointer_t<decltype(slots)>::slot)) {}; \
    constexpr bool has = std::is_invocable_v<decltype(ask), Slots*>;                             \
    static_assert(!GRAFT_IS_##presence || has, "the driver lacks the required slot " #slot);     \
    if constexpr (has) table.slot = &Guarded<&Slots::slot>::call;                                \
  }
#define GRAFT_TAKE_SLOTS(name, version, SLOTS)             \
  template <class Slots>                                   \
  constexpr void take_slots(graft_##name##_table& table) { \
    SLOTS(GRAFT_TAKE_SLOT)                                 \
  }
GRAFT_TAKE_SLOTS(driver, 0, GRAFT_DRIVER_SLOTS)
GRAFT_EXTENSIONS(GRAFT_TAKE_SLOTS)
#undef GRAFT_TAKE_SLOTS
#undef GRAFT_TAKE_SLOT

// A driver's own table, for graft_driver_fill. last_message is the one above if Slots has none.
// name: as in graft_driver_table; it lives as long as the driver.
template <class Slots>
constexpr graft_driver_table table_of(const char* name) {
  graft_driver_table table = {};
  table.abi_major = GRAFT_ABI_MAJOR;
  table.abi_minor = GRAFT_ABI_MINOR;
  table.slot_count = GRAFT_SLOT_COUNT;
  table.name = name;
  table.last_message = &Guarded<&last_message>::call;
  take_slots<Slots>(table);
  return table;
}

// A table of an extension: extension_of<graft_blas_table, Slots>(). Slots may be the same struct as
// table_of's. A driver that offers the extension on some machines only makes the table on all, and
// its slot extension decides.
template <class Table, class Slots>
constexpr Table extension_of() {
  Table table = {};
  table.slot_count = static_cast<uint32_t>(table_facts<Table>.slots.size());
  take_slots<Slots>(table);
  return table;
}

// The slot extension of a driver with these tables, which live as long as the driver: writes the
// address of the one that has the name and version. NOT_FOUND if none has; INVALID_ARGUMENT if name
// or out_table is null.
template <class... Tables>
graft_status find_extension(const char* name, uint32_t version, const void** out_table,
                            const Tables&... tables) {
  if (name == nullptr || out_table == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "extension: no name or no out pointer given");
  }
  const auto is_wanted = [&](const auto& table) {
    const TableFacts& facts = table_facts<std::decay_t<decltype(table)>>;
    if (version != facts.version || std::string_view(name) != facts.name) return false;
    *out_table = &table;
    return true;
  };
  if ((is_wanted(tables) || ...)) return GRAFT_OK;
  return fail(GRAFT_NOT_FOUND, "the driver has no extension " + std::string(name) + ", version " +
                                   std::to_string(version));
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_SLOT_H_
