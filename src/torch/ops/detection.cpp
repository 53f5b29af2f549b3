// src/torch/ops/detection.cpp: torchvision's operators on boxes.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/sort.h>

#include <tuple>

#include "kernels/detection/box_suppression.h"
#include "kernels/detection/region.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/third_party.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Pair = std::tuple<at::Tensor, at::Tensor>;

// The CPU's kernels take float16 where they interpolate.
enum class Takes { kHalf, kSingle };

void require_dtype(Takes takes, const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  require(type == at::kFloat || type == at::kDouble ||
          (takes == Takes::kHalf && type == at::kHalf));
}

void check_place(const char* name, const at::Tensor& a, const at::Tensor& b) {
  TORCH_CHECK(a.device() == b.device(), "Expected all tensors to be on the same device, but ", name,
              " got tensors on ", a.device(), " and on ", b.device());
}

at::Tensor nms(const at::Tensor& dets, const at::Tensor& scores, double iou_threshold) {
  check_place("nms", dets, scores);
  TORCH_CHECK(dets.dim() == 2, "boxes should be a 2d tensor, got ", dets.dim(), "D");
  TORCH_CHECK(dets.size(1) == 4, "boxes should have 4 elements in dimension 1, got ", dets.size(1));
  TORCH_CHECK(scores.dim() == 1, "scores should be a 1d tensor, got ", scores.dim(), "D");
  TORCH_CHECK(dets.size(0) == scores.size(0),
              "boxes and scores should have same number of elements in dimension 0, got ",
              dets.size(0), " and ", scores.size(0));
  require_dtype(Takes::kSingle, dets);
  TORCH_CHECK(dets.scalar_type() == scores.scalar_type(),
              "dets should have the same type as scores");
  if (dets.numel() == 0) return at::empty({0}, dets.options().dtype(at::kLong));
  const at::Tensor order = std::get<1>(at::sort(scores, /*stable=*/true, 0, /*descending=*/true));
  const at::Tensor boxes = dets.t().index_select(1, order).contiguous();
  const at::Tensor kept = at::empty({dets.size(0)}, dets.options().dtype(at::kBool));
  suppress_boxes(stream_of(dets), view_of(kept), view_of(boxes), iou_threshold);
  return at::masked_select(order, kept);
}

// What an operator on regions was given.
class GivenRegions {
 public:
  GivenRegions(const char* name, const at::Tensor& tensor, const at::Tensor& rois, double scale,
               at::IntArrayRef pooled, bool positional)
      : name_(name), boxes_(rois.contiguous()), pooled_(pooled) {
    check_place(name, tensor, rois);
    TORCH_CHECK(tensor.dim() == 4, name, ": expected a tensor of 4 dimensions, got ", tensor.dim());
    TORCH_CHECK(rois.dim() == 2 && rois.size(1) == 5, name,
                ": rois must have shape as Tensor[K, 5], got ", rois.sizes());
    TORCH_CHECK(tensor.scalar_type() == rois.scalar_type(), name,
                ": input should have the same type as rois, got ", tensor.scalar_type(), " and ",
                rois.scalar_type());
    TORCH_CHECK(pooled[0] > 0 && pooled[1] > 0, name, ": expected at least one bin, got ", pooled);
    regions_.boxes = view_of(boxes_);
    regions_.scale = scale;
    regions_.positional = positional;
  }

  // The sizes of the bins of images with that many channels.
  at::DimVector bins(int64_t channels) const {
    const int64_t per_channel = regions_.positional ? pooled_[0] * pooled_[1] : 1;
    TORCH_CHECK(channels % per_channel == 0, name_,
                ": input channels must be a multiple of pooling height * pooling width");
    return {boxes_.size(0), channels / per_channel, pooled_[0], pooled_[1]};
  }
  void check_bins(const at::Tensor& tensor, int64_t channels) const {
    const at::DimVector expected = bins(channels);
    TORCH_CHECK(tensor.sizes() == expected, name_, ": expected a tensor of size ",
                at::IntArrayRef(expected), ", got ", tensor.sizes());
  }
  // Of a tensor that a forward pass returned beside the bins.
  at::Tensor whole(const at::Tensor& tensor, const at::Tensor& grad) const {
    check_place(name_, grad, tensor);
    check_scalar_type(tensor, at::kInt);
    TORCH_CHECK(tensor.sizes() == grad.sizes(), name_, ": expected a tensor of size ", grad.sizes(),
                ", got ", tensor.sizes());
    return tensor.contiguous();
  }

