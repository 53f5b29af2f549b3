// drivers/host/device.cpp: the simulated devices and their memory.
#include "device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <unordered_map>

#include "graft/driver_slot.h"
#include "kernel/processor.h"
#include "memory/arena.h"
#include "settings.h"
#include "simulation/simulation.h"
#include "stream/fault.h"

namespace graft::host {
namespace {

// Bytes of each block of pinned memory.
struct PinnedBlocks {
  std::mutex mutex;
  std::unordered_map<void*, uint64_t> bytes;  // guarded by mutex
};

PinnedBlocks& pinned_blocks() {
  static PinnedBlocks* instance = new PinnedBlocks;
  return *instance;
}

void describe(uint32_t ordinal, graft_device_properties* p) {
  p->device_class = GRAFT_CPU_LIKE;
  p->features = GRAFT_FEATURE_FLOAT64 | GRAFT_FEATURE_INT64_ATOMICS | GRAFT_FEATURE_SIMULATED;
  p->compute_units = settings().threads;
  p->max_group_size = 1;
  p->sub_group_size = vector_width();
  p->memory_bytes = settings().memory_bytes;
  p->allocation_alignment = 4096;
  p->map_granularity = Arena::kMapUnit;
  p->priority_lowest = 1;
  p->priority_highest = -1;
  std::string name = processor_line("model name");
  copy_text(name.empty() ? "CPU" : name, p->name, sizeof p->name);
  if (settings().devices > 1) {
    name += " (virtual device " + std::to_string(ordinal) + ")";
    copy_text(name, p->name, sizeof p->name);
  }
  copy_text("Graft", p->vendor, sizeof p->vendor);
  copy_text("c", p->dialect, sizeof p->dialect);
}

// No number of the hardware's own: the machine's, as Linux keeps it, and the device's ordinal.
void make_uuid(uint32_t ordinal, uint8_t (&uuid)[16]) {
  std::string seed;
  std::ifstream("/etc/machine-id") >> seed;
  seed += "graft host " + std::to_string(ordinal);
  uint64_t halves[2] = {0xcbf29ce484222325ull, 0x84222325cbf29ce4ull};
  for (uint64_t& half : halves) {
    for (const char letter : seed) half = (half ^ uint8_t(letter)) * 0x100000001b3ull;
  }
  std::memcpy(uuid, halves, sizeof uuid);
}

}  // namespace

graft_status check_device(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "no device given");
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) {
    return fail(GRAFT_DEVICE_LOST,
                "this process was forked after the device was used: use the start method 'spawn'");
  }
  if (device->lost.load(std::memory_order_relaxed)) {
    return fail(GRAFT_DEVICE_LOST, "simulated device " + std::to_string(device->ordinal) +
                                       " is lost (GRAFT_HOST_FAULTS)");
  }
  return GRAFT_OK;
}

graft_status DeviceSlots::device_count(uint32_t* out_count) {
  if (out_count == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_count: no out pointer given");
  *out_count = settings().devices;
  return GRAFT_OK;
}

graft_status DeviceSlots::device_properties(uint32_t ordinal, graft_device_properties* properties) {
  if (properties == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_properties: no out pointer given");
  if (ordinal >= settings().devices) {
    return fail(GRAFT_NOT_FOUND, "host device " + std::to_string(ordinal) + " of " +
                                     std::to_string(settings().devices) +
                                     " does not exist: raise GRAFT_HOST_DEVICES");
  }
  graft_device_properties mine = {};
  describe(ordinal, &mine);
  mine.struct_size = properties->struct_size;
  std::memcpy(properties, &mine, std::min<size_t>(properties->struct_size, sizeof mine));
  return GRAFT_OK;
}

graft_status DeviceSlots::device_identity(uint32_t ordinal, graft_device_identity* identity) {
  if (identity == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_identity: no out pointer given");
  if (ordinal >= settings().devices)
    return fail(GRAFT_NOT_FOUND, "device_identity: no device " + std::to_string(ordinal));
  graft_device_identity mine = {};
  mine.struct_size = identity->struct_size;
  mine.known = GRAFT_IDENTITY_UUID;
  make_uuid(ordinal, mine.uuid);
  copy_text(GRAFT_HOST_VERSION, mine.driver_version, sizeof mine.driver_version);
  copy_text(processor_line("microcode"), mine.firmware_version, sizeof mine.firmware_version);
  std::memcpy(identity, &mine, std::min<size_t>(identity->struct_size, sizeof mine));
  return GRAFT_OK;
}

graft_status DeviceSlots::device_open(uint32_t ordinal, graft_device* out_device) {
  if (out_device == nullptr)
    return fail(GRAFT_INVALID_ARGUMENT, "device_open: no out pointer given");
  if (ordinal >= settings().devices)
    return fail(GRAFT_NOT_FOUND,
                "device_open: the device does not exist: raise GRAFT_HOST_DEVICES");
  if (!simulation().problem.empty()) return fail(GRAFT_INVALID_ARGUMENT, simulation().problem);
  if (const std::string problem = level_problem(); !problem.empty()) {
    return fail(GRAFT_INVALID_ARGUMENT, problem);
  }
  Arena* arena = Arena::get();
  if (arena == nullptr) return GRAFT_OUT_OF_MEMORY;
  watch_detours();
  *out_device = new graft_device_s{ordinal, arena};
  return GRAFT_OK;
}

graft_status DeviceSlots::device_close(graft_device device) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "device_close: no device given");
  delete device;
  return GRAFT_OK;
}

// A loss ends with the handle; what is left is the memory that nobody gave back.
graft_status DeviceSlots::device_reset(uint32_t ordinal) {
  if (ordinal >= settings().devices)
    return fail(GRAFT_NOT_FOUND, "device_reset: no device " + std::to_string(ordinal));
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) {
    return fail(GRAFT_DEVICE_LOST,
                "device_reset: this process was forked after the device was used");
  }
  if (Arena* const arena = Arena::get()) arena->free_all(ordinal);
  return GRAFT_OK;
}

