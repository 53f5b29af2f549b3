// src/torch/ve/faces.h: a tensor of the slot for one of the device that carries it, and back.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/quantized/Quantizer.h>
#include <c10/core/Storage.h>
#include <c10/util/FunctionRef.h>

#include <string_view>

#include "torch/ve/slot.h"

namespace graft::binding::ve {

// Which of the two a new tensor is.
enum class Face { kInner, kOuter };

// The same for a tensor that another one is made of: indices, values, scales, zero points.
using Part = c10::function_ref<at::Tensor(const at::Tensor&)>;

// A tensor over storage with the sizes, strides, dtype and lazy bits of a strided tensor. Autograd
// follows it unless inference is set, as InferenceMode has it.
at::Tensor dense_face(const at::Tensor& of, Face face, c10::Storage storage, bool inference);

// The same for a quantized tensor; its quantizer is the original's.
at::Tensor quantized_face(const at::Tensor& of, Face face, c10::Storage storage, Part part);

// A COO tensor whose parts are the faces of the original's.
at::Tensor sparse_face(const at::Tensor& of, Face face, Part part);

// Throws NotImplementedError: PyTorch has no CSR, CSC, BSR or BSC tensors of the slot.
[[noreturn]] void refuse_compressed(std::string_view operation);

// Gives a COO tensor the sizes and the faces of the parts that another has.
void take_parts(const at::Tensor& to, const at::Tensor& from, Part part);

}  // namespace graft::binding::ve
