// src/torch/ve/call.cpp: one operator of the slot, done by the device that carries it.
#include "torch/ve/call.h"

#include <ATen/SparseCsrTensorUtils.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "torch/ve/faces.h"
#include "torch/ve/generator.h"
#include "torch/ve/naming.h"
#include "torch/ve/storage.h"

namespace graft::binding::ve {
namespace {

constexpr std::string_view kOfLists = "aten::_foreach_";

// Beyond so many tensors a call is not searched for one that it was given before.
constexpr size_t kSearched = 16;

bool is_outer(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

// What is on the inner device by the operator's own word stays there.
bool is_inner(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kDeviceType;
}

c10::Stream inner_stream(const c10::Stream& stream) {
  return c10::Stream(c10::Stream::UNSAFE, ve::inner(stream.device()), stream.id());
}

}  // namespace

Call::Call(std::string_view operation)
    : operation_(operation), of_lists_(operation.starts_with(kOfLists)) {}

Call::Pair* Call::met(const at::Tensor& outer) {
  if (pairs_.size() > kSearched) return nullptr;
  for (Pair& pair : pairs_) {
    if (pair.outer.is_same(outer)) return &pair;
  }
  return nullptr;
}

void Call::meet(const at::Tensor& outer) {
  const c10::DeviceIndex index = outer.device().index();
  if (device_ < 0) device_ = index;
  if (of_lists_) return;  // each place in them is a call of its own
  TORCH_CHECK(index == device_, "Expected all tensors to be on the same device, but ", operation_,
              " got tensors on ve:", static_cast<int>(device_),
              " and on ve:", static_cast<int>(index));
}

void Call::place(c10::Device outer) {
  if (device_ < 0) device_ = resolve(outer.index());
}

at::Generator Call::inner(const at::Generator& outer) const {
  TORCH_CHECK(!outer.defined() || leaves_ || outer.device().type() == kType,
              "Expected a 've' device type for generator but found '",
              c10::DeviceTypeName(outer.device().type(), true), "'");
  return inner_generator(outer);
}

std::vector<c10::Device> Call::devices() const {
  std::vector<c10::Device> devices;
  if (device_ >= 0) devices.emplace_back(kType, device_);
  for (const Pair& pair : pairs_) {
    const c10::Device device = pair.outer.device();
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

void Call::rethrow(const c10::Error& error) const {
  if (device_ < 0 || leaves_ || mixed_) throw;
  throw_renamed(error, devices());
}

at::Tensor Call::inner(at::Tensor outer, bool written) {
  if (!is_outer(outer)) {
    mixed_ |= is_inner(outer);
    return outer;
  }
  if (Pair* const pair = met(outer)) {
    pair->written |= written;
    return pair->inner;
  }
  meet(outer);
  at::Tensor inner = inner_of(outer, written);
  pairs_.push_back({std::move(outer), inner, written});
  return inner;
}

at::Tensor Call::inner_of(const at::Tensor& outer, bool written) {
  TORCH_CHECK(!outer.is_nested(), operation_, ": PyTorch keeps nested tensors of the strided ",
              "layout from ve devices; torch.nested with layout=torch.jagged works");
  const auto part = [&](const at::Tensor& tensor) { return inner(tensor, written); };
  if (outer.layout() == at::kSparse) return sparse_face(outer, Face::kInner, part);
  c10::Storage storage = inner_storage(outer.storage());
  if (outer.is_quantized()) return quantized_face(outer, Face::kInner, std::move(storage), part);
  return dense_face(outer, Face::kInner, std::move(storage), outer.is_inference());
}

const Call::Pair* Call::viewed(const c10::Storage& inner) {
  const c10::StorageImpl* const wanted = inner.unsafeGetStorageImpl();
  if (pairs_.size() <= kSearched) {
    for (const Pair& pair : pairs_) {
      if (pair.inner.has_storage() && pair.inner.storage().unsafeGetStorageImpl() == wanted) {
        return &pair;
      }
    }
    return nullptr;
  }
  if (by_storage_ == nullptr) by_storage_ = std::make_unique<Index>();
  for (; listed_ < pairs_.size(); ++listed_) {
    const at::Tensor& one = pairs_[listed_].inner;
    if (one.has_storage()) by_storage_->try_emplace(one.storage().unsafeGetStorageImpl(), listed_);
  }
  const auto found = by_storage_->find(wanted);
  return found == by_storage_->end() ? nullptr : &pairs_[found->second];
}

at::Tensor Call::outer_dense(const at::Tensor& inner) {
  const Pair* const base = viewed(inner.storage());
  c10::Storage storage = base != nullptr ? base->outer.storage() : outer_storage(inner.storage());
  const auto part = [this](const at::Tensor& tensor) { return outer(tensor); };
  if (inner.is_quantized()) return quantized_face(inner, Face::kOuter, std::move(storage), part);
  const bool inference =
      base != nullptr ? base->outer.is_inference() : c10::InferenceMode::is_enabled();
  return dense_face(inner, Face::kOuter, std::move(storage), inference);
}

at::Tensor Call::outer(const at::Tensor& inner) {
  if (!is_inner(inner) || leaves_) return inner;
  if (inner.has_storage()) {
    const Pair* const pair = viewed(inner.storage());
    if (pair != nullptr && pair->inner.is_same(inner)) return pair->outer;
  }
  for (const Pair& pair : pairs_) {
    if (pairs_.size() <= kSearched && pair.inner.is_same(inner)) return pair.outer;
  }
  const auto part = [this](const at::Tensor& tensor) { return outer(tensor); };
  if (inner.layout() == at::kSparse) return sparse_face(inner, Face::kOuter, part);
  if (at::sparse_csr::is_sparse_compressed(inner)) refuse_compressed(operation_);
  TORCH_CHECK(!inner.is_nested(), operation_, ": PyTorch keeps nested tensors of the strided ",
              "layout from ve devices; torch.nested with layout=torch.jagged works");
  return outer_dense(inner);
}

c10::IValue Call::inner(c10::IValue outer, bool written) {
  if (outer.isTensor()) return inner(std::move(outer).toTensor(), written);
  if (outer.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& one : outer.toTensorVector()) list.push_back(inner(one, written));
    return list;
  }
  if (outer.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& one : outer.toOptionalTensorVector()) {
      list.push_back(one.has_value() ? std::optional(inner(*one, written)) : std::nullopt);
    }
    return list;
  }
  if (outer.isDevice()) {
    const c10::Device device = outer.toDevice();
    if (device.type() == kDeviceType) leaves_ = true;
    if (device.type() != kType) return outer;
    place(device);
    return ve::inner({kType, resolve(device.index())});
  }
  if (outer.isGenerator()) return inner(outer.toGenerator());
  if (outer.isStream()) {
    const c10::Stream stream = outer.toStream();
    return stream.device_type() == kType ? c10::IValue(inner_stream(stream)) : outer;
  }
  if (outer.isStorage() && outer.toStorage().device_type() == kType) {
    return inner_storage(outer.toStorage());
  }
  return outer;
}

c10::IValue Call::outer(const c10::IValue& inner) {
  if (inner.isTensor()) return outer(inner.toTensor());
  if (inner.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& one : inner.toTensorVector()) list.push_back(outer(one));
    return list;
  }
  return inner;
}

void Call::write_back_dense(const Pair& pair) {
  c10::TensorImpl& outer = *pair.outer.unsafeGetTensorImpl();
  const c10::TensorImpl& inner = *pair.inner.unsafeGetTensorImpl();
  c10::StorageImpl& behind = *inner.unsafe_storage().unsafeGetStorageImpl();
  if (paired(*outer.unsafe_storage().unsafeGetStorageImpl(), behind)) {
    follow(*outer.unsafe_storage().unsafeGetStorageImpl(), behind);
  } else if (!outer.unsafe_storage().is_alias_of(inner.unsafe_storage()) &&
             outer.unsafe_storage().data() != behind.data()) {  // set_() gave it another one
    c10::Storage storage;
    for (const Pair& other : pairs_) {
      if (!other.inner.is_same(pair.inner) &&
          other.inner.storage().is_alias_of(inner.unsafe_storage())) {
        storage = other.outer.storage();
      }
    }
    outer.set_storage_keep_dtype(storage ? storage : outer_storage(inner.unsafe_storage()));
  }
  if (outer.sizes() != inner.sizes() || outer.strides() != inner.strides() ||
      outer.storage_offset() != inner.storage_offset()) {
    outer.set_sizes_and_strides(inner.sizes(), inner.strides(), inner.storage_offset());
  }
  if (of_lists_ && !outer.is_inference()) outer.bump_version();  // as no kernel of PyTorch does
  if (inner.is_conj() != outer.is_conj()) outer._set_conj(inner.is_conj());
  if (inner.is_neg() != outer.is_neg()) outer._set_neg(inner.is_neg());
}

void Call::write_back_sparse(const Pair& pair) {
  const auto part = [this](const at::Tensor& tensor) { return outer(tensor); };
  take_parts(pair.outer, pair.inner, part);
}

void Call::write_back() {
  for (size_t i = 0; i < pairs_.size(); ++i) {  // parts of sparse results join the list
    if (!pairs_[i].written) continue;
    const Pair pair = pairs_[i];
    if (pair.outer.layout() == at::kStrided) {
      write_back_dense(pair);
    } else {
      write_back_sparse(pair);
    }
  }
}

}  // namespace graft::binding::ve
