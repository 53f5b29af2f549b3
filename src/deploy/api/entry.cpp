// src/deploy/api/entry.cpp: what the functions of graft/deploy.h share.
#include "deploy/api/entry.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

#include "runtime/platform/platform.h"

namespace graft::deploy {
namespace {

static_assert(GRAFT_ARRAY_RANK == kMaxRank);

thread_local std::string message;

// The folder "drivers" beside the folder of this library.
std::filesystem::path drivers_beside() {
  Dl_info where{};
  if (dladdr(reinterpret_cast<void*>(&graft_model_open), &where) == 0) return {};
  return std::filesystem::path(where.dli_fname).parent_path().parent_path() / "drivers";
}

void add_drivers_beside() {
  std::error_code missing;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(drivers_beside(), missing)) {
    const std::string name = entry.path().filename().string();
    const bool driver = name.starts_with("graft_") && name.ends_with(".so");
    if (driver && name != "graft_trace.so") paths.push_back(entry.path().string());
  }
  std::ranges::sort(paths);
  for (const std::string& path : paths) platform().add_driver_path(path);
}

}  // namespace

const char* last_message() noexcept { return message.c_str(); }

graft_status failed(graft_status status, const std::string& text) noexcept {
  try {
    message = text;
  } catch (...) {
    message.clear();
  }
  return status;
}

void require(std::initializer_list<Expected> all) {
  const auto missing = std::ranges::find(all, false, &Expected::met);
  if (missing == all.end()) return;
  throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("expected {}, got null", missing->what));
}

void find_drivers() {
  static std::once_flag once;
  std::call_once(once, add_drivers_beside);
}

void shut_down_at_exit() {
  std::atexit([] { platform().shutdown(); });
}

Device& device_at(uint32_t index) {
  find_drivers();
  const int count = platform().device_count();
  if (index >= static_cast<uint32_t>(count)) {
    std::string why;
    for (const Refusal& refusal : platform().refusals()) {
      why += fmt::format("; {}: {}", refusal.path, refusal.reason);
    }
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("there is no device {}: {} found{}. Name a driver by GRAFT_DRIVER_PATH "
                            "or graft_model_add_driver()",
                            index, count, why));
  }
  return platform().device(static_cast<int>(index));
}

TensorView view_of(const graft_array& given, const char* kind, uint32_t index) {
  if (given.struct_size < sizeof(graft_array) || given.rank > kMaxRank) {
    throw Error(
        GRAFT_INVALID_ARGUMENT,
        fmt::format("{} {} has struct_size {} and rank {}, expected {} and at most {}", kind, index,
                    given.struct_size, given.rank, sizeof(graft_array), kMaxRank));
  }
  TensorView view;
  view.address = reinterpret_cast<graft_address>(given.data);
  view.dtype = static_cast<graft_dtype>(given.dtype);
  view.rank = given.rank;
  std::copy_n(given.sizes, given.rank, view.sizes);
  std::copy_n(given.strides, given.rank, view.strides);
  return view;
}

void give_view(const TensorView& view, graft_array* out) {
  graft_array array{};
  array.dtype = static_cast<uint16_t>(view.dtype);
  array.rank = static_cast<uint16_t>(view.rank);
  std::copy_n(view.sizes, view.rank, array.sizes);
  std::copy_n(view.strides, view.rank, array.strides);
  array.data = reinterpret_cast<void*>(view.address);
  give(array, out);
}

}  // namespace graft::deploy
