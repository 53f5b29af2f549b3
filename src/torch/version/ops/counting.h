// src/torch/version/ops/counting.h: from inside torch: histograms and sorting.
#pragma once

#include <ATen/native/Histogram.h>
#include <ATen/native/Sorting.h>
#include <ATen/native/SortingUtils.h>
#include <ATen/ops/histc_native.h>

namespace graft::binding::native {

using at::native::_reduction_with_indices_allocate_or_resize_output;
using at::native::histogram_histc;
using at::native::histogram_histc_out;
using at::native::histogram_select_outer_bin_edges_stub;
using at::native::histogramdd_linear_stub;
using at::native::histogramdd_stub;
using at::native::sort_stub;

}  // namespace graft::binding::native
