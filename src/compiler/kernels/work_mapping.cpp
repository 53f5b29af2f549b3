// src/compiler/kernels/work_mapping.cpp: how a group's kernel deals its elements out to work-items.
#include <algorithm>

#include "compiler/kernels/group_kernel.h"

namespace graft::compiler {

namespace {

bool is_known(const GroupLoops& loops) {
  const auto constant = [](const Size& size) { return size.is_constant(); };
  return std::ranges::all_of(loops.sizes, constant) &&
         std::ranges::all_of(loops.tensors, [&](const GroupTensor& tensor) {
           return std::ranges::all_of(tensor.strides, constant);
         });
}

WorkMapping deal_of(const OpenDevice& device, const GroupKernel& kernel) {
  const GroupLoops& loops = kernel.loops;
  if (loops.reduces) return kernel.brief() ? WorkMapping::kSpans : deal_of_lines(device);
  if (!is_gpu_like(device)) return WorkMapping::kSpans;
  if (!is_known(loops)) return WorkMapping::kLanes;
  const Axes axes = loops.axes([](const Size& size) { return size.constant_part(); });
  return lanes_of(axes.span(), axes.operands);
}

}  // namespace

GroupKernel dealt_for(const OpenDevice& device, GroupKernel kernel) {
  kernel.deal = deal_of(device, kernel);
  kernel.key += suffix_of(kernel.deal);
  return kernel;
}

}  // namespace graft::compiler
