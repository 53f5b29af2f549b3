// src/torch/python/deploy.cpp: files of deployed models for Python.
#include <ATen/ops/empty.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/cache/carried_blobs.h"
#include "compiler/analysis/verifier.h"
#include "compiler/graph/text.h"
#include "deploy/artefact.h"
#include "deploy/deployable.h"
#include "deploy/levels.h"
#include "runtime/platform/platform.h"
#include "torch/python/python.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

namespace py = pybind11;
using Tensors = std::map<std::string, at::Tensor>;

std::vector<std::string> needs_pytorch(const std::string& text, int64_t device) {
  compiler::Graph graph = compiler::parse(text);
  compiler::verify(graph);
  return deploy::needs_pytorch(std::move(graph), platform().device(static_cast<int>(device)));
}

std::vector<deploy::TensorBytes> stored_form(const Tensors& weights) {
  std::vector<deploy::TensorBytes> stored;
  for (const auto& [name, tensor] : weights) {
    TORCH_CHECK_VALUE(tensor.is_cpu() && tensor.is_contiguous(), "weight ", name, " is ",
                      tensor.toString(), ", expected a contiguous tensor on the CPU");
    stored.push_back({name,
                      to_graft(tensor.scalar_type()),
                      tensor.sizes().vec(),
                      {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}});
  }
  return stored;
}

void write_tensors(const std::string& path, const Tensors& tensors) {
  deploy::write_tensors(path, stored_form(tensors));
}

// beside: files of tensors, as name_beside gave them, whose tensors the model's file refers to.
void write_model(const std::string& path, deploy::Manifest& manifest, const Tensors& weights,
                 const std::vector<std::string>& beside) {
  std::vector<deploy::TensorBytes> stored = stored_form(weights);
  manifest.references = deploy::find_references(path, beside, stored);
  std::erase_if(stored, [&](const deploy::TensorBytes& one) {
    return manifest.references.contains(one.name);
  });
  deploy::write_artefact(path, manifest, stored, {});
}

// The manifest, and the tensors that it names, on the CPU. Kernels are found among its blobs.
std::pair<deploy::Manifest, Tensors> read_model(const std::string& path) {
  const deploy::Artefact artefact(path);
  carry_blobs(artefact.blobs());
  Tensors tensors;
  for (const std::string& name : artefact.manifest().tensors()) {
    const deploy::StoredTensor& stored = artefact.weight(name);
    const at::Tensor tensor = at::empty(stored.sizes, to_torch(stored.dtype));
    artefact.read(stored, tensor.mutable_data_ptr());
    tensors.emplace(name, tensor);
  }
  return {artefact.manifest(), std::move(tensors)};
}

std::map<std::string, std::string> references_of(const deploy::Manifest& manifest) {
  std::map<std::string, std::string> files;
  for (const auto& [name, reference] : manifest.references) files[name] = reference.file;
  return files;
}

std::vector<std::pair<std::string, bool>> inputs_of(const deploy::Manifest& manifest) {
  std::vector<std::pair<std::string, bool>> inputs;
  for (const deploy::Manifest::Input& one : manifest.inputs) {
    inputs.emplace_back(one.name, one.weight);
  }
  return inputs;
}

void set_inputs(deploy::Manifest& manifest,
                const std::vector<std::pair<std::string, bool>>& inputs) {
  manifest.inputs.clear();
  for (const auto& [name, weight] : inputs) manifest.inputs.push_back({name, weight});
}

std::vector<std::pair<uint32_t, uint32_t>> integers_of(const deploy::Manifest& manifest) {
  std::vector<std::pair<uint32_t, uint32_t>> integers;
  for (const deploy::Manifest::Integer& one : manifest.integers) {
    integers.emplace_back(one.argument, one.dim);
  }
  return integers;
}

void set_integers(deploy::Manifest& manifest,
                  const std::vector<std::pair<uint32_t, uint32_t>>& integers) {
  manifest.integers.clear();
  for (const auto& [argument, dim] : integers) manifest.integers.push_back({argument, dim});
}

}  // namespace

void bind_deploy(py::module& module) {
  py::class_<deploy::Manifest>(module, "Manifest", "What a deployed model is beside its weights.")
      .def(py::init<>())
      .def_readwrite("graph", &deploy::Manifest::graph)
      .def_readwrite("arguments", &deploy::Manifest::arguments)
      .def_property("inputs", &inputs_of, &set_inputs, "Name, and whether it is a weight.")
      .def_property("integers", &integers_of, &set_integers, "Argument and dimension.")
      .def_property_readonly("state", &deploy::Manifest::state,
                             "Names of the tensors that calls write. Raises RuntimeError for a "
                             "graph that does not parse.")
      .def_readwrite("outputs", &deploy::Manifest::outputs)
      .def_readwrite("constants", &deploy::Manifest::constants)
      .def_property_readonly("references", &references_of, "By tensor: the file that has it.")
      .def_readwrite("settings", &deploy::Manifest::settings)
      .def_readwrite("result", &deploy::Manifest::result)
      .def_readwrite("made_by", &deploy::Manifest::made_by)
      .def_readwrite("licence", &deploy::Manifest::licence);
  define(module, "needs_pytorch", &needs_pytorch);
  define(module, "name_beside", &deploy::name_beside);
  define(module, "write_tensors", &write_tensors);
  define(module, "processor_levels", &deploy::processor_levels);
  define(module, "write_model", &write_model);
  define(module, "read_model", &read_model);
}

}  // namespace graft::binding
