// src/torch/ops/deformable_convolution.cpp: torchvision's deformable convolution.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <tuple>

#include "kernels/detection/deformable_patches.h"
#include "kernels/matmul/matmul.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/third_party.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

constexpr int64_t kColumnBytes = int64_t{64} << 20;  // of the patches that one product takes

// The tensors of a call, contiguous, and the sizes that follow from them.
class DeformableConvolution {
 public:
  DeformableConvolution(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& offset,
                        const at::Tensor& mask, const at::Tensor& bias, const int64_t (&numbers)[8],
                        bool use_mask)
      : input_(input),
        weight_(weight.contiguous()),
        offset_(offset.contiguous()),
        mask_(mask.contiguous()),
        groups_(numbers[6]),
        offset_groups_(numbers[7]),
        use_mask_(use_mask) {
    for (const at::Tensor* one : {&weight, &offset, &mask, &bias}) {
      TORCH_CHECK(
          one->device() == input.device(),
          "Expected all tensors to be on the same device, but deform_conv2d got tensors on ",
          input.device(), " and on ", one->device());
      TORCH_CHECK(one->scalar_type() == input.scalar_type() || (one == &mask && !use_mask),
                  "deform_conv2d: expected tensors of ", input.scalar_type(), ", got one of ",
                  one->scalar_type());
    }
    TORCH_CHECK(input.dim() == 4 && weight.dim() == 4 && offset.dim() == 4 &&
                    (!use_mask || mask.dim() == 4),
                "deform_conv2d: expected input, weight, offset and mask of 4 dimensions, got ",
                input.dim(), ", ", weight.dim(), ", ", offset.dim(), " and ", mask.dim());
    for (int d = 0; d < 2; ++d) {
      patches_.kernel[d] = weight.size(2 + d);
      patches_.stride[d] = numbers[d];
      patches_.padding[d] = numbers[2 + d];
      patches_.dilation[d] = numbers[4 + d];
    }
    check_numbers();
    for (int d = 0; d < 2; ++d) {
      const int64_t reach = patches_.dilation[d] * (patches_.kernel[d] - 1) + 1;
      out_[d] = (input.size(2 + d) + 2 * patches_.padding[d] - reach) / patches_.stride[d] + 1;
    }
    patches_.columns = out_[1];
    check_sizes(bias);
  }

  at::Tensor forward(const at::Tensor& bias) const {
    const at::Tensor out = at::empty(output_sizes(), input_.options());
    if (input_.size(1) == 0) out.zero_();
    each_chunk([&](int64_t first, int64_t count, const at::Tensor& columns) {
      fill_columns(columns, first, count);
      for (int64_t g = 0; g < groups_; ++g) {
        product(part(out, first, count, g), weights(g, count), matrices(columns, g));
      }
    });
    return out.add_(bias.view({1, -1, 1, 1}));
  }

  Gradients backward(const at::Tensor& given) const {
    TORCH_CHECK(given.sizes() == output_sizes() && given.scalar_type() == input_.scalar_type() &&
                    given.device() == input_.device(),
                "_deform_conv2d_backward: expected a gradient of ", input_.scalar_type(),
                " and size ", at::IntArrayRef(output_sizes()), " on ", input_.device(), ", got ",
                given.scalar_type(), " and ", given.sizes(), " on ", given.device());
    const at::Tensor grad = given.contiguous();
    const at::Tensor grad_input = at::empty(input_.sizes(), input_.options());
    const at::Tensor grad_weight = at::zeros_like(weight_), grad_mask = at::zeros_like(mask_);
    const at::Tensor grad_offset = at::zeros_like(offset_);
    each_chunk([&](int64_t first, int64_t count, const at::Tensor& columns) {
      for (int64_t g = 0; g < groups_; ++g) {
        product(matrices(columns, g), weights(g, count).transpose(1, 2),
                part(grad, first, count, g));
      }
      spread(grad_input, grad_offset, grad_mask, columns, first, count);
      fill_columns(columns, first, count);
      for (int64_t g = 0; g < groups_; ++g) {
        const at::Tensor slopes = part(grad, first, count, g);
        const at::Tensor samples = matrices(columns, g).transpose(1, 2);
        const at::Tensor sum = flat_weight(grad_weight).select(0, g);
        for (int64_t i = 0; i < count; ++i) add_product(sum, slopes[i], samples[i]);
      }
    });
    return {grad_input, grad_weight, grad_offset, grad_mask, grad.sum(at::IntArrayRef{0, 2, 3})};
  }

