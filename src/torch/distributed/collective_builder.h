// src/torch/distributed/collective_builder.h: makes an exchange of the tensors that a caller of a
// collective gave.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <functional>
#include <optional>
#include <vector>

#include "torch/distributed/exchange.h"
#include "torch/version/c10d.h"

namespace graft::binding {

// What a reduction does to elements before they leave, on the wire and after they arrived: means,
// factors, and dtypes that the wire does not reduce go through operators of the device.
class CollectiveReduction {
 public:
  // Throws RuntimeError for an operation that the dtype does not have.
  CollectiveReduction(const c10d::ReduceOp& op, c10::ScalarType dtype, int size);

  c10d::ReduceOp::RedOpType wire_op() const { return wire_op_; }
  c10::ScalarType wire_dtype() const { return wire_dtype_; }

  // The tensor as reals where it is complex.
  at::Tensor target(const at::Tensor& tensor) const;

  // Its elements as they leave, contiguous: its own memory where nothing has to change.
  at::Tensor source(const at::Tensor& tensor) const;

  // Room for the result: the tensor's own memory, or another.
  at::Tensor room(const at::Tensor& tensor) const;

  // From what arrived to what the caller wants, in tensor.
  void finish(at::Tensor buffer, const at::Tensor& tensor) const;

 private:
  c10d::ReduceOp::RedOpType wire_op_;
  c10::ScalarType wire_dtype_;
  bool average_ = false;
  int size_;
  std::optional<double> factor_;
  at::Tensor tensor_factor_;
};

// Collects the parts of an exchange. All tensors lie on one device of ours, dense, or RuntimeError
// names what was given. Runs operators on the caller's current stream. One thread.
class CollectiveBuilder {
 public:
  // options: those of torch.distributed for the collective.
  template <class Options>
  CollectiveBuilder(Collective kind, const Options& options, int64_t root = 0) {
    exchange.kind = kind;
    exchange.timeout = options.timeout;
    exchange.asynchronous = options.asyncOp;
    exchange.root = static_cast<int>(root);
  }

  Exchange exchange;
  std::vector<at::Tensor> kept;                // the memory that the exchange uses
  std::vector<std::function<void()>> finally;  // what follows it on its stream

  // The memory of the elements of an input, or where those of an output are to go.
  Region input(const at::Tensor& tensor);
  Region output(const at::Tensor& tensor);

  // Memory that goes out and, where the result comes here, holds it afterwards.
  Region in_out(const at::Tensor& tensor, const CollectiveReduction& reduction, bool result_here);
  Region input(const at::Tensor& tensor, const CollectiveReduction& reduction);
  Region output(const at::Tensor& tensor, const CollectiveReduction& reduction);

  // Adds a tensor's memory, cut into equal parts, to the spans of all ranks.
  void scatter_over(std::vector<Span>& spans, const Region& region);

  // Sets part_bytes from the first span of a list.
  void measure(const std::vector<Span>& spans);

  void use(const CollectiveReduction& reduction);
  c10::Device device() const { return *device_; }

 private:
  Region region(const at::Tensor& tensor);
  void check(const at::Tensor& tensor);

  const at::NoGradGuard no_grad_;
  std::optional<c10::Device> device_;
};

}  // namespace graft::binding
