// src/runtime/memory/shared_memory.cpp: device memory that processes let one another use, without a
// copy.
#include "runtime/memory/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "runtime/driver/error.h"
#include "runtime/driver/fork.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/device_streams.h"
#include "runtime/stream/stream.h"
#include "runtime/stream/write_epochs.h"

namespace graft {
namespace {

constexpr size_t kFew = 16;  // blocks that a send or a free looks at beside its own

[[noreturn]] void refuse_gone(const MemoryHandle& handle) {
  throw Error(GRAFT_NOT_FOUND,
              "The memory of a tensor that process " + std::to_string(handle.place.process) +
                  " sent is gone: its message was read before. Send the tensor once "
                  "for each receiving process.");
}

std::string driver_of(const MemoryHandle& handle) {
  return {handle.driver, ::strnlen(handle.driver, sizeof handle.driver)};
}

std::string memory_of(const MemoryHandle& handle) {
  return {reinterpret_cast<const char*>(handle.memory), sizeof handle.memory};
}

}  // namespace

SharedMemory& shared_memory() {
  static auto* memory = new SharedMemory;  // storages outlive static objects
  return *memory;
}

bool SharedMemory::possible(const OpenDevice& device) {
  const graft_driver_table& table = device.driver().table();
  return table.memory_export != nullptr && table.memory_import != nullptr &&
         table.memory_release != nullptr;
}

std::optional<MemoryHandle> SharedMemory::send(Block& block, uint64_t bytes) {
  OpenDevice& device = block.stream->device();
  device.refuse_unusable();
  if (!possible(device)) return std::nullopt;
  block.stream->siblings().settle_or_throw();
  free_unused(kFew);
  const std::lock_guard lock(mutex_);
  const auto found = sent_.find(&block);
  Sent* entry = found == sent_.end() ? enter(block) : &found->second;
  if (entry == nullptr) return std::nullopt;
  if (writes_are_watched()) distrust(device, block.address);
  own_->add_message(entry->handle.row);
  MemoryHandle handle = entry->handle;
  handle.bytes = bytes;
  return handle;
}

std::optional<MemoryHandle> SharedMemory::send(const ReceivedBlock& block, uint64_t bytes) {
  if (block.own != nullptr) return send(*block.own, bytes);
  block.on->device().refuse_unusable();
  block.on->settle_or_throw();
  const std::lock_guard lock(mutex_);
  peers_.at(block.handle.place.identity).ledger->add_message(block.handle.row);
  MemoryHandle handle = block.handle;
  handle.bytes = bytes;
  return handle;
}

bool SharedMemory::was_sent(Block& block) {
  if (sent() == 0) return false;
  const std::lock_guard lock(mutex_);
  return sent_.contains(&block);
}

SharedMemory::Sent* SharedMemory::enter(Block& block) {
  OpenDevice& device = block.stream->device();
  if (spare_rows_.empty() && rows_ == IpcRefcounts::kRows) return nullptr;
  MemoryHandle handle;
  graft_address begin = 0;
  const graft_status status = Driver::call(device.driver().table().memory_export, device.handle(),
                                           block.address, handle.memory, &begin);
  if (status == GRAFT_UNSUPPORTED) return nullptr;
  device.check(status, "memory_export");
  if (own_ == nullptr) own_ = std::make_unique<IpcRefcounts>();
  handle.place = own_->place();
  handle.ticket = ++tickets_;
  handle.offset = block.address - begin;
  handle.ordinal = device.ordinal();
  device.driver().name().copy(handle.driver, sizeof handle.driver - 1);
  if (spare_rows_.empty()) spare_rows_.push_back(rows_++);
  handle.row = spare_rows_.back();
  Sent& entry = sent_[&block];
  by_row_[handle.row] = &block;
  spare_rows_.pop_back();
  entry.block = &block;
  entry.handle = handle;
  own_->open(handle.row, handle.ticket);
  count_.store(sent_.size(), std::memory_order_relaxed);
  return &entry;
}

void SharedMemory::free(Block* block) noexcept {
  if (forked_child()) return;
  if (sent() != 0) {
    const std::lock_guard lock(mutex_);
    const auto found = sent_.find(block);
    if (found != sent_.end()) {
      Sent& entry = found->second;
      if (--entry.holders == 0 && !std::exchange(entry.waits, true)) waiting_.push_front(block);
      block = nullptr;
    }
  }
  if (block != nullptr) return block->stream->allocator().free(block);
  free_unused(kFew);
}

void SharedMemory::reap(size_t tries, std::vector<Block*>* out_free) {
  for (size_t left = std::min(tries, waiting_.size()); left > 0; --left) {
    Block* block = waiting_.front();
    waiting_.pop_front();
    const auto found = sent_.find(block);
    Sent& entry = found->second;
    const uint32_t row = entry.handle.row;
    entry.waits = entry.holders == 0 && !own_->close(row);
    if (entry.waits) waiting_.push_back(block);
    if (entry.waits || entry.holders != 0) continue;
    by_row_.erase(row);
    spare_rows_.push_back(row);
    sent_.erase(found);
    out_free->push_back(block);
  }
  count_.store(sent_.size(), std::memory_order_relaxed);
}

size_t SharedMemory::free_unused(size_t tries) noexcept {
  if (sent() == 0 || forked_child()) return 0;
  std::vector<Block*> unused;
  {
    const std::lock_guard lock(mutex_);
    reap(tries, &unused);
  }
  // Without the lock: an allocator may ask Python for a stack.
  for (Block* block : unused) block->stream->allocator().free(block);
  return unused.size();
}

size_t SharedMemory::collect() noexcept { return free_unused(IpcRefcounts::kRows); }

SharedMemory::Sent* SharedMemory::find_own(const MemoryHandle& handle) {
  const auto found = by_row_.find(handle.row);
  if (found == by_row_.end()) return nullptr;
  Sent& entry = sent_.at(found->second);
  return entry.handle.ticket == handle.ticket ? &entry : nullptr;
}

ReceivedBlock* SharedMemory::receive(DeviceStreams& on, const MemoryHandle& handle) {
  OpenDevice& device = on.device();
  device.refuse_unusable();
  if (handle.version != MemoryHandle().version || driver_of(handle) != device.driver().name() ||
      handle.ordinal != device.ordinal()) {
    throw Error(GRAFT_INVALID_ARGUMENT, "A tensor of device " + std::to_string(handle.ordinal) +
                                            " of the driver '" + driver_of(handle) +
                                            "' cannot be received on " + device.label() +
                                            ": receive it on a device of that driver and number.");
  }
  auto received = std::make_unique<ReceivedBlock>();
  received->on = &on;
  received->handle = handle;
  const std::lock_guard lock(mutex_);
  if (own_ != nullptr && handle.place == own_->place()) {
    Sent* entry = find_own(handle);
    if (entry == nullptr || !own_->take_message(handle.row, handle.ticket)) refuse_gone(handle);
    ++entry->holders;
    received->own = entry->block;
    received->address = entry->block->address;
    return received.release();
  }
  hold(handle);
  try {
    received->address = map(device, handle) + handle.offset;
  } catch (...) {
    let_go(handle);
    throw;
  }
  return received.release();
}

SharedMemory::Peer& SharedMemory::hold(const MemoryHandle& handle) {
  const uint64_t identity = handle.place.identity;
  auto found = peers_.find(identity);
  if (found == peers_.end()) {
    auto ledger = std::make_unique<IpcRefcounts>(handle.place);
    found = peers_.try_emplace(identity).first;
    found->second.ledger = std::move(ledger);
  }
  Peer& peer = found->second;
  const bool held = peer.held.contains(handle.row);
  bool taken = false;
  try {
    taken = held ? peer.ledger->take_message(handle.row, handle.ticket)
                 : peer.ledger->hold(handle.row, handle.ticket);
  } catch (...) {
    if (peer.held.empty()) peers_.erase(found);
    throw;
  }
  if (!taken) {
    if (peer.held.empty()) peers_.erase(found);
    refuse_gone(handle);
  }
  ++peer.held[handle.row];
  return peer;
}

void SharedMemory::let_go(const MemoryHandle& handle) noexcept {
  const auto found = peers_.find(handle.place.identity);
  Peer& peer = found->second;
  const auto row = peer.held.find(handle.row);
  if (--row->second != 0) return;
  peer.ledger->let_go(handle.row);
  peer.held.erase(row);
  if (peer.held.empty()) peers_.erase(found);
}

graft_address SharedMemory::map(OpenDevice& device, const MemoryHandle& handle) {
  Mapping& mapping = mappings_[{device.index(), memory_of(handle)}];
  if (mapping.uses == 0) {
    const graft_status status = Driver::call(device.driver().table().memory_import, device.handle(),
                                             handle.memory, &mapping.begin);
    if (status != GRAFT_OK) {
      mappings_.erase({device.index(), memory_of(handle)});
      device.check(status, "memory_import");
    }
  }
  ++mapping.uses;
  return mapping.begin;
}

void SharedMemory::receive_again(const MemoryHandle& handle) {
  refuse_forked_child();
  const std::lock_guard lock(mutex_);
  if (own_ != nullptr && handle.place == own_->place()) {
    own_->take_message(handle.row, handle.ticket);
    return;
  }
  const auto found = peers_.find(handle.place.identity);
  if (found == peers_.end() || !found->second.held.contains(handle.row)) refuse_gone(handle);
  found->second.ledger->take_message(handle.row, handle.ticket);
}

void SharedMemory::release(ReceivedBlock* block) noexcept {
  const std::unique_ptr<ReceivedBlock> received(block);
  if (forked_child() || !received->on->settle()) return;
  if (received->own != nullptr) return free(received->own);
  OpenDevice& device = received->on->device();
  const std::lock_guard lock(mutex_);
  const auto mapping = mappings_.find({device.index(), memory_of(received->handle)});
  if (--mapping->second.uses == 0) {
    Driver::call(device.driver().table().memory_release, device.handle(), mapping->second.begin);
    mappings_.erase(mapping);
  }
  let_go(received->handle);
}

bool SharedMemory::close(OpenDevice& device) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(sent_, [&](const auto& one) {
    const uint32_t row = one.second.handle.row;
    if (&one.first->stream->device() != &device || !own_->close(row)) return false;
    by_row_.erase(row);
    std::erase(waiting_, one.first);
    return true;
  });
  count_.store(sent_.size(), std::memory_order_relaxed);
  for (const auto& [block, entry] : sent_) {
    if (&block->stream->device() == &device) return false;
  }
  for (const auto& [key, mapping] : mappings_) {
    if (key.first != device.index()) continue;
    Driver::call(device.driver().table().memory_release, device.handle(), mapping.begin);
  }
  return true;
}

}  // namespace graft
