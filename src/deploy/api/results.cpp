// src/deploy/api/results.cpp: the functions of graft/deploy.h that give results.
#include <fmt/format.h>

#include "deploy/api/entry.h"
#include "deploy/api/objects.h"

namespace graft::deploy {
namespace {

void check_place(uint32_t index, size_t count) {
  if (index < count) return;
  throw Error(GRAFT_NOT_FOUND, fmt::format("there is no result {}: {} in all", index, count));
}

}  // namespace
}  // namespace graft::deploy

namespace deploy = graft::deploy;

graft_status graft_model_read_state(graft_model model, graft_results* out_results) {
  return deploy::guarded({{model, "a model"}, {out_results, "a place for the results"}}, [&] {
    auto results = std::make_unique<graft_results_s>();
    results->all = model->model.read_state();
    *out_results = results.release();
  });
}

graft_status graft_results_get(graft_results results, uint32_t index, graft_array* out_array) {
  return deploy::guarded({{results, "results"}, {out_array, "a graft_array"}}, [&] {
    if (results->queued != nullptr) {
      deploy::check_place(index, results->queued->size());
      return deploy::give_view(results->queued->on_host(index).view, out_array);
    }
    deploy::check_place(index, results->all.size());
    deploy::give_view(results->all[index].view, out_array);
  });
}

graft_status graft_results_on_device(graft_results results, uint32_t index,
                                     graft_device_array* out_array) {
  return deploy::guarded({{results, "results"}, {out_array, "a place for the array"}}, [&] {
    if (results->queued == nullptr) {
      throw graft::Error(GRAFT_INVALID_ARGUMENT,
                         "these results are in host memory: results of graft_model_enqueue are on "
                         "the device");
    }
    deploy::check_place(index, results->queued->size());
    *out_array = new graft_device_array_s{results->queued->on_device(index)};
  });
}

void graft_results_free(graft_results results) { delete results; }
