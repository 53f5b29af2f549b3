// src/torch/version/ops/index.h: from inside torch: indexing, gathering and searching.
#pragma once

#include <ATen/native/IndexKernel.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/ReductionType.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/native/TensorAdvancedIndexingUtils.h>
#include <ATen/ops/_index_put_impl_native.h>

namespace graft::binding::native {

using at::native::_index_put_impl_;
using at::native::canDispatchToMaskedFill;
using at::native::checkIndexTensorTypes;
using at::native::expandTensors;
using at::native::gather_stub;
using at::native::hasContiguousSubspace;
using at::native::index_copy_stub;
using at::native::index_fill_stub;
using at::native::index_put_stub;
using at::native::index_put_with_sort_stub;
using at::native::index_stub;
using at::native::masked_fill_stub;
using at::native::put_stub;
using at::native::ReductionType;
using at::native::scatter_add_stub;
using at::native::scatter_fill_stub;
using at::native::scatter_reduce_stub;
using at::native::scatter_reduce_two_stub;
using at::native::scatter_scalar_reduce_stub;
using at::native::scatter_stub;
using at::native::take_stub;
using at::native::transposeToFront;

}  // namespace graft::binding::native
