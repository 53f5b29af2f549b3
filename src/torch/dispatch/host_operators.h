// src/torch/dispatch/host_operators.h: operators of the fallback that PyTorch's CPU lacks, or has
// otherwise.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/operator_name.h>

namespace graft::binding {

// PyTorch calls some operators on accelerators alone: fused cells of LSTM and GRU, the parts of
// synchronised batch norm. Here they are for CPU tensors, made of ATen's operators, with the
// contracts of the kernels (kernels/training/recurrent.h, ops/sync_batch_norm.cpp): computed in
// float32 or float64 and rounded once. So are gradients for which the CPU's forward keeps something
// that the device's does not. Null for any other operator. Any thread.
const c10::KernelFunction* host_operator(const c10::OperatorName& name);

}  // namespace graft::binding
