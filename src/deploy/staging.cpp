// src/deploy/staging.cpp: host memory between a caller's tensors and a stream's device.
#include "deploy/staging.h"

#include <algorithm>
#include <utility>

#include "deploy/host_tensor.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/dtype.h"

namespace graft::deploy {
namespace {

TensorView at(TensorView view, const std::shared_ptr<char[]>& memory) {
  view.address = reinterpret_cast<graft_address>(memory.get());
  return view;
}

}  // namespace

std::shared_ptr<char[]> packed(const TensorView& host) {
  const TensorView rows = row_major(host);
  std::shared_ptr<char[]> memory(new char[std::max<uint64_t>(extent_bytes(rows), 1)]);
  copy_elements(at(rows, memory), host);
  return memory;
}

void Staging::upload(const TensorView& to, std::shared_ptr<char[]> elements) {
  const uint64_t bytes = extent_bytes(to);
  if (bytes == 0) return;
  if (!to.contiguous()) {
    std::shared_ptr<char[]> placed(new char[bytes]());
    copy_elements(at(to, placed), at(row_major(to), elements));
    elements = std::move(placed);
  }
  memory_.push_back(elements);
  stream_.copy(to.address, reinterpret_cast<uint64_t>(elements.get()), bytes, GRAFT_HOST_TO_DEVICE);
}

std::vector<HostResult> Staging::download(std::span<const TensorView> tensors) {
  std::vector<HostResult> all;
  for (const TensorView& view : tensors) {
    const uint64_t bytes = extent_bytes(view);
    HostResult& one = all.emplace_back();
    one.memory.reset(new char[std::max<uint64_t>(bytes, 1)]);
    one.view = at(view, one.memory);
    memory_.push_back(one.memory);
    if (bytes > 0) stream_.copy(one.view.address, view.address, bytes, GRAFT_DEVICE_TO_HOST);
  }
  wait();
  for (HostResult& one : all) {
    if (one.view.contiguous()) continue;
    one.memory = packed(one.view);
    one.view = at(row_major(one.view), one.memory);
  }
  return all;
}

void Staging::wait() {
  stream_.synchronize([&] { return std::make_shared<Memory>(memory_); });
  memory_.clear();
}

void Staging::release() noexcept {
  if (!stream_.settle()) stream_.keep_alive(std::make_shared<Memory>(memory_));
  memory_.clear();
}

}  // namespace graft::deploy
