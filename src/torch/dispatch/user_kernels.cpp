// src/torch/dispatch/user_kernels.cpp: kernels that a user registered for an operator of PyTorch's.
#include "torch/dispatch/user_kernels.h"

#include <string_view>
#include <unordered_set>

#include "source_names.h"
#include "torch/device/type.h"
#include "torch/ve/slot.h"

namespace graft::binding {
namespace {

constexpr std::string_view kBefore = "registered at ";  // then file:line, in the dispatcher's texts

std::string_view place_in(std::string_view text) {
  if (text.starts_with(kBefore)) text.remove_prefix(kBefore.size());
  return text;
}

std::string_view file_of(std::string_view place) { return place.substr(0, place.rfind(':')); }

// The build may have been given the sources by relative paths, or by those of another folder.
bool is_ours(std::string_view file) {
  static const std::unordered_set<std::string_view> names(std::begin(kSourceNames),
                                                          std::end(kSourceNames));
  constexpr std::string_view kFolder = "src/torch/";
  const size_t at = file.rfind(kFolder);
  return at != std::string_view::npos && names.contains(file.substr(at + kFolder.size()));
}

// The folder that PyTorch was built in: its schemas are registered from one file of the build.
std::string_view torch_folder(std::string_view schema_place) {
  constexpr std::string_view kFile = "build/aten/src/ATen/RegisterSchema.cpp";
  const std::string_view file = file_of(schema_place);
  return file.ends_with(kFile) ? file.substr(0, file.size() - kFile.size()) : std::string_view();
}

bool is_torchs(std::string_view file, const c10::OperatorHandle& op) {
  const std::string_view folder = torch_folder(place_in(op.debug()));
  return file.starts_with(folder);  // where the folder is not known, all are taken for PyTorch's
}

std::optional<std::string> kernel_of(const c10::OperatorHandle& op, c10::DispatchKey key) {
  if (!op.hasComputedKernelForDispatchKey(key)) return std::nullopt;
  const std::string text = op.getComputedKernelForDispatchKey(key).debug();
  const std::string_view place = place_in(text), file = file_of(place);
  if (is_ours(file)) return std::nullopt;
  if (!op.hasKernelForDispatchKey(key) && is_torchs(file, op)) return std::nullopt;
  return std::string(place.substr(place.rfind('/') + 1));
}

// Calls visit with each operator of "aten" that has a schema.
template <class Visit>
void for_each_of_aten(const Visit& visit) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    if (const auto op = c10::Dispatcher::singleton().findSchema(name)) visit(*op);
  }
}

}  // namespace

std::optional<UserKernel> user_kernel(const c10::OperatorHandle& op, bool slot) {
  if (!op.operator_name().name.starts_with("aten::") || !op.hasSchema()) return std::nullopt;
  if (slot) {
    if (auto found = kernel_of(op, ve::kKey)) return UserKernel{*std::move(found), true};
  }
  if (auto found = kernel_of(op, kDispatchKey)) return UserKernel{*std::move(found), false};
  return std::nullopt;
}

std::map<std::string, UserKernel> user_kernels(const std::vector<std::string>& names, bool slot) {
  std::map<std::string, UserKernel> found;
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto op = c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
    if (!op.has_value()) continue;
    if (auto kernel = user_kernel(*op, slot)) found.emplace(name, *std::move(kernel));
  }
  return found;
}

std::map<std::string, UserKernel> all_user_kernels(bool slot) {
  std::map<std::string, UserKernel> found;
  for_each_of_aten([&](const c10::OperatorHandle& op) {
    if (auto kernel = user_kernel(op, slot))
      found.emplace(c10::toString(op.operator_name()), *std::move(kernel));
  });
  return found;
}

std::vector<std::string> user_autograd_kernels(bool slot) {
  const c10::DispatchKey key =
      c10::getAutogradKeyFromBackend(c10::toBackendComponent(slot ? ve::kKey : kDispatchKey));
  std::vector<std::string> found;
  for_each_of_aten([&](const c10::OperatorHandle& op) {
    if (op.hasKernelForDispatchKey(key) && kernel_of(op, key))
      found.push_back(c10::toString(op.operator_name()));
  });
  return found;
}

}  // namespace graft::binding
