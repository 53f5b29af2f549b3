// src/torch/offload/checksum.cpp: the bytes of tensors in host memory as numbers.
#include "torch/offload/checksum.h"

#include <ATen/Parallel.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

namespace graft::binding {
namespace {

constexpr size_t kPart = 1 << 20;           // bytes that one thread takes at once
constexpr size_t kBytesOfThread = 4 << 20;  // a thread costs what reading a few hundred KiB does

struct Part {
  const char* begin;
  size_t bytes;
};

class Parts {
 public:
  void add(const at::Tensor& tensor) {
    const auto* begin = static_cast<const char*>(tensor.const_data_ptr());
    const size_t bytes = tensor.nbytes();
    for (size_t at = 0; at < bytes; at += kPart) {
      parts_.push_back({begin + at, std::min(kPart, bytes - at)});
    }
    ends_.push_back(parts_.size());
    bytes_ += bytes;
  }

  std::vector<uint64_t> sums() {
    sums_.resize(parts_.size());
    const size_t wanted = std::min<size_t>(at::get_num_threads(), bytes_ / kBytesOfThread);
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < wanted) others.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // the threads that there are do the work
    }
    work();
    others.clear();
    return joined();
  }

 private:
  void work() {
    for (size_t i = next_++; i < parts_.size(); i = next_++) {
      sums_[i] = XXH3_64bits(parts_[i].begin, parts_[i].bytes);
    }
  }

  std::vector<uint64_t> joined() const {
    std::vector<uint64_t> all;
    size_t begin = 0;
    for (const size_t end : ends_) {
      all.push_back(XXH3_64bits(sums_.data() + begin, (end - begin) * sizeof(uint64_t)));
      begin = end;
    }
    return all;
  }

  std::vector<Part> parts_;
  std::vector<size_t> ends_;  // by tensor, behind its last part
  std::vector<uint64_t> sums_;
  size_t bytes_ = 0;
  std::atomic<size_t> next_{0};
};

}  // namespace

std::vector<uint64_t> checksums(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copied;
  Parts parts;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_non_overlapping_and_dense()) {
      parts.add(tensor);
    } else {
      copied.push_back(tensor.detach().contiguous());
      parts.add(copied.back());
    }
  }
  return parts.sums();
}

}  // namespace graft::binding
