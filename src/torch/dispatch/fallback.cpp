// src/torch/dispatch/fallback.cpp: runs on the CPU what the device has no kernel for.
#include "torch/dispatch/fallback.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include <chrono>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/driver/op_tag.h"
#include "torch/device/errors.h"
#include "torch/device/fallback_count.h"
#include "torch/dispatch/host_image.h"
#include "torch/dispatch/host_operators.h"
#include "torch/dispatch/quantized_image.h"
#include "torch/dispatch/sparse_image.h"
#include "torch/tensor/copy.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// The finalizer of splitmix64: unlike seeds for neighbouring Philox offsets.
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// One call: arguments are replaced on the stack by host images, results by device tensors.
class CpuCall {
 public:
  CpuCall(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op), schema_(op.schema()), stack_(*stack) {}

  void run() {
    const size_t count = schema_.arguments().size();
    find_device(stack_.size() - count);
    if (lazy_clones_live()) own_arguments(stack_.size() - count);
    bool generator = false, drops_none = false;
    for (size_t i = 0; i < count; ++i) {
      c10::IValue& value = stack_[stack_.size() - count + i];
      const c10::Argument& argument = schema_.arguments()[i];
      const bool written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
      drops_none |= argument.name() == "dropout_p" && value.isDouble() && value.toDouble() == 0;
      if (takes_generator(argument)) {
        value = host_generator(value);
        generator = true;
      } else {
        value = to_host(value, written);
      }
    }
    const bool random = op_.hasTag(at::Tag::nondeterministic_seeded) && !drops_none;
    TORCH_CHECK(generator || !random, op_.operator_name(),
                " draws random numbers, has no kernel on ", device_,
                " and takes no generator, so it cannot run on the CPU without disturbing the "
                "CPU's generator. Use torch.rand or torch.randn instead.");
    tell_of_gradients();
    call_on_host();
    write_back();
    const size_t results = schema_.returns().size();
    for (size_t i = 0; i < results; ++i) {
      const bool aliases = schema_.returns()[i].alias_info() != nullptr;
      c10::IValue& value = stack_[stack_.size() - results + i];
      value = to_device(value, aliases);
    }
    for (const HostImage& image : images_) bytes_ += image.bytes();
  }

  size_t bytes() const { return bytes_; }

 private:
  // The CPU has other operators for the convolutions that PyTorch hands to devices, and none for
  // some others.
  void call_on_host() {
    const c10::DispatchKeySet keys(host_key_);
    if (const auto* own = host_operator(op_.operator_name())) {
      return own->callBoxed(op_, keys, &stack_);
    }
    const std::string& name = op_.operator_name().name;
    const bool backward = name == "aten::convolution_backward_overrideable";
    if (!backward && name != "aten::convolution_overrideable") {
      return op_.redispatchBoxed(keys, &stack_);
    }
    if (backward) {  // the sizes of the bias follow the weight
      const auto first = stack_.end() - static_cast<std::ptrdiff_t>(schema_.arguments().size());
      const bool bias = stack_.back().toBoolList()[2];
      const std::vector<int64_t> sizes{first->toTensor().size(1)};
      stack_.insert(first + 3, bias ? c10::IValue(sizes) : c10::IValue());
    }
    c10::Dispatcher::singleton()
        .findSchemaOrThrow(backward ? "aten::convolution_backward" : "aten::convolution", "")
        .redispatchBoxed(keys, &stack_);
  }

  // Kernels also write to arguments that their schema calls read: native_batch_norm to its running
  // statistics.
  void write_back() {
    for (HostImage& image : images_) {
      if (written_.contains(&image) || image.changed()) image.write_back();
    }
  }

  static bool ours(const at::Tensor& tensor) {
    return tensor.defined() && tensor.device().type() == kDeviceType;
  }

  static bool takes_generator(const c10::Argument& argument) {
    const c10::TypePtr& type = argument.type();
    if (type->kind() == c10::TypeKind::GeneratorType) return true;
    const auto optional = type->cast<c10::OptionalType>();
    return optional && optional->getElementType()->kind() == c10::TypeKind::GeneratorType;
  }

