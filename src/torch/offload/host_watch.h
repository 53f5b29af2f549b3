// src/torch/offload/host_watch.h: which tensors in host memory changed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace graft::binding {

// What is done about writes that PyTorch does not count: through .data, numpy, shared memory, C.
enum class UncountedWrites {
  kChecksum,  // each look reads all bytes
  kAssume,    // each look takes every tensor for changed
  kIgnore,    // such writes are not seen
};

// "checksum", "copy" or "ignore". Throws ValueError for another word.
UncountedWrites uncounted_writes(std::string_view word);

// Throws ValueError for a tensor that is not on the CPU, TypeError for one that is not dense.
void check_host(const at::Tensor& tensor);

// PyTorch's count of a tensor's writes; 0 for one of inference mode, which has none.
int64_t count_of_writes(const at::Tensor& tensor);

// Watches tensors in host memory, for who keeps something made of them. One thread at a time.
class HostWatch {
 public:
  explicit HostWatch(UncountedWrites uncounted) : uncounted_(uncounted) {}

  // A tensor from now on, at the next place. Holds the tensor, not the memory that it has then.
  // Throws as check_host().
  void add(const at::Tensor& tensor);

  // The places of the tensors that are not what they were at the last look; all that are new.
  // Changed are other memory (storage or address), another dtype, sizes or strides, PyTorch's count
  // of writes, and the bytes, as far as uncounted writes are looked for. A tensor of inference mode
  // has no count: without checksums it is always changed. Throws as check_host(): a tensor may have
  // been moved.
  std::vector<size_t> look();

  // Takes the tensor at a place as it is now.
  void look_at(size_t place);

  // Without the tensor at a place; those behind it move up.
  void remove(size_t place);

  const at::Tensor& tensor(size_t place) const { return seen_[place].tensor; }
  size_t size() const { return seen_.size(); }

 private:
  struct Seen {
    at::Tensor tensor;
    bool known = false;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // so that its address is no other's
    const void* data = nullptr;
    at::ScalarType dtype = at::kFloat;
    int64_t version = 0;
    uint64_t sum = 0;
    c10::SmallVector<int64_t, 5> sizes, strides;

    explicit Seen(const at::Tensor& watched);
    bool same() const;
    void take();
  };

  std::vector<uint64_t> sums() const;

  const UncountedWrites uncounted_;
  std::vector<Seen> seen_;
};

}  // namespace graft::binding
