// src/deploy/api/models.cpp: the functions of graft/deploy.h that open and run models.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "deploy/api/entry.h"
#include "deploy/api/objects.h"
#include "deploy/preparation.h"
#include "runtime/platform/platform.h"

namespace graft::deploy {
namespace {

void give_described(const std::vector<Described>& all, uint32_t index, graft_model_value* out) {
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

CallInput input_of(const graft_queue_input& given, uint32_t index) {
  if ((given.host == nullptr) == (given.device == nullptr)) {
    throw Error(GRAFT_INVALID_ARGUMENT,
                fmt::format("input {} has {}: set one of host and device, the other to null", index,
                            given.host == nullptr ? "no array" : "two arrays"));
  }
  if (given.device != nullptr) return {{}, &given.device->array};
  return {view_of(*given.host, "input", index)};
}

// Gives the results that run(results) fills in.
template <class Run>
void call(graft_model model, graft_results* out, Run&& run) {
  auto results = std::make_unique<graft_results_s>();
  const bool first = !model->ran.exchange(true);
  run(results.get());
  if (first) shut_down_at_exit();
  *out = results.release();
}

}  // namespace
}  // namespace graft::deploy

namespace deploy = graft::deploy;

const char* graft_model_message() { return deploy::last_message(); }

graft_status graft_model_add_driver(const char* path) {
  return deploy::guarded({{path, "the path of a driver"}},
                         [&] { graft::platform().add_driver_path(path); });
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
  const auto open = [&] {
    *out_model = new graft_model_s(path, deploy::device_at(device));
    deploy::shut_down_at_exit();
  };
  return deploy::guarded({{path, "the path of a model"}, {out_model, "a place for the model"}},
                         open);
}

graft_status graft_model_prepare(const char* path, uint32_t device) {
  return deploy::guarded({{path, "the path of a model"}}, [&] {
    deploy::prepare(path, deploy::device_at(device));
    deploy::shut_down_at_exit();
  });
}

void graft_model_close(graft_model model) { delete model; }

graft_status graft_model_input(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded({{model, "a model"}, {out_value, "a graft_model_value"}},
                         [&] { deploy::give_described(model->model.inputs(), index, out_value); });
}

graft_status graft_model_output(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded({{model, "a model"}, {out_value, "a graft_model_value"}},
                         [&] { deploy::give_described(model->model.outputs(), index, out_value); });
}

graft_status graft_model_run(graft_model model, const graft_array* inputs, uint32_t count,
                             graft_results* out_results) {
  const auto run = [&] {
    std::vector<graft::TensorView> views;
    for (uint32_t i = 0; i < count; ++i) views.push_back(deploy::view_of(inputs[i], "input", i));
    deploy::call(model, out_results,
                 [&](graft_results results) { results->all = model->model.run(views); });
  };
  return deploy::guarded({{model, "a model"},
                          {inputs != nullptr || count == 0, "inputs"},
                          {out_results, "a place for the results"}},
                         run);
}

graft_status graft_model_enqueue(graft_model model, graft_queue queue,
                                 const graft_queue_input* inputs, uint32_t count,
                                 graft_results* out_results) {
  const auto enqueue = [&] {
    std::vector<deploy::CallInput> given;
    for (uint32_t i = 0; i < count; ++i) given.push_back(deploy::input_of(inputs[i], i));
    deploy::call(model, out_results, [&](graft_results results) {
      results->queued = model->model.enqueue(queue->queue, given);
    });
  };
  return deploy::guarded({{model, "a model"},
                          {queue, "a queue"},
                          {inputs != nullptr || count == 0, "inputs"},
                          {out_results, "a place for the results"}},
                         enqueue);
}

graft_status graft_model_state(graft_model model, uint32_t index, graft_model_value* out_value) {
  return deploy::guarded({{model, "a model"}, {out_value, "a graft_model_value"}},
                         [&] { deploy::give_described(model->model.state(), index, out_value); });
}

graft_status graft_model_write_state(graft_model model, uint32_t index, const graft_array* value) {
  return deploy::guarded({{model, "a model"}, {value, "a graft_array"}}, [&] {
    model->model.write_state(index, deploy::view_of(*value, "state", index));
  });
}

graft_status graft_model_reset(graft_model model) {
  return deploy::guarded({{model, "a model"}}, [&] { model->model.reset(); });
}

graft_status graft_model_seed(graft_model model, uint64_t seed) {
  return deploy::guarded({{model, "a model"}}, [&] { model->model.seed(seed); });
}
