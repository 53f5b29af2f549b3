// src/torch/python/sharing.cpp: storages that other processes use by a handle of their memory.
#include <c10/core/Storage.h>

#include <cstring>
#include <optional>
#include <string>

#include "runtime/memory/shared_memory.h"
#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/python/python.h"
#include "torch/tensor/memory.h"
#include "torch/ve/slot.h"
#include "torch/ve/storage.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

void end_use(void* context) { shared_memory().release(static_cast<ReceivedBlock*>(context)); }

// None where the bytes have to go through host memory.
std::optional<MemoryHandle> handle_of(const c10::Storage& given) {
  const c10::Storage storage = given.device_type() == ve::kType ? ve::inner_storage(given) : given;
  TORCH_CHECK(storage.device_type() == kDeviceType, "only memory of a device of type ",
              device_name(), " has a handle, not memory of ", storage.device());
  current_stream(storage.device().index()).refuse_recording("sending a tensor to another process");
  // Another process may write it.
  const c10::DataPtr& data = storage.unsafeGetStorageImpl()->mutable_data_ptr();
  if (data.get_deleter() == &end_use) {
    return shared_memory().send(*static_cast<ReceivedBlock*>(data.get_context()), storage.nbytes());
  }
  Block* block = block_of(data);
  if (block == nullptr) return std::nullopt;
  return shared_memory().send(*block, storage.nbytes());
}

// The block's name, equal in all its handles, and a handle for one receiver.
py::object share(const c10::Storage& storage) {
  std::optional<MemoryHandle> handle;
  {
    const py::gil_scoped_release unlocked;
    translate([&] { handle = handle_of(storage); });
  }
  if (!handle.has_value()) return py::none();
  const auto* bytes = reinterpret_cast<const char*>(&*handle);
  return py::make_tuple(py::bytes(bytes, MemoryHandle::kNameBytes),
                        py::bytes(bytes, sizeof *handle));
}

MemoryHandle parsed(const std::string& bytes) {
  MemoryHandle handle;
  TORCH_CHECK(bytes.size() == sizeof handle, "expected a memory handle of ", sizeof handle,
              " bytes, got ", bytes.size(), ": run one version of Graft in both processes");
  std::memcpy(&handle, bytes.data(), sizeof handle);
  return handle;
}

// Numbers of devices may differ between processes; drivers and their devices do not. Gives the
// platform's index; slot: of a device of torch.device("ve").
c10::DeviceIndex index_of(const MemoryHandle& handle, bool slot) {
  const std::string driver(handle.driver, ::strnlen(handle.driver, sizeof handle.driver));
  const int count = slot ? ve::count() : device_count();
  for (int index = 0; index < count; ++index) {
    const auto one = platform().description(slot ? platform().carried_index(index) : index);
    if (one.driver->name() != driver || one.ordinal != handle.ordinal) continue;
    return slot ? ve::platform_index(static_cast<c10::DeviceIndex>(index))
                : static_cast<c10::DeviceIndex>(index);
  }
  C10_THROW_ERROR(
      Error, c10::str("a tensor was sent from device ", handle.ordinal, " of the driver '", driver,
                      "', which is not among the ", count,
                      " devices here: give both processes the same drivers, GRAFT_DEVICES and "
                      "GRAFT_VE_DEVICES"));
}

c10::Storage receive(const std::string& bytes, bool slot) {
  const MemoryHandle handle = parsed(bytes);
  const c10::DeviceIndex index = index_of(handle, slot);
  ReceivedBlock* received = shared_memory().receive(platform().device(index).streams(), handle);
  c10::DataPtr data(reinterpret_cast<void*>(received->address), received, &end_use,
                    device_of(index));
  c10::Storage storage(c10::Storage::use_byte_size_t(), handle.bytes, std::move(data),
                       &device_memory(), false);
  return slot ? ve::outer_storage(std::move(storage)) : storage;
}

}  // namespace

void bind_sharing(py::module& module) {
  module.def("share_storage", torch::wrap_pybind_function(&share));
  define(module, "receive_storage", &receive);
  define(module, "receive_again",
         [](const std::string& handle) { shared_memory().receive_again(parsed(handle)); });
  define(module, "collect_shared_memory", [] { return shared_memory().collect(); });
  define(module, "shared_blocks", [] { return shared_memory().sent(); });
}

}  // namespace graft::binding
