// src/deploy/api/entry.h: what the functions of graft/deploy.h share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string>

#include "graft/deploy.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/error.h"
#include "runtime/platform/device.h"

namespace graft::deploy {

// The calling thread's last message; failed keeps another one and returns the status.
const char* last_message() noexcept;
graft_status failed(graft_status status, const std::string& text) noexcept;

// The status of what a function does, whose exceptions become messages.
template <class Work>
graft_status guarded(Work&& work) noexcept {
  try {
    work();
    return GRAFT_OK;
  } catch (const Error& error) {
    return failed(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(GRAFT_OUT_OF_MEMORY, "the host is out of memory: close other programs");
  } catch (const std::exception& error) {
    return failed(GRAFT_INTERNAL, error.what());
  }
}

// What a function must be given: a pointer that is not null, or a condition that holds.
struct Expected {
  template <class Given>
  Expected(Given given, const char* what) : met(static_cast<bool>(given)), what(what) {}
  bool met;
  const char* what;
};

// Throws Error INVALID_ARGUMENT, which names the first that was null.
void require(std::initializer_list<Expected> all);

// The same status, after require(all).
template <class Work>
graft_status guarded(std::initializer_list<Expected> all, Work&& work) noexcept {
  return guarded([&] {
    require(all);
    work();
  });
}

// Finds drivers once. device_at throws Error INVALID_ARGUMENT if there is no such device.
void find_drivers();
Device& device_at(uint32_t index);

// Ends the runtime before the handlers that were registered so far: a driver loads what leaves its
// own behind, a compiler say, and must outlive what runs there.
void shut_down_at_exit();

// The view of a caller's array. Throws Error INVALID_ARGUMENT, naming kind and index, for a struct
// of another size and a rank above GRAFT_ARRAY_RANK.
TensorView view_of(const graft_array& given, const char* kind, uint32_t index);

// Writes as much of value as the caller's struct has.
template <class Struct>
void give(const Struct& value, Struct* out) {
  const uint32_t size = out->struct_size;
  if (size < sizeof(uint32_t) * 2) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("struct_size is {}: set it to sizeof of the struct", size));
  }
  std::memcpy(out, &value, std::min<size_t>(size, sizeof(Struct)));
  out->struct_size = size;
}

// The same of a view, whose address becomes data.
void give_view(const TensorView& view, graft_array* out);

}  // namespace graft::deploy
