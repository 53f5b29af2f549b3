// src/runtime/memory/shared_memory.h: device memory that processes let one another use, without a
// copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/ipc_refcounts.h"

namespace graft {

class DeviceStreams;
class OpenDevice;

// What a message to another process holds in place of a block's bytes. Plain data, for processes of
// one Graft on one machine.
struct MemoryHandle {
  uint32_t version = 1;
  uint32_t row = 0;
  IpcRefcounts::Place place;
  uint64_t ticket = 0;
  // Up to here it is the block's name: equal in all handles of one block while it is in use.
  uint64_t offset = 0;  // of the block in the driver's allocation
  uint64_t bytes = 0;   // as the sender said
  uint32_t ordinal = 0;
  char driver[36] = {};
  uint8_t memory[GRAFT_MEMORY_HANDLE_BYTES] = {};

  static constexpr size_t kNameBytes = 32;
};
static_assert(std::is_trivially_copyable_v<MemoryHandle>);
static_assert(offsetof(MemoryHandle, offset) == MemoryHandle::kNameBytes);

// Memory that came by a handle: of another process, or of this one, where a block came home.
struct ReceivedBlock {
  DeviceStreams* on = nullptr;
  graft_address address = 0;
  MemoryHandle handle;
  Block* own = nullptr;  // the block that came home
};

// One per process: shared_memory(). Thread-safe. A block that was sent is not used again before its
// holder freed it, its messages were read and the processes that read them are done with it or
// dead. A message that nobody reads keeps its block until this process ends. In a forked child
// nothing is freed, as everywhere.
class GRAFT_EXPORT SharedMemory {
 public:
  // Whether the device's driver lets other processes use its memory.
  static bool possible(const OpenDevice& device);

  // A handle for one reader, who finds the device's commands so far done: this call waits for
  // them, and what failed stays with their streams. None where the driver offers no handles or
  // IpcRefcounts::kRows blocks are under way. Throws Error. REQUIRES: block is held.
  std::optional<MemoryHandle> send(Block& block, uint64_t bytes);
  std::optional<MemoryHandle> send(const ReceivedBlock& block, uint64_t bytes);  // passes it on

  // Whether another process may use the block. REQUIRES: block is held.
  bool was_sent(Block& block);

  // In place of Allocator::free: takes a block back, at once or when the readers are done.
  void free(Block* block) noexcept;

  // Reads a message; release gives back what it returns. Throws Error NOT_FOUND when the sender has
  // ended or the memory is gone, and the driver's. REQUIRES: on is of the device that handle names.
  ReceivedBlock* receive(DeviceStreams& on, const MemoryHandle& handle);
  // Reads a further message of memory that this process already holds.
  void receive_again(const MemoryHandle& handle);
  // Waits for the device's commands; where that wait ends early, the memory stays mapped. No other
  // thread uses the block.
  void release(ReceivedBlock* block) noexcept;

  // Takes back every freed block whose readers are done; how many there were.
  size_t collect() noexcept;

  // For the end of the process: unmaps other processes' memory of the device, or returns false
  // where another process may still use memory of this one. REQUIRES: no command is left.
  bool close(OpenDevice& device) noexcept;

  // Blocks that were sent and not taken back, freed or not.
  size_t sent() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Sent {
    Block* block = nullptr;
    MemoryHandle handle;
    uint32_t holders = 1;  // in this process; 0 once it is free
    bool waits = false;    // stands in waiting_
  };
  struct Peer {  // another process
    std::unique_ptr<IpcRefcounts> ledger;
    std::unordered_map<uint32_t, uint32_t> held;  // how often, by row
  };
  struct Mapping {
    graft_address begin = 0;
    uint32_t uses = 0;
  };
  using MappingKey = std::pair<int, std::string>;  // the device's index and the driver's handle

  // REQUIRES for all below: mutex_ is held.
  Sent* enter(Block& block);
  Sent* find_own(const MemoryHandle& handle);
  void reap(size_t tries, std::vector<Block*>* out_free);
  Peer& hold(const MemoryHandle& handle);
  void let_go(const MemoryHandle& handle) noexcept;
  graft_address map(OpenDevice& device, const MemoryHandle& handle);

  size_t free_unused(size_t tries) noexcept;

  std::atomic<size_t> count_{0};  // of sent_
  std::mutex mutex_;              // guards what follows
  std::unique_ptr<IpcRefcounts> own_;
  uint64_t tickets_ = 0;
  uint32_t rows_ = 0;  // ever used
  std::vector<uint32_t> spare_rows_;
  std::unordered_map<Block*, Sent> sent_;
  std::unordered_map<uint32_t, Block*> by_row_;
  std::deque<Block*> waiting_;      // freed, but in use elsewhere; some came home since
  std::map<uint64_t, Peer> peers_;  // by the identity of their ledger
  std::map<MappingKey, Mapping> mappings_;
};

GRAFT_EXPORT SharedMemory& shared_memory();

}  // namespace graft
