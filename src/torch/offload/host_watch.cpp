// src/torch/offload/host_watch.cpp: which tensors in host memory changed.
#include "torch/offload/host_watch.h"

#include "torch/offload/checksum.h"
#include "torch/offload/transfer.h"

namespace graft::binding {

UncountedWrites uncounted_writes(std::string_view word) {
  if (word == "checksum") return UncountedWrites::kChecksum;
  if (word == "copy") return UncountedWrites::kAssume;
  TORCH_CHECK_VALUE(word == "ignore",
                    "uncounted_writes must be one of checksum, copy, ignore, got '", word, "'");
  return UncountedWrites::kIgnore;
}

int64_t count_of_writes(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

HostWatch::Seen::Seen(const at::Tensor& watched)
    : tensor(watched), storage(watched.storage().getWeakStorageImpl()) {}

bool HostWatch::Seen::same() const {
  return known && storage._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl() &&
         data == tensor.const_data_ptr() && dtype == tensor.scalar_type() &&
         version == count_of_writes(tensor) && tensor.sizes() == at::IntArrayRef(sizes) &&
         tensor.strides() == at::IntArrayRef(strides);
}

void HostWatch::Seen::take() {
  storage = tensor.storage().getWeakStorageImpl();
  data = tensor.const_data_ptr();
  dtype = tensor.scalar_type();
  version = count_of_writes(tensor);
  sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  strides.assign(tensor.strides().begin(), tensor.strides().end());
  known = true;
}

void check_host(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.is_cpu(), "offloading takes a model whose tensors are on the CPU, but ",
                    "one of shape ", tensor.sizes(), " is on ", tensor.device(),
                    ": move the model to the CPU, or call optimize() without device=");
  TORCH_CHECK_TYPE(is_dense(tensor),
                   "offloading takes dense tensors as weights and buffers, but one of shape ",
                   tensor.sizes(), " is ",
                   tensor.is_quantized() ? "quantized"
                   : tensor.is_nested()  ? "nested"
                                         : "sparse");
}

void HostWatch::add(const at::Tensor& tensor) {
  check_host(tensor);
  seen_.emplace_back(tensor);
}

std::vector<uint64_t> HostWatch::sums() const {
  std::vector<at::Tensor> tensors;
  for (const Seen& seen : seen_) tensors.push_back(seen.tensor);
  return checksums(tensors);
}

std::vector<size_t> HostWatch::look() {
  std::vector<size_t> changed;
  for (const Seen& seen : seen_) check_host(seen.tensor);
  // Read before whoever looks copies: a write from then on is found by the next look.
  const std::vector<uint64_t> now =
      uncounted_ == UncountedWrites::kChecksum ? sums() : std::vector<uint64_t>(seen_.size());
  for (size_t i = 0; i < seen_.size(); ++i) {
    Seen& seen = seen_[i];
    const bool uncountable = uncounted_ == UncountedWrites::kAssume ||
                             (uncounted_ == UncountedWrites::kIgnore && seen.tensor.is_inference());
    if (!uncountable && seen.same() && seen.sum == now[i]) continue;
    seen.take();
    seen.sum = now[i];
    changed.push_back(i);
  }
  return changed;
}

void HostWatch::look_at(size_t place) {
  Seen& seen = seen_[place];
  seen.take();
  if (uncounted_ == UncountedWrites::kChecksum) seen.sum = checksums({seen.tensor}).front();
}

void HostWatch::remove(size_t place) { seen_.erase(seen_.begin() + static_cast<ptrdiff_t>(place)); }

}  // namespace graft::binding
