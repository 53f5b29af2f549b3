// src/runtime/memory/ipc_refcounts.h: who else uses the memory of a process, kept where all of them
// see it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/driver/export.h"

namespace graft {

// Rows for the pieces of memory that a process, the owner, sends to others. A row counts the
// messages that nobody has read yet, and carries a lock for each process that holds the piece. The
// kernel drops the locks of a process that dies, so that no death leaves a piece held. Not
// thread-safe.
class GRAFT_EXPORT IpcRefcounts {
 public:
  static constexpr uint32_t kRows = 65536;

  // How another process of this machine finds a ledger; good for as long as the owner lives.
  struct Place {
    int32_t process = 0;
    int32_t file = 0;  // the owner's descriptor
    uint64_t identity = 0;
    bool operator==(const Place&) const = default;
  };

  // The owner's own. Throws Error IO.
  IpcRefcounts();
  // That of another process. Throws Error NOT_FOUND when the process has ended.
  explicit IpcRefcounts(const Place& place);
  ~IpcRefcounts();
  IpcRefcounts(const IpcRefcounts&) = delete;
  IpcRefcounts& operator=(const IpcRefcounts&) = delete;

  const Place& place() const { return place_; }

  // For the owner. A row begins without messages, under a ticket that no row had before.
  void open(uint32_t row, uint64_t ticket);
  // Ends a row; false while a message is unread or another process holds it.
  bool close(uint32_t row);

  // For the owner and for a process that holds the row: one more message about it is on its way.
  void add_message(uint32_t row);
  // One of them was read. False when the row has another ticket now: the piece is gone.
  bool take_message(uint32_t row, uint64_t ticket);

  // For others: as take_message, and holds the row from then on. Does not count: one let_go ends
  // what any number of holds of this process began. Throws Error IO when the file cannot be locked.
  bool hold(uint32_t row, uint64_t ticket);
  void let_go(uint32_t row) noexcept;

 private:
  struct Page;

  void map();
  bool lock(uint32_t row, int kind, bool wait) noexcept;

  Place place_;
  int file_ = -1;
  Page* page_ = nullptr;
};

}  // namespace graft