  const BinnedRegions& regions() const { return regions_; }

 private:
  const char* const name_;
  const at::Tensor boxes_;
  const at::DimVector pooled_;
  BinnedRegions regions_;
};

// The channel of the images behind each positional bin.
at::Tensor channel_mapping(const at::Tensor& input, const at::DimVector& bins) {
  const int64_t channels = bins[1] * bins[2] * bins[3];
  const at::Tensor one = at::arange(channels, input.options().dtype(at::kInt));
  return one.view({1, bins[1], bins[2], bins[3]}).expand(bins).contiguous();
}

at::Tensor roi_align(const at::Tensor& input, const at::Tensor& rois, double spatial_scale,
                     int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio,
                     bool aligned) {
  const GivenRegions given("roi_align", input, rois, spatial_scale, {pooled_height, pooled_width},
                           false);
  require_dtype(Takes::kHalf, input);
  const at::Tensor out = at::empty(given.bins(input.size(1)), input.options());
  region_align(stream_of(input), view_of(out), view_of(input), given.regions(),
               {sampling_ratio, aligned});
  return out;
}

at::Tensor roi_align_backward(const at::Tensor& grad, const at::Tensor& rois, double spatial_scale,
                              int64_t pooled_height, int64_t pooled_width, int64_t batch_size,
                              int64_t channels, int64_t height, int64_t width,
                              int64_t sampling_ratio, bool aligned) {
  const GivenRegions given("_roi_align_backward", grad, rois, spatial_scale,
                           {pooled_height, pooled_width}, false);
  require_dtype(Takes::kHalf, grad);
  given.check_bins(grad, channels);
  const at::Tensor out = at::empty({batch_size, channels, height, width}, grad.options());
  region_align_backward(stream_of(grad), view_of(out), view_of(grad), given.regions(),
                        {sampling_ratio, aligned});
  return out;
}

Pair ps_roi_align(const at::Tensor& input, const at::Tensor& rois, double spatial_scale,
                  int64_t pooled_height, int64_t pooled_width, int64_t sampling_ratio) {
  const GivenRegions given("ps_roi_align", input, rois, spatial_scale,
                           {pooled_height, pooled_width}, true);
  require_dtype(Takes::kHalf, input);
  const at::DimVector bins = given.bins(input.size(1));
  const at::Tensor out = at::empty(bins, input.options());
  region_align(stream_of(input), view_of(out), view_of(input), given.regions(),
               {sampling_ratio, true});
  return {out, channel_mapping(input, bins)};
}

// The mapping is the one that the forward pass returns for each input.
at::Tensor ps_roi_align_backward(const at::Tensor& grad, const at::Tensor& rois,
                                 const at::Tensor& mapping, double spatial_scale,
                                 int64_t pooled_height, int64_t pooled_width,
                                 int64_t sampling_ratio, int64_t batch_size, int64_t channels,
                                 int64_t height, int64_t width) {
  const GivenRegions given("_ps_roi_align_backward", grad, rois, spatial_scale,
                           {pooled_height, pooled_width}, true);
  require_dtype(Takes::kHalf, grad);
  given.check_bins(grad, channels);
  given.whole(mapping, grad);
  const at::Tensor out = at::empty({batch_size, channels, height, width}, grad.options());
  region_align_backward(stream_of(grad), view_of(out), view_of(grad), given.regions(),
                        {sampling_ratio, true});
  return out;
}

Pair roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale,
              int64_t pooled_height, int64_t pooled_width) {
  const GivenRegions given("roi_pool", input, rois, spatial_scale, {pooled_height, pooled_width},
                           false);
  require_dtype(Takes::kSingle, input);
  const at::Tensor out = at::empty(given.bins(input.size(1)), input.options());
  const at::Tensor positions = at::empty(out.sizes(), input.options().dtype(at::kInt));
  region_max(stream_of(input), view_of(out), view_of(positions), view_of(input), given.regions());
  return {out, positions};
}

at::Tensor roi_pool_backward(const at::Tensor& grad, const at::Tensor& rois,
                             const at::Tensor& argmax, double spatial_scale, int64_t pooled_height,
                             int64_t pooled_width, int64_t batch_size, int64_t channels,
                             int64_t height, int64_t width) {
  const GivenRegions given("_roi_pool_backward", grad, rois, spatial_scale,
                           {pooled_height, pooled_width}, false);
  require_dtype(Takes::kSingle, grad);
  given.check_bins(grad, channels);
  const at::Tensor positions = given.whole(argmax, grad);
  const at::Tensor out = at::empty({batch_size, channels, height, width}, grad.options());
  region_max_backward(stream_of(grad), view_of(out), view_of(grad), view_of(positions),
                      given.regions());
  return out;
}

