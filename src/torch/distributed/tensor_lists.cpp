// src/torch/distributed/tensor_lists.cpp: the lists of tensors that callers of collectives give.
#include "torch/distributed/tensor_lists.h"

#include <c10/util/Exception.h>

#include <algorithm>

namespace graft::binding {

void check_one(const std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK(tensors.size() == 1, what, " takes one tensor on each rank, got ", tensors.size());
}

void check_same_dtype(const std::vector<at::Tensor>& tensors, const char* what) {
  TORCH_CHECK(!tensors.empty(), what, " takes at least one tensor");
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(), what,
                " takes tensors of one dtype, got ", tensors[0].scalar_type(), " and ",
                tensor.scalar_type());
  }
}

void check_pairs(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                 const char* what) {
  TORCH_CHECK(outputs.size() == inputs.size() && !inputs.empty(), what,
              " takes an output for each input, got ", outputs.size(), " for ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    TORCH_CHECK(outputs[i].scalar_type() == inputs[i].scalar_type(), what, ": the output is of ",
                outputs[i].scalar_type(), ", the input of ", inputs[i].scalar_type());
  }
}

void check_list(const std::vector<at::Tensor>& list, size_t size, const at::Tensor& like,
                const char* what) {
  TORCH_CHECK(list.size() == size, what, " takes a list of ", size, " tensors, got ", list.size());
  for (const at::Tensor& tensor : list) {
    TORCH_CHECK(tensor.numel() == like.numel() && tensor.scalar_type() == like.scalar_type(), what,
                ": a tensor of the list is ", tensor.scalar_type(), tensor.sizes(), ", expected ",
                like.scalar_type(), like.sizes());
  }
}

bool differ(const std::vector<at::Tensor>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const at::Tensor& one) { return one.numel() != list[0].numel(); });
}

std::vector<at::Tensor> flat(const std::vector<std::vector<at::Tensor>>& lists) {
  std::vector<at::Tensor> all;
  for (const std::vector<at::Tensor>& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

}  // namespace graft::binding
