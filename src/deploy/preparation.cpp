// src/deploy/preparation.cpp: keeps the compiled kernels of a deployed model in its file.
#include "deploy/preparation.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "codegen/cache/carried_blobs.h"
#include "deploy/artefact.h"
#include "deploy/host_tensor.h"
#include "deploy/levels.h"
#include "deploy/model.h"
#include "runtime/driver/dtype.h"

namespace graft::deploy {
namespace {

void run_on_zeros(Model* model) {
  std::vector<std::vector<char>> memory;
  std::vector<TensorView> inputs;
  for (const Described& one : model->inputs()) {
    TensorView view;
    view.dtype = one.dtype, view.rank = static_cast<int>(one.hints.size());
    std::ranges::copy(one.hints, view.sizes);
    view = row_major(view);
    memory.emplace_back(static_cast<size_t>(view.count()) * size_of(view.dtype) + 1);
    view.address = reinterpret_cast<graft_address>(memory.back().data());
    inputs.push_back(view);
  }
  model->run(inputs);
}

std::vector<CarriedBlob> joined(const std::vector<CarriedBlob>& before) {
  std::map<std::pair<std::string, std::string>, CarriedBlob> all;
  for (const auto& blobs : {before, noted_blobs()}) {
    for (const CarriedBlob& one : blobs) all[{one.hash, one.processor}] = one;
  }
  std::vector<CarriedBlob> list;
  for (auto& [key, blob] : all) list.push_back(std::move(blob));
  return list;
}

}  // namespace

void prepare(const std::string& path, Device& device) {
  begin_noting_blobs(level_of_code(device));
  const Artefact artefact(path);
  {
    Model model(artefact, device);
    run_on_zeros(&model);
  }
  std::vector<std::vector<char>> memory;
  std::vector<TensorBytes> weights;
  for (const std::string& name : artefact.manifest().own_tensors()) {
    const StoredTensor& stored = artefact.weight(name);
    std::vector<char>& bytes = memory.emplace_back(stored.bytes);
    artefact.read(stored, bytes.data());
    weights.push_back({name, stored.dtype, stored.sizes, bytes});
  }
  write_artefact(path, artefact.manifest(), weights, joined(artefact.blobs()));
}

}  // namespace graft::deploy