Pair ps_roi_pool(const at::Tensor& input, const at::Tensor& rois, double spatial_scale,
                 int64_t pooled_height, int64_t pooled_width) {
  const GivenRegions given("ps_roi_pool", input, rois, spatial_scale, {pooled_height, pooled_width},
                           true);
  require_dtype(Takes::kSingle, input);
  const at::DimVector bins = given.bins(input.size(1));
  const at::Tensor out = at::empty(bins, input.options());
  region_average(stream_of(input), view_of(out), view_of(input), given.regions());
  return {out, channel_mapping(input, bins)};
}

at::Tensor ps_roi_pool_backward(const at::Tensor& grad, const at::Tensor& rois,
                                const at::Tensor& mapping, double spatial_scale,
                                int64_t pooled_height, int64_t pooled_width, int64_t batch_size,
                                int64_t channels, int64_t height, int64_t width) {
  const GivenRegions given("_ps_roi_pool_backward", grad, rois, spatial_scale,
                           {pooled_height, pooled_width}, true);
  require_dtype(Takes::kSingle, grad);
  given.check_bins(grad, channels);
  given.whole(mapping, grad);
  const at::Tensor out = at::empty({batch_size, channels, height, width}, grad.options());
  region_average_backward(stream_of(grad), view_of(out), view_of(grad), given.regions());
  return out;
}

}  // namespace

// Registers a function for an operator of torchvision with that schema.
#define GRAFT_VISION(name, function, arguments, results) \
  implement_expected<CustomOp<"torchvision::" name>, &function, name arguments " -> " results>(m)
#define GRAFT_POOLED "Tensor rois, float spatial_scale, int pooled_height, int pooled_width"
#define GRAFT_MAPPED "float spatial_scale, int pooled_height, int pooled_width"
#define GRAFT_IMAGES "int batch_size, int channels, int height, int width"

TORCH_LIBRARY_IMPL(torchvision, GRAFT_DISPATCH_KEY, m) {
  GRAFT_VISION("nms", nms, "(Tensor dets, Tensor scores, float iou_threshold)", "Tensor");
  GRAFT_VISION("roi_align", roi_align,
               "(Tensor input, " GRAFT_POOLED ", int sampling_ratio, bool aligned)", "Tensor");
  GRAFT_VISION("_roi_align_backward", roi_align_backward,
               "(Tensor grad, " GRAFT_POOLED ", " GRAFT_IMAGES
               ", int sampling_ratio, bool aligned)",
               "Tensor");
  GRAFT_VISION("ps_roi_align", ps_roi_align, "(Tensor input, " GRAFT_POOLED ", int sampling_ratio)",
               "(Tensor, Tensor)");
  GRAFT_VISION("_ps_roi_align_backward", ps_roi_align_backward,
               "(Tensor grad, Tensor rois, Tensor channel_mapping, " GRAFT_MAPPED
               ", int sampling_ratio, " GRAFT_IMAGES ")",
               "Tensor");
  GRAFT_VISION("roi_pool", roi_pool, "(Tensor input, " GRAFT_POOLED ")", "(Tensor, Tensor)");
  GRAFT_VISION("_roi_pool_backward", roi_pool_backward,
               "(Tensor grad, Tensor rois, Tensor argmax, " GRAFT_MAPPED ", " GRAFT_IMAGES ")",
               "Tensor");
  GRAFT_VISION("ps_roi_pool", ps_roi_pool, "(Tensor input, " GRAFT_POOLED ")", "(Tensor, Tensor)");
  GRAFT_VISION("_ps_roi_pool_backward", ps_roi_pool_backward,
               "(Tensor grad, Tensor rois, Tensor channel_mapping, " GRAFT_MAPPED ", " GRAFT_IMAGES
               ")",
               "Tensor");
}

// As torchvision's own registrations for CUDA and the CPU.
TORCH_LIBRARY_IMPL(torchvision, GRAFT_AUTOCAST_KEY, m) {
  for (const char* name :
       {"nms", "roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "deform_conv2d"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&call_in_float32>());
  }
}

}  // namespace graft::binding