 private:
  void check_numbers() const {
    const auto& p = patches_;
    TORCH_CHECK(p.kernel[0] > 0 && p.kernel[1] > 0, "weight_h: ", p.kernel[0],
                " weight_w: ", p.kernel[1]);
    TORCH_CHECK(p.stride[0] > 0 && p.stride[1] > 0, "stride_h: ", p.stride[0],
                " stride_w: ", p.stride[1]);
    TORCH_CHECK(p.padding[0] >= 0 && p.padding[1] >= 0, "pad_h: ", p.padding[0],
                " pad_w: ", p.padding[1]);
    TORCH_CHECK(p.dilation[0] > 0 && p.dilation[1] > 0, "dilation_h: ", p.dilation[0],
                " dilation_w: ", p.dilation[1]);
    TORCH_CHECK(groups_ > 0 && offset_groups_ > 0,
                "deform_conv2d: expected at least one group, got ", groups_, " and ",
                offset_groups_, " of offsets");
  }

  void check_sizes(const at::Tensor& bias) const {
    const int64_t patch = patches_.kernel[0] * patches_.kernel[1];
    TORCH_CHECK(weight_.size(1) * groups_ == input_.size(1) && weight_.size(0) % groups_ == 0 &&
                    input_.size(1) % offset_groups_ == 0,
                "deform_conv2d: a weight of size ", weight_.sizes(), " in ", groups_,
                " groups and ", offset_groups_, " groups of offsets do not fit an input of size ",
                input_.sizes());
    TORCH_CHECK(bias.dim() == 1 && bias.size(0) == weight_.size(0),
                "deform_conv2d: expected a bias of ", weight_.size(0), " elements, got size ",
                bias.sizes());
    TORCH_CHECK(offset_.size(1) == offset_groups_ * 2 * patch,
                "offset.shape[1] is not valid: got: ", offset_.size(1),
                " expected: ", offset_groups_ * 2 * patch);
    TORCH_CHECK(!use_mask_ || mask_.size(1) == offset_groups_ * patch,
                "mask.shape[1] is not valid: got: ", mask_.size(1),
                " expected: ", offset_groups_ * patch);
    TORCH_CHECK(offset_.size(0) == input_.size(0), "invalid batch size of offset");
    TORCH_CHECK(!use_mask_ || mask_.size(0) == input_.size(0), "invalid batch size of mask");
    for (const at::Tensor* one : {&offset_, &mask_}) {
      if (one == &mask_ && !use_mask_) continue;
      TORCH_CHECK(one->size(2) == out_[0] && one->size(3) == out_[1],
                  one == &offset_ ? "offset" : "mask", " output dims: (", one->size(2), ", ",
                  one->size(3), ") - computed output dims: (", out_[0], ", ", out_[1], ")");
    }
    TORCH_CHECK(out_[0] > 0 && out_[1] > 0, "Calculated output size too small - out_h: ", out_[0],
                " out_w: ", out_[1]);
  }

  at::DimVector output_sizes() const { return {input_.size(0), weight_.size(0), out_[0], out_[1]}; }
  int64_t patch() const { return patches_.kernel[0] * patches_.kernel[1]; }
  int64_t locations() const { return out_[0] * out_[1]; }

  // body(first, count, columns) for parts of the batch whose columns [count, channels, patch,
  // locations] do not get too large.
  template <class Body>
  void each_chunk(Body body) const {
    const int64_t channels = input_.size(1), batch = input_.size(0);
    const int64_t bytes = channels * patch() * locations() * input_.element_size();
    if (bytes == 0) return;
    const int64_t most = std::clamp<int64_t>(kColumnBytes / bytes, 1, std::max<int64_t>(batch, 1));
    for (int64_t first = 0; first < batch; first += most) {
      const int64_t count = std::min(most, batch - first);
      body(first, count, at::empty({count, channels, patch(), locations()}, input_.options()));
    }
  }

  at::Tensor offsets(const at::Tensor& whole, int64_t first, int64_t count) const {
    return whole.narrow(0, first, count).view({count, offset_groups_, patch(), 2, locations()});
  }
  // Undefined without a mask.
  at::Tensor masks(const at::Tensor& whole, int64_t first, int64_t count) const {
    if (!use_mask_) return {};
    return whole.narrow(0, first, count).view({count, offset_groups_, patch(), locations()});
  }

  void fill_columns(const at::Tensor& columns, int64_t first, int64_t count) const {
    const at::Tensor mask = masks(mask_, first, count);
    const OptionalView mask_view(mask);
    deformable_patches(stream_of(input_), view_of(columns), view_of(input_.narrow(0, first, count)),
                       view_of(offsets(offset_, first, count)), mask_view.get(), patches_);
  }