graft_status DeviceSlots::device_link(uint32_t from, uint32_t to, graft_device_link* link) {
  if (link == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "device_link: no out pointer given");
  if (std::max(from, to) >= settings().devices) {
    return fail(GRAFT_NOT_FOUND, "device_link: no device " + std::to_string(std::max(from, to)));
  }
  graft_device_link mine = {};
  mine.struct_size = link->struct_size;
  mine.kind = GRAFT_LINK_SHARED;
  if (simulation().on && from != to) {
    mine.kind = GRAFT_LINK_DIRECT;
    mine.bytes_per_second = uint64_t(simulation().link.bytes_per_second);
  }
  std::memcpy(link, &mine, std::min<size_t>(link->struct_size, sizeof mine));
  return GRAFT_OK;
}

graft_status DeviceSlots::memory_allocate(graft_device device, uint64_t bytes, graft_address* out) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == 0 || out == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_allocate: 0 bytes or no out pointer given");
  }
  if (strikes(Fault::kAllocate)) return fail(GRAFT_OUT_OF_MEMORY, "planted by GRAFT_HOST_FAULTS");
  return device->arena->allocate(device->ordinal, bytes, out);
}

graft_status DeviceSlots::memory_free(graft_device device, graft_address address) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_free: no device given");
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) return GRAFT_OK;
  return device->arena->free(device->ordinal, address);
}

graft_status DeviceSlots::memory_info(graft_device device, uint64_t* out_free,
                                      uint64_t* out_total) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  *out_total = settings().memory_bytes;
  *out_free = *out_total - device->arena->held(device->ordinal);
  return GRAFT_OK;
}

graft_status DeviceSlots::memory_host_view(graft_device device, graft_address address,
                                           uint64_t bytes, void** out_pointer) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  Arena::Known known;
  if (!device->arena->owns(device->ordinal, address, bytes, &known)) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_host_view: the range is not inside one allocation");
  }
  device->arena->translate(address, out_pointer);
  return GRAFT_OK;
}

graft_status DeviceSlots::host_allocate(graft_device device, uint64_t bytes, void** out_pointer) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == 0 || out_pointer == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "host_allocate: 0 bytes or no out pointer given");
  }
  void* pointer = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointer == MAP_FAILED) return fail(GRAFT_OUT_OF_MEMORY, "no host memory left to pin");
  PinnedBlocks& blocks = pinned_blocks();
  std::lock_guard lock(blocks.mutex);
  blocks.bytes[pointer] = bytes;
  *out_pointer = pointer;
  return GRAFT_OK;
}

graft_status DeviceSlots::host_free(graft_device device, void* pointer) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "host_free: no device given");
  PinnedBlocks& blocks = pinned_blocks();
  std::lock_guard lock(blocks.mutex);
  auto found = blocks.bytes.find(pointer);
  if (found == blocks.bytes.end()) {
    return fail(GRAFT_INVALID_ARGUMENT, "host_free: the pointer is not from host_allocate");
  }
  munmap(pointer, found->second);
  blocks.bytes.erase(found);
  return GRAFT_OK;
}

}  // namespace graft::host