  // A number on the CPU, and indices there, may stand beside tensors of any device, as with
  // torch.cuda; so may the targets of ctc_loss.
  bool may_stay_on_cpu(const at::Tensor& tensor, bool index) const {
    return tensor.device().is_cpu() &&
           (tensor.dim() == 0 || index || op_.operator_name().name.starts_with("aten::_ctc_loss"));
  }

  void meet(const at::Tensor& tensor, std::optional<c10::Device>& found) {
    if (ours(tensor) && tensor.has_storage()) {
      ++storages_[tensor.storage().unsafeGetStorageImpl()].users;
    }
    if (!found.has_value()) found = tensor.device();
    TORCH_CHECK(*found == tensor.device(), "Expected all tensors to be on the same device, but ",
                op_.operator_name(), " got tensors on ", *found, " and on ", tensor.device());
  }

  // Results go where the device tensors are, or where the caller asked for.
  void find_device(size_t first) {
    std::optional<c10::Device> found, asked;
    const auto look = [&](const c10::IValue& value, bool index) {
      if (!value.isTensor() || !value.toTensor().defined()) return;
      if (!may_stay_on_cpu(value.toTensor(), index)) meet(value.toTensor(), found);
    };
    for (size_t i = first; i < stack_.size(); ++i) {
      const c10::IValue& value = stack_[i];
      look(value, false);
      if (value.isTensorList() || value.isOptionalTensorList()) {
        const bool indices = value.isOptionalTensorList();
        for (const c10::IValue& one : value.toListRef()) look(one, indices);
      }
      if (value.isDevice() && value.toDevice().type() == kDeviceType) asked = value.toDevice();
    }
    if (!found.has_value() || found->is_cpu()) {
      found = device_of(resolve(asked.value_or(device_of(-1)).index()));
    }
    device_ = *found;
  }

  void own_arguments(size_t first) {
    for (size_t i = first; i < stack_.size(); ++i) {
      const c10::AliasInfo* alias = schema_.arguments()[i - first].alias_info();
      if (alias == nullptr || !alias->isWrite()) continue;
      const c10::IValue& value = stack_[i];
      if (value.isTensor()) own_memory(value.toTensor());
      if (!value.isTensorList()) continue;
      for (const at::Tensor& one : value.toTensorVector()) own_memory(one);
    }
  }

  // PyTorch's sparse kernels keep what the backward needs only where an argument requires
  // gradients.
  void tell_of_gradients() {
    if (!gradients_ || host_key_ == c10::DispatchKey::CPU) return;
    for (const HostImage& image : images_) {
      if (is_sparse(image.host()) &&
          (image.host().is_floating_point() || image.host().is_complex())) {
        image.host().set_requires_grad(true);
      }
    }
  }

  // The host copy of a storage in which several arguments lie; undefined for any other.
  at::Tensor shared_storage(const at::Tensor& tensor) {
    if (!tensor.has_storage() || tensor.is_quantized()) return {};
    const auto* storage = tensor.storage().unsafeGetStorageImpl();
    const auto found = storages_.find(storage);
    if (found == storages_.end() || found->second.users < 2) return {};
    if (!found->second.host.has_value()) {
      found->second.host = HostImage::fetch_storage(tensor);
      if (found->second.host->defined()) bytes_ += storage->nbytes();
    }
    return *found->second.host;
  }

  at::Tensor image_of(const at::Tensor& tensor, bool written) {
    if (!ours(tensor)) return tensor;
    TORCH_CHECK_NOT_IMPLEMENTED(!tensor.is_nested(), op_.operator_name(),
                                " has no kernel for nested tensors on ", device_);
    gradients_ = gradients_ || tensor.requires_grad();
    if (tensor._is_zerotensor()) return at::zeros(tensor.sizes(), tensor.scalar_type());
    TORCH_CHECK(!tensor.has_storage() || tensor.numel() == 0 || tensor.storage().data() != nullptr,
                op_.operator_name(), " got a tensor of ", tensor.numel(),
                " elements whose storage was resized to 0 bytes: resize the storage back first");
    // As the dispatcher orders them.
    if (tensor.is_sparse() && host_key_ == c10::DispatchKey::CPU) {
      host_key_ = c10::DispatchKey::SparseCPU;
    } else if (is_sparse(tensor) && !tensor.is_sparse()) {
      host_key_ = c10::DispatchKey::SparseCsrCPU;
    } else if (tensor.is_quantized() && host_key_ == c10::DispatchKey::CPU) {
      host_key_ = c10::DispatchKey::QuantizedCPU;
    }
    HostImage* image = nullptr;
    for (HostImage& one : images_) {
      if (one.device().is_same(tensor)) image = &one;
    }
    const bool first = image == nullptr;
    if (first) image = &images_.emplace_back(tensor, shared_storage(tensor));
    if (written) {
      written_.insert(image);
    } else if (first) {
      image->watch();
    }
    return image->host();
  }

