// src/runtime/driver/library.h: one loaded driver: its library, its name and its table of slots.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "graft/driver.h"
#include "graft/driver_table.h"
#include "runtime/driver/export.h"
#include "runtime/driver/slot_gate.h"

namespace graft {

// A driver, complete and checked. Immutable and thread-safe; its library is never unloaded, so
// that driver threads and kernels may outlive every object of ours.
class GRAFT_EXPORT Driver {
 public:
  // Loads a driver's library. Throws Error that says what is wrong and what to do when the path is
  // relative, names no file or no library, the library has no graft_driver_query, speaks another
  // major or a newer minor (both versions are named), leaves out a required slot, throws, or
  // answers with rubbish. GRAFT_DRIVER_TRACE puts a layer in front of it.
  static std::unique_ptr<Driver> load(const std::string& absolute_path);

  // As load, for a driver that is linked into the program; path appears in messages only.
  static std::unique_ptr<Driver> adopt(graft_driver_query_function query, const std::string& path);

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }

  // Every slot of this Graft; a slot that the driver left out is null.
  const graft_driver_table& table() const { return table_; }

  // Calls a slot. A C++ exception that leaves it becomes INTERNAL with its text as the message.
  // Once the devices are closed for good nothing is called: INVALID_ARGUMENT (slot_gate.h).
  // REQUIRES: slot is not null.
  template <class... Parameters, class... Arguments>
  static graft_status call(graft_status (*slot)(Parameters...), Arguments&&... arguments) noexcept {
    const SlotGate gate;
    if (!gate.passed()) return GRAFT_INVALID_ARGUMENT;
    return call_locked(slot, std::forward<Arguments>(arguments)...);
  }

  // The same without the gate; costs nothing beside the call. REQUIRES: the lock of a usable stream
  // is held, or the slot touches no open device.
  template <class... Parameters, class... Arguments>
  static graft_status call_locked(graft_status (*slot)(Parameters...),
                                  Arguments&&... arguments) noexcept {
    try {
      return slot(static_cast<Parameters>(arguments)...);
    } catch (...) {
      return caught();
    }
  }

  // Throws Error unless status is OK: the current op, what (a slot's name or a short phrase), the
  // driver's name, the status and the driver's last message. OpenDevice::check names the device
  // too.
  void check(graft_status status, std::string_view what) const {
    if (__builtin_expect(status != GRAFT_OK, 0)) fail(status, what, {}, current_op());
  }

  // What check throws; device is "graft:0" or empty, op may be empty.
  [[noreturn]] void fail(graft_status status, std::string_view what, std::string_view device,
                         std::string_view op) const;

  // The last message of the calling thread after a failed call, or the text of the status.
  std::string message(graft_status status) const;

  // What last_message says to the calling thread; "" if it says nothing.
  std::string last_words() const;

  // Graft's copy of an extension's table: every slot of this Graft, null where the driver's table
  // ends before it. Null if the driver lacks the extension or its table is refused, for which the
  // process prints one warning (graft/extensions.h). Asks the driver once; the copy lives as long
  // as this.
  template <class Table>
  const Table* extension() const {
    return reinterpret_cast<const Table*>(find_extension(table_facts<Table>).table.get());
  }

  // Why extension<Table>() is null: "its driver lacks graft.blas", or the refusal. REQUIRES: it is.
  template <class Table>
  std::string lack_of() const {
    const std::string& refusal = find_extension(table_facts<Table>).refusal;
    return refusal.empty() ? std::string("its driver lacks ") + table_facts<Table>.name : refusal;
  }

 private:
  struct Extension {
    std::unique_ptr<std::byte[]> table;  // null: the driver lacks it, or it is refused
    std::string refusal;
  };

  Driver(std::string path, const graft_driver_table& table);

  static std::unique_ptr<Driver> take(graft_driver_query_function query, const std::string& path,
                                      const std::string& trace);
  static graft_status caught() noexcept;
  static std::string current_op();
  const Extension& find_extension(const TableFacts& facts) const;
  std::string take_extension(const TableFacts& facts, Extension* out) const;

  std::string name_;
  std::string path_;
  graft_driver_table table_;
  mutable std::mutex mutex_;
  mutable std::map<std::string_view, Extension> extensions_;  // asked for; guarded by mutex_
};

}  // namespace graft
