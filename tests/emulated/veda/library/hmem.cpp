// tests/emulated/veda/library/hmem.cpp: VEDA's functions of HMEM, but its memsets.
#include "tests/emulated/veda/library/entry.h"
#include "tests/emulated/veda/library/transfer.h"

using emulated::Command;
using emulated::entry;
using emulated::Link;
using emulated::require;

namespace {

// A copy between a pointer and HMEM or the host, in stream order; it ends before it returns.
void copy_in_order(VEDAdeviceptr pointer, void* other, std::size_t size, VEDAstream stream,
                   bool to_device) {
  require(other != nullptr, VEDA_ERROR_INVALID_VALUE);
  if (!emulated::is_hmem(other)) {
    to_device ? emulated::copy_to_device(pointer, other, size, stream)
              : emulated::copy_to_host(other, pointer, size, stream);
    return;
  }
  veda_context& context = emulated::library().context_of(pointer);
  const auto found = context.resolve(pointer);
  const std::uint64_t offset = VEDA_GET_OFFSET(pointer);
  require(found->raw != 0, VEDA_ERROR_UNKNOWN_PPTR);
  require(offset <= found->size && size <= found->size - offset, VEDA_ERROR_OUT_OF_BOUNDS);
  context.session()->stream(stream);
  context.synchronize(-1);
  void* own = emulated::make_hmem(context.device(), found->raw + offset);
  to_device ? emulated::copy_hmem(own, other, size) : emulated::copy_hmem(other, own, size);
}

}  // namespace

VEDAresult vedaHMemAlloc(VEDAhmemptr* pointer, size_t size) {
  return entry("HMemAlloc", [&] {
    require(pointer != nullptr, VEDA_ERROR_INVALID_VALUE);
    veda_context& context = emulated::current_context();
    const std::uint64_t raw = context.session()->control(
        [&](Link& link) { return link.ask(Command::kRawAllocate, {size}).value; });
    require(raw != 0, VEDA_ERROR_OUT_OF_MEMORY);
    *pointer = emulated::make_hmem(context.device(), raw);
  });
}

VEDAresult vedaHMemFree(VEDAhmemptr pointer) {
  return entry("HMemFree", [&] {
    const auto status = emulated::hmem_context(pointer).session()->control([&](Link& link) {
      return link.ask(Command::kRawFree, {emulated::hmem_raw(pointer)}).status;
    });
    require(status == VEDA_SUCCESS, static_cast<VEDAresult>(status));
  });
}

VEDAresult vedaHMemPtr(void** raw, VEDAhmemptr pointer) {
  return entry("HMemPtr", [&] {
    require(raw != nullptr, VEDA_ERROR_INVALID_VALUE);
    require(emulated::is_hmem(pointer), VEDA_ERROR_UNKNOWN_HMEM);
    *raw = reinterpret_cast<void*>(emulated::hmem_raw(pointer));
  });
}

VEDAresult vedaHMemcpy(void* to, void* from, size_t size) {
  return entry("HMemcpy", [&] { emulated::copy_hmem(to, from, size); });
}
VEDAresult vedaHMemcpyXtoD(VEDAdeviceptr to, void* from, size_t size) {
  return entry("HMemcpyXtoD", [&] { copy_in_order(to, from, size, -1, true); });
}
VEDAresult vedaHMemcpyXtoDAsync(VEDAdeviceptr to, void* from, size_t size, VEDAstream stream) {
  return entry("HMemcpyXtoDAsync", [&] { copy_in_order(to, from, size, stream, true); });
}
VEDAresult vedaHMemcpyDtoX(void* to, VEDAdeviceptr from, size_t size) {
  return entry("HMemcpyDtoX", [&] { copy_in_order(from, to, size, -1, false); });
}
VEDAresult vedaHMemcpyDtoXAsync(void* to, VEDAdeviceptr from, size_t size, VEDAstream stream) {
  return entry("HMemcpyDtoXAsync", [&] { copy_in_order(from, to, size, stream, false); });
}

VEDAresult vedaMemToHMEM(VEDAhmemptr* hmem, VEDAdeviceptr pointer) {
  return entry("MemToHMEM", [&] {
    require(hmem != nullptr, VEDA_ERROR_INVALID_VALUE);
    veda_context& context = emulated::library().context_of(pointer);
    const auto found = context.resolve(pointer);
    require(found->raw != 0, VEDA_ERROR_UNKNOWN_PPTR);
    *hmem = emulated::make_hmem(context.device(), found->raw + VEDA_GET_OFFSET(pointer));
  });
}