  c10::IValue to_host(const c10::IValue& value, bool written) {
    if (value.isTensor()) return image_of(value.toTensor(), written);
    if (value.isTensorList()) {
      c10::List<at::Tensor> hosts;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        hosts.push_back(image_of(tensor, written));
      }
      return hosts;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> hosts;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        hosts.push_back(tensor.has_value() ? std::optional(image_of(*tensor, written))
                                           : std::nullopt);
      }
      return hosts;
    }
    if (value.isDevice() && value.toDevice().type() == kDeviceType) {
      return c10::Device(c10::DeviceType::CPU);
    }
    return value;
  }

  c10::IValue host_generator(const c10::IValue& value) {
    std::optional<at::Generator> given;
    if (value.isGenerator()) given = value.toGenerator();
    const auto [seed, offset] = next_philox(given, device_, 1);
    return at::detail::createCPUGenerator(mixed(seed + mixed(offset + 1)));
  }

  at::Tensor device_tensor(const at::Tensor& result, bool aliases) {
    if (!result.defined() || !result.device().is_cpu()) return result;
    for (const HostImage& image : images_) {
      if (image.host().is_same(result)) return image.device();
      if (!aliases) continue;
      if (at::Tensor view = image.device_view(result); view.defined()) return view;
    }
    if (is_sparse(result)) {
      bytes_ += sparse_bytes(result);
      return sparse_copy(result, device_);
    }
    if (result.is_quantized()) {
      bytes_ += quantized_bytes(result);
      return quantized_copy(result, device_);
    }
    const at::Tensor moved =
        result.is_non_overlapping_and_dense()
            ? empty_strided_graft(result.sizes(), result.strides(), result.scalar_type(), device_)
            : empty_graft(result.sizes(), result.scalar_type(), device_);
    copy(moved, result);
    bytes_ += static_cast<size_t>(result.numel()) * result.dtype().itemsize();
    return moved;
  }

  c10::IValue to_device(const c10::IValue& value, bool aliases) {
    if (value.isTensor()) return device_tensor(value.toTensor(), aliases);
    if (value.isTensorList()) {
      c10::List<at::Tensor> moved;
      for (const at::Tensor& tensor : value.toTensorVector()) {
        moved.push_back(device_tensor(tensor, aliases));
      }
      return moved;
    }
    return value;
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  torch::jit::Stack& stack_;
  c10::Device device_ = device_of(0);
  c10::DispatchKey host_key_ = c10::DispatchKey::CPU;
  bool gradients_ = false;  // an argument requires them
  struct Shared {
    int users = 0;
    std::optional<at::Tensor> host;
  };
  std::map<const c10::StorageImpl*, Shared> storages_;  // of the arguments
  std::list<HostImage> images_;
  std::set<const HostImage*> written_;
  size_t bytes_ = 0;
};

}  // namespace

void boxed_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  FallbackCounter& counter = fallback_counter(op.operator_name());
  const OpScope scope(counter.name());
  counter.announce();
  const auto start = std::chrono::steady_clock::now();
  CpuCall call(op, stack);
  translate([&] { call.run(); });
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  counter.add(call.bytes(), spent.count());
}

namespace {

void fall_back(torch::Library& m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&boxed_fallback>());
}

}  // namespace

TORCH_LIBRARY_IMPL(_, GRAFT_DISPATCH_KEY, m) { fall_back(m); }
TORCH_LIBRARY_IMPL(_, GRAFT_SPARSE_KEY, m) { fall_back(m); }
TORCH_LIBRARY_IMPL(_, GRAFT_SPARSE_COMPRESSED_KEY, m) { fall_back(m); }
TORCH_LIBRARY_IMPL(_, GRAFT_QUANTIZED_KEY, m) { fall_back(m); }

}  // namespace graft::binding
