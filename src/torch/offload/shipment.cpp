// src/torch/offload/shipment.cpp: the tensors of one call, from host memory to a device and back.
#include "torch/offload/shipment.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "torch/offload/host_watch.h"
#include "torch/offload/transfer.h"

namespace graft::binding {
Shipment::Shipment(std::vector<at::Tensor> hosts, c10::Device device) : hosts_(std::move(hosts)) {
  for (const at::Tensor& host : hosts_) {
    const at::Tensor& copy = copies_.emplace_back(copy_to_device(host, device));
    const bool dense = copy.layout() == at::kStrided && !copy.is_nested();
    watches_.emplace_back(dense ? std::vector{copy} : std::vector<at::Tensor>{}).look();
    versions_.push_back(count_of_writes(copy));
  }
}

void Shipment::write_back() {
  std::vector<HostAndDevice> written;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const bool counted = count_of_writes(copies_[i]) != versions_[i];
    if (!counted && (watches_[i].unchanged() || !watches_[i].trusted())) continue;
    if (at::GradMode::is_enabled() && copies_[i].requires_grad()) {
      hosts_[i].copy_(copies_[i]);
    } else {
      written.push_back({.host = hosts_[i], .device = copies_[i]});
    }
  }
  copy_to_hosts(written);
}

}  // namespace graft::binding
