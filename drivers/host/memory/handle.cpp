// drivers/host/memory/handle.cpp: device memory that another process maps.
#include "handle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "arena.h"
#include "device.h"
#include "graft/driver_slot.h"
#include "stream/fault.h"

namespace graft::host {
namespace {

constexpr uint64_t kMark = 0x31656c646e616867;  // "ghandle1"

// A piece of a process's memory file. The file's own numbers tell it from another one that a later
// process with the same number has under the same descriptor.
struct Handle {
  uint64_t mark;
  int32_t process;
  int32_t file;
  uint64_t disk, node;  // st_dev and st_ino
  uint64_t offset, bytes;
  uint32_t ordinal;
  uint32_t unused;
};
static_assert(sizeof(Handle) <= GRAFT_MEMORY_HANDLE_BYTES);

bool is_file_of(const Handle& handle, const struct stat& found) {
  return S_ISREG(found.st_mode) && uint64_t(found.st_dev) == handle.disk &&
         uint64_t(found.st_ino) == handle.node && handle.offset <= uint64_t(found.st_size) &&
         handle.bytes <= uint64_t(found.st_size) - handle.offset;
}

// Opens the exporter's memory file; -1, with a message, when that cannot be done.
int open_file(const Handle& handle) {
  const std::string process = std::to_string(handle.process);
  const std::string path = "/proc/" + process + "/fd/" + std::to_string(handle.file);
  const std::string gone =
      "memory_import: process " + process + ", which exported the memory, has ended";
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) {
    fail(GRAFT_NOT_FOUND,
         errno == ENOENT ? gone : "memory_import: " + path + ": " + std::string(strerror(errno)));
    return -1;
  }
  if (!is_file_of(handle, found)) {
    fail(GRAFT_NOT_FOUND, gone);
    return -1;
  }
  int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file >= 0 && fstat(file, &found) == 0 && is_file_of(handle, found)) return file;
  fail(GRAFT_NOT_FOUND,
       file >= 0 ? gone : "memory_import: " + path + ": " + std::string(strerror(errno)));
  if (file >= 0) ::close(file);
  return -1;
}

}  // namespace

graft_status HandleSlots::memory_export(graft_device device, graft_address address,
                                        uint8_t* out_handle, graft_address* out_begin) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (out_handle == nullptr || out_begin == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_export: no out pointer given");
  }
  Arena::Piece piece = {};
  graft_address begin = 0;
  graft_status status = device->arena->piece(device->ordinal, address, &piece, &begin);
  if (status != GRAFT_OK) return status;
  struct stat file = {};
  if (fstat(piece.file, &file) != 0) {
    return fail(GRAFT_IO, "memory_export: fstat: " + std::string(strerror(errno)));
  }
  const Handle handle = {kMark,
                         int32_t(getpid()),
                         piece.file,
                         uint64_t(file.st_dev),
                         uint64_t(file.st_ino),
                         piece.offset,
                         piece.bytes,
                         device->ordinal,
                         0};
  std::memset(out_handle, 0, GRAFT_MEMORY_HANDLE_BYTES);
  std::memcpy(out_handle, &handle, sizeof handle);
  *out_begin = begin;
  return GRAFT_OK;
}

graft_status HandleSlots::memory_import(graft_device device, const uint8_t* bytes,
                                        graft_address* out_address) {
  if (graft_status status = check_device(device); status != GRAFT_OK) return status;
  if (bytes == nullptr || out_address == nullptr) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_import: no handle or no out pointer given");
  }
  if (strikes(Fault::kAllocate)) return fail(GRAFT_OUT_OF_MEMORY, "planted by GRAFT_HOST_FAULTS");
  Handle handle = {};
  std::memcpy(&handle, bytes, sizeof handle);
  if (handle.mark != kMark || handle.bytes == 0) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_import: the handle is not from memory_export");
  }
  if (handle.ordinal != device->ordinal) {
    return fail(GRAFT_INVALID_ARGUMENT, "memory_import: the memory belongs to host device " +
                                            std::to_string(handle.ordinal) + ", not to " +
                                            std::to_string(device->ordinal));
  }
  int file = open_file(handle);
  if (file < 0) return GRAFT_NOT_FOUND;
  graft_status status =
      device->arena->borrow(device->ordinal, {file, handle.offset, handle.bytes}, out_address);
  ::close(file);
  return status;
}

graft_status HandleSlots::memory_release(graft_device device, graft_address address) {
  if (device == nullptr) return fail(GRAFT_INVALID_ARGUMENT, "memory_release: no device given");
  if ((detours.load(std::memory_order_relaxed) & kDetourForked) != 0) return GRAFT_OK;
  return device->arena->give_back(device->ordinal, address);
}

}  // namespace graft::host
