// src/deploy/preparation.cpp: keeps the compiled kernels of a deployed model in its file.
#include "deploy/preparation.h"

#include <algorithm>
#include <map>
#include <vector>

#include "codegen/cache/carried_blobs.h"
#include "deploy/artefact.h"
#include "deploy/host_tensor.h"
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
  std::map<std::string, std::string> all;
  for (const CarriedBlob& one : before) all[one.hash] = one.bytes;
  for (const CarriedBlob& one : noted_blobs()) all[one.hash] = one.bytes;
  std::vector<CarriedBlob> list;
  for (const auto& [hash, bytes] : all) list.push_back({hash, bytes});
  return list;
}

}  // namespace

void prepare(const std::string& path, Device& device) {
  begin_noting_blobs();
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
