// src/deploy/api.cpp: the functions of graft/deploy.h.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>

#include "deploy/artefact.h"
#include "deploy/model.h"
#include "deploy/preparation.h"
#include "graft/deploy.h"
#include "runtime/driver/error.h"
#include "runtime/platform/platform.h"

struct graft_model_s {
  graft_model_s(const char* path, graft::Device& device)
      : model(graft::deploy::Artefact(path), device) {}
  graft::deploy::Model model;
  std::atomic<bool> ran{false};
};

struct graft_results_s {
  std::vector<graft::deploy::HostResult> all;
};

namespace graft::deploy {
namespace {

static_assert(GRAFT_ARRAY_RANK == kMaxRank);

thread_local std::string message;

graft_status failed(graft_status status, const std::string& text) noexcept {
  try {
    message = text;
  } catch (...) {
    message.clear();
  }
  return status;
}

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

void require(bool holds, const char* expected) {
  if (!holds) throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("expected {}, got null", expected));
}

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

void find_drivers() {
  static std::once_flag once;
  std::call_once(once, add_drivers_beside);
}

// What a driver loads, a compiler say, leaves its own handlers behind and must outlive what runs
// there: a handler that is registered after it comes before its.
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

void give_described(const std::vector<Described>& all, uint32_t index, graft_model_value* out) {
  require(out != nullptr, "a graft_model_value");
  if (index >= all.size()) {
    throw Error(GRAFT_NOT_FOUND, fmt::format("there is no value {}: {} in all", index, all.size()));
  }
  const Described& one = all[index];
  graft_model_value value{};
  value.dtype = static_cast<uint16_t>(one.dtype);
  value.rank = static_cast<uint16_t>(one.sizes.size());
  std::ranges::copy(one.sizes, value.sizes);
  value.name = one.name.c_str();
  give(value, out);
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

}  // namespace
}  // namespace graft::deploy

namespace deploy = graft::deploy;

const char* graft_model_message() { return deploy::message.c_str(); }

graft_status graft_model_add_driver(const char* path) {
  return deploy::guarded([&] {
    deploy::require(path != nullptr, "the path of a driver");
    graft::platform().add_driver_path(path);
  });
}

uint32_t graft_model_devices() {
  uint32_t count = 0;
  deploy::guarded([&] {
    deploy::find_drivers();
    count = static_cast<uint32_t>(graft::platform().device_count());
  });
  return count;
}

graft_status graft_model_open(const char* path, uint32_t device, graft_model* out_model) {
  return deploy::guarded([&] {
    deploy::require(path != nullptr, "the path of a model");
    deploy::require(out_model != nullptr, "a place for the model");
    *out_model = new graft_model_s(path, deploy::device_at(device));
    deploy::shut_down_at_exit();
  });
}

graft_status graft_model_prepare(const char* path, uint32_t device) {
  return deploy::guarded([&] {
    deploy::require(path != nullptr, "the path of a model");
    deploy::prepare(path, deploy::device_at(device));
    deploy::shut_down_at_exit();
  });
}

void graft_model_close(graft_model model) { delete model; }

graft_status graft_model_input(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::give_described(model->model.inputs(), index, out_value);
  });
}

graft_status graft_model_output(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::give_described(model->model.outputs(), index, out_value);
  });
}

graft_status graft_model_run(graft_model model, const graft_array* inputs, uint32_t count,
                             graft_results* out_results) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::require(inputs != nullptr || count == 0, "inputs");
    deploy::require(out_results != nullptr, "a place for the results");
    std::vector<graft::TensorView> views;
    for (uint32_t i = 0; i < count; ++i) views.push_back(deploy::view_of(inputs[i], "input", i));
    auto results = std::make_unique<graft_results_s>();
    const bool first = !model->ran.exchange(true);
    results->all = model->model.run(views);
    if (first) deploy::shut_down_at_exit();
    *out_results = results.release();
  });
}

graft_status graft_model_state(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::give_described(model->model.state(), index, out_value);
  });
}

graft_status graft_model_read_state(graft_model model, graft_results* out_results) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::require(out_results != nullptr, "a place for the results");
    auto results = std::make_unique<graft_results_s>();
    results->all = model->model.read_state();
    *out_results = results.release();
  });
}

graft_status graft_model_write_state(graft_model model, uint32_t index, const graft_array* value) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    deploy::require(value != nullptr, "a graft_array");
    model->model.write_state(index, deploy::view_of(*value, "state", index));
  });
}

graft_status graft_model_reset(graft_model model) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    model->model.reset();
  });
}

graft_status graft_results_get(graft_results results, uint32_t index, graft_array* out_tensor) {
  return deploy::guarded([&] {
    deploy::require(results != nullptr, "results");
    deploy::require(out_tensor != nullptr, "a graft_array");
    if (index >= results->all.size()) {
      throw graft::Error(GRAFT_NOT_FOUND, fmt::format("there is no result {}: {} in all", index,
                                                      results->all.size()));
    }
    const graft::TensorView& view = results->all[index].view;
    graft_array tensor{};
    tensor.dtype = static_cast<uint16_t>(view.dtype);
    tensor.rank = static_cast<uint16_t>(view.rank);
    std::copy_n(view.sizes, view.rank, tensor.sizes);
    std::copy_n(view.strides, view.rank, tensor.strides);
    tensor.data = reinterpret_cast<void*>(view.address);
    deploy::give(tensor, out_tensor);
  });
}

void graft_results_free(graft_results results) { delete results; }

graft_status graft_model_seed(graft_model model, uint64_t seed) {
  return deploy::guarded([&] {
    deploy::require(model != nullptr, "a model");
    model->model.seed(seed);
  });
}