  // From the gradient of a part's columns to those of the tensors that the columns come from.
  void spread(const at::Tensor& grad_input, const at::Tensor& grad_offset,
              const at::Tensor& grad_mask, const at::Tensor& grad_columns, int64_t first,
              int64_t count) const {
    const at::Tensor mask = masks(mask_, first, count), slopes = masks(grad_mask, first, count);
    const OptionalView mask_view(mask), slope_view(slopes);
    const TensorView columns = view_of(grad_columns), at = view_of(offsets(offset_, first, count));
    deformable_patches_offsets_backward(
        stream_of(input_), view_of(offsets(grad_offset, first, count)), slope_view.get(), columns,
        view_of(input_.narrow(0, first, count)), at, mask_view.get(), patches_);
    deformable_patches_images_backward(stream_of(input_),
                                       view_of(grad_input.narrow(0, first, count)), columns, at,
                                       mask_view.get(), patches_);
  }

  at::Tensor flat_weight(const at::Tensor& weight) const {
    return weight.view({groups_, weight.size(0) / groups_, weight.size(1) * patch()});
  }
  // A group's weight [count, outputs, elements of a patch], the same for each image.
  at::Tensor weights(int64_t group, int64_t count) const {
    const at::Tensor one = flat_weight(weight_).select(0, group);
    return one.unsqueeze(0).expand({count, one.size(0), one.size(1)});
  }
  // A group's columns [count, elements of a patch, locations].
  at::Tensor matrices(const at::Tensor& columns, int64_t group) const {
    const int64_t rows = columns.size(1) / groups_ * patch();
    return columns.view({columns.size(0), groups_, rows, locations()}).select(1, group);
  }
  // A group's outputs [count, outputs, locations].
  at::Tensor part(const at::Tensor& out, int64_t first, int64_t count, int64_t group) const {
    return out.narrow(0, first, count)
        .view({count, groups_, out.size(1) / groups_, locations()})
        .select(1, group);
  }

  static void product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
    if (out.numel() > 0) matmul(stream_of(out), view_of(out), view_of(a), view_of(b));
  }
  static void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
    const TensorView view = view_of(sum);
    MatmulEpilogue epilogue;
    epilogue.beta = 1;
    epilogue.addend = &view;
    if (sum.numel() > 0) matmul(stream_of(sum), view, view_of(a), view_of(b), epilogue);
  }

  const at::Tensor input_, weight_, offset_, mask_;
  const int64_t groups_, offset_groups_;
  const bool use_mask_;
  DeformablePatches patches_;
  int64_t out_[2];
};

void require_dtype(const at::Tensor& input) {
  const at::ScalarType type = input.scalar_type();
  require(type == at::kFloat || type == at::kDouble || type == at::kHalf);
}

at::Tensor deform_conv2d(const at::Tensor& input, const at::Tensor& weight,
                         const at::Tensor& offset, const at::Tensor& mask, const at::Tensor& bias,
                         int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                         int64_t dilation_h, int64_t dilation_w, int64_t groups,
                         int64_t offset_groups, bool use_mask) {
  require_dtype(input);
  const DeformableConvolution call(
      input, weight, offset, mask, bias,
      {stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups}, use_mask);
  return call.forward(bias);
}

Gradients deform_conv2d_backward(const at::Tensor& grad, const at::Tensor& input,
                                 const at::Tensor& weight, const at::Tensor& offset,
                                 const at::Tensor& mask, const at::Tensor& bias, int64_t stride_h,
                                 int64_t stride_w, int64_t pad_h, int64_t pad_w, int64_t dilation_h,
                                 int64_t dilation_w, int64_t groups, int64_t offset_groups,
                                 bool use_mask) {
  require_dtype(input);
  const DeformableConvolution call(
      input, weight, offset, mask, bias,
      {stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups}, use_mask);
  return call.backward(grad);
}

}  // namespace

#define GRAFT_DEFORMABLE                                                                     \
  "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int " \
  "stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int "         \
  "offset_groups, bool use_mask)"

TORCH_LIBRARY_IMPL(torchvision, GRAFT_DISPATCH_KEY, m) {
  implement_expected<CustomOp<"torchvision::deform_conv2d">, &deform_conv2d,
                     "deform_conv2d(" GRAFT_DEFORMABLE " -> Tensor">(m);
  implement_expected<CustomOp<"torchvision::_deform_conv2d_backward">, &deform_conv2d_backward,
                     "_deform_conv2d_backward(Tensor grad, " GRAFT_DEFORMABLE
                     " -> (Tensor, Tensor, Tensor, Tensor, Tensor)">(m);
}

}  // namespace graft::binding
