// src/torch/ops/padding.cpp: padding by reflection and by the edge, and its gradients.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/reflection_pad1d_backward_ops.h>
#include <ATen/ops/reflection_pad3d_backward_ops.h>
#include <ATen/ops/replication_pad1d_backward_ops.h>

#include <algorithm>
#include <vector>

#include "kernels/resample/pad.h"
#include "operators.h"
#include "torch/device/scope.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/minor.h"

namespace graft::binding {
namespace {

// padding: before and after, the last dimension first.
std::vector<Padding::Edge> edges_of(at::IntArrayRef padding) {
  std::vector<Padding::Edge> edges;
  for (size_t i = padding.size() / 2; i-- > 0;) {
    edges.push_back({padding[2 * i], padding[2 * i + 1]});
  }
  return edges;
}

void forward(Padding::Mode mode, const at::Tensor& self, at::IntArrayRef padding,
             const at::Tensor& out) {
  require(self.scalar_type() != at::kBool);
  if (out.numel() == 0) return;
  const bool moves = std::ranges::any_of(padding, [](int64_t size) { return size != 0; });
  moves ? require_separate(out, {&self}) : require_in_place_or_separate(out, self);
  pad(stream_of(self), view_of(out), view_of(self), {mode, edges_of(padding)});
}

void backward(Padding::Mode mode, const at::Tensor& grad_output, at::IntArrayRef padding,
              const at::Tensor& grad_input) {
  pad_backward(stream_of(grad_output), view_of(grad_input), view_of(grad_output),
               {mode, edges_of(padding)});
}

at::DimVector padded(const at::Tensor& self, at::IntArrayRef padding) {
  at::DimVector sizes(self.sizes().begin(), self.sizes().end());
  for (size_t i = 0; 2 * i < padding.size(); ++i) {
    sizes[sizes.size() - 1 - i] += padding[2 * i] + padding[2 * i + 1];
  }
  return sizes;
}

// What upstream checks for gradients that have no meta function, and what it takes on trust: the
// number of paddings and of dimensions. planes: the dimensions that are padded.
void check_gradient(int64_t planes, const at::Tensor& grad_output, const at::Tensor& self,
                    at::IntArrayRef padding) {
  TORCH_CHECK(static_cast<int64_t>(padding.size()) == 2 * planes, "padding size is expected to be ",
              2 * planes, ", but got: ", padding.size());
  TORCH_CHECK(self.dim() == planes + 1 || self.dim() == planes + 2, "Expected ", planes + 1,
              "D or ", planes + 2, "D input, but got: ", self.sizes());
  TORCH_CHECK(grad_output.dim() == self.dim() && grad_output.scalar_type() == self.scalar_type(),
              "grad_output unexpected. Expected: ", self.dim(), " dimensions of ",
              self.scalar_type(), ", Got: ", grad_output.dim(), " of ", grad_output.scalar_type());
  TORCH_CHECK(grad_output.sizes().slice(0, self.dim() - planes) ==
                  self.sizes().slice(0, self.dim() - planes),
              "grad_output planes unexpected. Expected: ", self.sizes(),
              ", Got: ", grad_output.sizes());
  const at::DimVector sizes = padded(self, padding);
  static const char* const kNames[] = {"width", "height", "depth"};
  for (size_t i = 0; 2 * i < padding.size(); ++i) {
    const auto at = static_cast<int64_t>(sizes.size() - 1 - i);
    TORCH_CHECK(sizes[at] == grad_output.size(at), "grad_output ", kNames[i],
                " unexpected. Expected: ", sizes[at], ", Got: ", grad_output.size(at));
  }
}

at::Tensor& gradient_into(Padding::Mode mode, int64_t planes, const at::Tensor& grad_output,
                          const at::Tensor& self, at::IntArrayRef padding, at::Tensor& grad_input) {
  check_gradient(planes, grad_output, self, padding);
  grad_input.resize_as_(self, self.suggest_memory_format());
  backward(mode, grad_output, padding, grad_input);
  return grad_input;
}

at::Tensor gradient_like(const at::Tensor& self) {
  return at::empty_like(self, self.suggest_memory_format());
}

template <Padding::Mode mode, int64_t planes>
at::Tensor& whole_gradient_into(const at::Tensor& grad_output, const at::Tensor& self,
                                at::IntArrayRef padding, at::Tensor& grad_input) {
  for (const at::Tensor& tensor : {grad_output, grad_input}) {
    TORCH_CHECK(tensor.device() == self.device(),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                self.device(), " and ", tensor.device(), "!");
  }
  TORCH_CHECK(grad_input.scalar_type() == self.scalar_type(), "Expected out tensor to have dtype ",
              self.scalar_type(), ", but got ", grad_input.scalar_type(), " instead");
  const DeviceScope device(self.device());
  return gradient_into(mode, planes, grad_output, self, padding, grad_input);
}

template <Padding::Mode mode, int64_t planes>
at::Tensor whole_gradient(const at::Tensor& grad_output, const at::Tensor& self,
                          at::IntArrayRef padding) {
  at::Tensor grad_input = gradient_like(self);
  return whole_gradient_into<mode, planes>(grad_output, self, padding, grad_input);
}

}  // namespace

// Operators of all modes and ranks by their names.
#define GRAFT_PADS(into, mode)                                                        \
  void into(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) { \
    forward(Padding::mode, self, padding, out);                                       \
  }
#define GRAFT_PAD_GRADIENT(into, gradient, mode, planes)                                           \
  at::Tensor& into(const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, \
                   at::Tensor& grad_input) {                                                       \
    return gradient_into(Padding::mode, planes, grad_output, self, padding, grad_input);           \
  }                                                                                                \
  at::Tensor gradient(const at::Tensor& grad_output, const at::Tensor& self,                       \
                      at::IntArrayRef padding) {                                                   \
    at::Tensor grad_input = gradient_like(self);                                                   \
    return into(grad_output, self, padding, grad_input);                                           \
  }

GRAFT_PADS(GRAFT_STRUCTURED(reflection_pad1d_out), kReflect)
GRAFT_PADS(GRAFT_STRUCTURED(reflection_pad3d_out), kReflect)
GRAFT_PADS(GRAFT_STRUCTURED(replication_pad1d_out), kReplicate)
GRAFT_PADS(GRAFT_STRUCTURED(replication_pad2d_out), kReplicate)
GRAFT_PADS(GRAFT_STRUCTURED(replication_pad3d_out), kReplicate)
GRAFT_PAD_GRADIENT(GRAFT_OPERATOR(reflection_pad2d_backward_grad_input),
                   GRAFT_OPERATOR(reflection_pad2d_backward), kReflect, 2)
GRAFT_PAD_GRADIENT(GRAFT_OPERATOR(replication_pad2d_backward_grad_input),
                   GRAFT_OPERATOR(replication_pad2d_backward), kReplicate, 2)
GRAFT_PAD_GRADIENT(GRAFT_OPERATOR(replication_pad3d_backward_grad_input),
                   GRAFT_OPERATOR(replication_pad3d_backward), kReplicate, 3)

at::Tensor& GRAFT_OPERATOR(reflection_pad2d_out)(const at::Tensor& self, at::IntArrayRef padding,
                                                 at::Tensor& out) {
  native::check_valid_input<2>(self, padding);
  const int64_t width = self.size(-1), height = self.size(-2);
  TORCH_CHECK(padding[0] < width && padding[1] < width,
              "Argument #4: Padding size should be less than the corresponding input dimension, "
              "but got: padding (",
              padding[0], ", ", padding[1], ") at dimension ", self.dim() - 1, " of input ",
              self.sizes());
  TORCH_CHECK(padding[2] < height && padding[3] < height,
              "Argument #6: Padding size should be less than the corresponding input dimension, "
              "but got: padding (",
              padding[2], ", ", padding[3], ") at dimension ", self.dim() - 2, " of input ",
              self.sizes());
  const at::DimVector sizes = padded(self, padding);
  TORCH_CHECK(sizes[sizes.size() - 1] >= 1 || sizes[sizes.size() - 2] >= 1, "input (H: ", height,
              ", W: ", width, ") is too small. Calculated output H: ", sizes[sizes.size() - 2],
              " W: ", sizes[sizes.size() - 1]);
  out.resize_(sizes, self.dim() == 4 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous);
  forward(Padding::kReflect, self, padding, out);
  return out;
}
at::Tensor GRAFT_OPERATOR(reflection_pad2d)(const at::Tensor& self, at::IntArrayRef padding) {
  at::Tensor out = at::empty({0}, self.options());
  return GRAFT_OPERATOR(reflection_pad2d_out)(self, padding, out);
}

// Whole, since upstream's shape functions of these three read paddings that are not there.
TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  namespace op = at::_ops;
  implement<op::reflection_pad1d_backward, &whole_gradient<Padding::kReflect, 1>>(m);
  implement<op::reflection_pad3d_backward, &whole_gradient<Padding::kReflect, 3>>(m);
  implement<op::replication_pad1d_backward, &whole_gradient<Padding::kReplicate, 1>>(m);
  implement<op::reflection_pad1d_backward_grad_input, &whole_gradient_into<Padding::kReflect, 1>>(
      m);
  implement<op::reflection_pad3d_backward_grad_input, &whole_gradient_into<Padding::kReflect, 3>>(
      m);
  implement<op::replication_pad1d_backward_grad_input,
            &whole_gradient_into<Padding::kReplicate, 1>>(m);
}

}  // namespace graft::binding
