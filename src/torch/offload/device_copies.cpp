// src/torch/offload/device_copies.cpp: copies on a device that follow tensors in host memory.
#include "torch/offload/device_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "torch/compiled/write_count.h"
#include "torch/offload/transfer.h"

namespace graft::binding {

namespace {

bool shares_count(const at::Tensor& host, const CopyWatch& copy) {
  return !copy.buffer() && !host.is_inference();
}

}  // namespace

void DeviceCopies::add(const at::Tensor& host, const at::Tensor& copy, bool buffer) {
  hosts_.add(host);
  copies_.push_back({.watch = CopyWatch(copy, buffer)});
}

void DeviceCopies::renew(const at::Tensor& host, const CopyWatch& copy) const {
  at::Tensor tensor = copy.tensor();
  if (tensor.requires_grad()) tensor.detach_();  // a copy of values before must not go on
  if (tensor.scalar_type() != host.scalar_type() || tensor.sizes() != host.sizes() ||
      (host.is_non_overlapping_and_dense() && tensor.strides() != host.strides())) {
    tensor.set_data(at::empty_like(host, host.options().device(tensor.device())));
  }
  const bool shares = shares_count(host, copy);
  if (shares) count_apart(tensor);
  const at::AutoGradMode linked(gradients_ && host.requires_grad());
  tensor.copy_(host);
  if (shares) share_count(tensor, host);
}

size_t DeviceCopies::refresh() {
  const c10::InferenceMode plain(false);  // copies outlive an inference mode of the caller
  for (const size_t place : hosts_.look()) copies_[place].stale = true;
  size_t count = 0;
  for (size_t i = 0; i < copies_.size(); ++i) {
    Copy& copy = copies_[i];
    const at::Tensor& host = hosts_.tensor(i);
    const bool linked = gradients_ && host.requires_grad();
    if (!copy.stale && linked == copy.watch.tensor().requires_grad()) continue;
    copy.stale = true;
    renew(host, copy.watch);
    copy.watch.look();
    copy.stale = false;
    ++count;
  }
  refreshed_ += count;
  return count;
}

size_t DeviceCopies::write_back() {
  std::vector<size_t> places;
  std::vector<HostAndDevice> pairs;
  for (size_t i = 0; i < copies_.size(); ++i) {
    const auto& [watch, stale] = copies_[i];
    if (stale || !watch.written()) continue;
    places.push_back(i);
    pairs.push_back({.host = hosts_.tensor(i),
                     .device = watch.tensor(),
                     .counted = !shares_count(hosts_.tensor(i), watch)});
  }
  copy_to_hosts(pairs);
  for (const size_t place : places) {
    hosts_.look_at(place);
    copies_[place].watch.look();
  }
  return places.size();
}

void DeviceCopies::keep(const std::vector<at::Tensor>& hosts) {
  for (size_t i = copies_.size(); i-- > 0;) {
    const auto same = [&](const at::Tensor& one) { return one.is_same(hosts_.tensor(i)); };
    if (std::ranges::any_of(hosts, same)) continue;
    hosts_.remove(i);
    copies_.erase(copies_.begin() + static_cast<ptrdiff_t>(i));
  }
}

}  // namespace graft::binding
