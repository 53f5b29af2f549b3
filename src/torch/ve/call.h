// src/torch/ve/call.h: one operator of the slot, done by the device that carries it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// Gives an operator the inner tensors of its outer ones, and back what it returned and wrote. Makes
// no copy of any element. Not thread-safe; one object per call of an operator.
class Call {
 public:
  // operation: for messages; lives as long as the call.
  explicit Call(std::string_view operation);

  // The inner tensor over the memory of an outer one: sizes, strides, lazy bits, quantizer and the
  // parts of sparse tensors are the outer's. Any other tensor is returned as it is. written: the
  // operator may change the tensor. Throws RuntimeError if two devices of the slot meet in
  // another operator than one of lists, and for nested tensors, which PyTorch keeps from the slot.
  at::Tensor inner(at::Tensor outer, bool written);

  // The outer tensor of what the operator returned: an argument itself if that came back, over an
  // argument's storage if it is a view, else over a new one. Any other tensor is returned as it is.
  at::Tensor outer(const at::Tensor& inner);

  // The same for an argument and a result of any type: tensors, lists, generators, devices, streams
  // and storages.
  c10::IValue inner(c10::IValue outer, bool written);
  c10::IValue outer(const c10::IValue& inner);

  // Brings sizes, storages and lazy bits of the arguments that may have been written back.
  void write_back();

  // Results go to this device if no argument has one.
  void place(c10::Device outer);

  // The devices of the call's tensors; empty where none of them is of the slot.
  std::vector<c10::Device> devices() const;

  // Throws an error of the inner operator again, told of the slot's device where the call's tensors
  // and results are all on that.
  [[noreturn]] void rethrow(const c10::Error& error) const;

 private:
  struct Pair {
    at::Tensor outer, inner;
    bool written;
  };

  using Index = std::unordered_map<const c10::StorageImpl*, size_t>;

  Pair* met(const at::Tensor& outer);
  void meet(const at::Tensor& outer);
  at::Generator inner(const at::Generator& outer) const;
  at::Tensor inner_of(const at::Tensor& outer, bool written);
  at::Tensor outer_dense(const at::Tensor& inner);
  const Pair* viewed(const c10::Storage& inner);  // the first argument over this storage, or none
  void write_back_dense(const Pair& pair);
  void write_back_sparse(const Pair& pair);

  const std::string_view operation_;
  const bool of_lists_;  // a tensor at a time
  c10::SmallVector<Pair, 6> pairs_;
  std::unique_ptr<Index> by_storage_;  // of long lists of pairs
  size_t listed_ = 0;                  // of pairs_, in by_storage_
  c10::DeviceIndex device_ = -1;       // of the slot
  bool leaves_ = false;                // results are the inner device's own
  bool mixed_ = false;                 // an argument is on a device of kDeviceType
};

}  // namespace graft::binding::ve
