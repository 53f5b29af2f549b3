// src/torch/distributed/tensor_lists.h: the lists of tensors that callers of collectives give.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

namespace graft::binding {

// The checks throw RuntimeError, which begins with what, the collective's name, and says what it
// takes and what it got. Any thread.

// One tensor.
void check_one(const std::vector<at::Tensor>& tensors, const char* what);

// At least one tensor, all of one dtype.
void check_same_dtype(const std::vector<at::Tensor>& tensors, const char* what);

// At least one input, and for each an output of its dtype.
void check_pairs(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& inputs,
                 const char* what);

// size tensors, each with as many elements as like, of its dtype.
void check_list(const std::vector<at::Tensor>& list, size_t size, const at::Tensor& like,
                const char* what);

// Whether the tensors of a list have several sizes. Every rank has the same list of sizes.
bool differ(const std::vector<at::Tensor>& list);

// The tensors of all lists, one list after the other.
std::vector<at::Tensor> flat(const std::vector<std::vector<at::Tensor>>& lists);

}  // namespace graft::binding
