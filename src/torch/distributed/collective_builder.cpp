// src/torch/distributed/collective_builder.cpp: makes an exchange of the tensors that a caller of a
// collective gave.
#include "torch/distributed/collective_builder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/view_as_real.h>

#include "torch/device/type.h"
#include "torch/tensor/lazy_clone.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

using Op = c10d::ReduceOp::RedOpType;

bool bitwise(Op op) {
  return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
}

bool lazy(const at::Tensor& tensor) { return tensor.is_conj() || tensor.is_neg(); }

at::Tensor room_like(const at::Tensor& tensor, c10::ScalarType dtype) {
  return at::empty(tensor.sizes(), tensor.options().dtype(dtype));
}

}  // namespace

CollectiveReduction::CollectiveReduction(const c10d::ReduceOp& op, c10::ScalarType dtype, int size)
    : wire_op_(op.op_), wire_dtype_(c10::toRealValueType(dtype)), size_(size) {
  TORCH_CHECK(c10::isFloatingType(wire_dtype_) || c10::isIntegralType(wire_dtype_, true),
              "a collective of ", device_name(), " cannot reduce ", dtype);
  TORCH_CHECK(!c10::isFloat8Type(wire_dtype_), "a collective of ", device_name(), " cannot reduce ",
              dtype, ": convert it to bfloat16 first");
  TORCH_CHECK(!bitwise(wire_op_) || c10::isIntegralType(dtype, true), "a bitwise reduction got ",
              dtype, ": give integers or bool");
  const bool linear = wire_op_ == c10d::ReduceOp::SUM || wire_op_ == c10d::ReduceOp::AVG ||
                      wire_op_ == c10d::ReduceOp::PREMUL_SUM;
  TORCH_CHECK(linear || !c10::isComplexType(dtype), "a collective of ", device_name(), " reduces ",
              dtype, " by sums and means only");
  if (wire_op_ == c10d::ReduceOp::AVG) {
    TORCH_CHECK(dtype != at::kBool, "ReduceOp.AVG has no meaning for bool tensors: give numbers");
    average_ = true;
    wire_op_ = c10d::ReduceOp::SUM;
  } else if (wire_op_ == c10d::ReduceOp::PREMUL_SUM) {
    const auto* given = dynamic_cast<c10d::PreMulSumSupplement*>(op.supplement_.get());
    TORCH_CHECK(given != nullptr, "ReduceOp.PREMUL_SUM needs a factor");
    TORCH_CHECK(c10::isFloatingType(wire_dtype_),
                "ReduceOp.PREMUL_SUM takes floating tensors, got ", dtype);
    tensor_factor_ = given->tensor_factor;
    if (!tensor_factor_.defined()) factor_ = given->double_factor;
    wire_op_ = c10d::ReduceOp::SUM;
  }
  if (dtype == at::kBool) {  // a byte of 0 or 1: the sum is an or
    wire_dtype_ = at::kByte;
    if (wire_op_ == c10d::ReduceOp::SUM) wire_op_ = c10d::ReduceOp::MAX;
  } else if (wire_dtype_ == at::kShort) {
    wire_dtype_ = at::kInt;  // Gloo reduces no int16
  }
}

at::Tensor CollectiveReduction::target(const at::Tensor& tensor) const {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

at::Tensor CollectiveReduction::source(const at::Tensor& tensor) const {
  at::Tensor value = target(tensor.resolve_conj().resolve_neg());
  if (tensor_factor_.defined())
    value = value.mul(tensor_factor_.to(value.device(), value.scalar_type()));
  if (factor_) value = value.mul(*factor_);
  if (wire_dtype_ == at::kInt) value = value.to(at::kInt);
  return value.contiguous();
}

at::Tensor CollectiveReduction::room(const at::Tensor& tensor) const {
  const at::Tensor value = target(tensor);
  const bool fits = value.is_contiguous() && !lazy(value) &&
                    (value.scalar_type() == wire_dtype_ || value.scalar_type() == at::kBool);
  return fits ? value : room_like(value, wire_dtype_);
}

void CollectiveReduction::finish(at::Tensor buffer, const at::Tensor& tensor) const {
  if (average_ && c10::isIntegralType(buffer.scalar_type(), false)) {
    buffer.div_(size_, "trunc");
  } else if (average_) {
    buffer.div_(size_);
  }
  const at::Tensor to = target(tensor);
  const bool there = to.const_data_ptr() == buffer.const_data_ptr() && to.is_contiguous();
  if (!there) to.copy_(buffer);
}

void CollectiveBuilder::check(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().type() == kDeviceType, "this backend takes tensors of ",
              device_name(), ", not of ", tensor.device(),
              "; init_process_group() without a backend also takes tensors of the CPU");
  TORCH_CHECK(tensor.layout() == at::kStrided, "collectives take dense tensors, not ",
              tensor.layout(), ": call to_dense() first");
  if (!device_) device_ = tensor.device();
  TORCH_CHECK(*device_ == tensor.device(), "tensors of one collective are on ", *device_, " and ",
              tensor.device(), ": give tensors of one device on each rank");
}

Region CollectiveBuilder::region(const at::Tensor& tensor) {
  kept.push_back(tensor);
  if (lazy_clones_live()) own_memory(tensor);
  return {address_of(tensor), tensor.nbytes()};
}

Region CollectiveBuilder::input(const at::Tensor& tensor) {
  check(tensor);
  return region(tensor.resolve_conj().resolve_neg().contiguous());
}

Region CollectiveBuilder::output(const at::Tensor& tensor) {
  check(tensor);
  if (tensor.is_contiguous() && !lazy(tensor)) return region(tensor);
  const at::Tensor room = room_like(tensor, tensor.scalar_type());
  kept.push_back(tensor);
  finally.push_back([room, tensor] { tensor.copy_(room); });
  return region(room);
}

Region CollectiveBuilder::in_out(const at::Tensor& tensor, const CollectiveReduction& reduction,
                                 bool result_here) {
  check(tensor);
  const at::Tensor buffer = reduction.source(tensor);
  if (result_here) {
    kept.push_back(tensor);
    finally.push_back([buffer, tensor, reduction] { reduction.finish(buffer, tensor); });
  }
  return region(buffer);
}

Region CollectiveBuilder::input(const at::Tensor& tensor, const CollectiveReduction& reduction) {
  check(tensor);
  return region(reduction.source(tensor));
}

Region CollectiveBuilder::output(const at::Tensor& tensor, const CollectiveReduction& reduction) {
  check(tensor);
  const at::Tensor buffer = reduction.room(tensor);
  kept.push_back(tensor);
  finally.push_back([buffer, tensor, reduction] { reduction.finish(buffer, tensor); });
  return region(buffer);
}

void CollectiveBuilder::scatter_over(std::vector<Span>& spans, const Region& region) {
  const uint64_t bytes = region.bytes / spans.size();
  for (size_t part = 0; part < spans.size(); ++part) {
    spans[part].push_back({region.address + part * bytes, bytes});
  }
}

void CollectiveBuilder::measure(const std::vector<Span>& spans) {
  exchange.part_bytes = spans.empty() ? 0 : bytes_of(spans.front());
}

void CollectiveBuilder::use(const CollectiveReduction& reduction) {
  exchange.dtype = reduction.wire_dtype();
  exchange.reduction = reduction.wire_op();
}

}  // namespace graft::binding
