// src/torch/version/ops/loss.h: from inside torch: losses of several labels.
#pragma once

#include <ATen/native/LossMulti.h>

namespace graft::binding::native {

using at::native::multi_margin_loss_shape_check;
using at::native::multilabel_margin_loss_shape_check;

}  // namespace graft::binding::native
