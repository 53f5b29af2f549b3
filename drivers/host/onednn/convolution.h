// drivers/host/onednn/convolution.h: plans of convolutions and their gradients.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_CONVOLUTION_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_CONVOLUTION_H_

#include <memory>

#include "plan.h"

namespace graft::host {

// Throws Unsupported or dnnl::error.
std::unique_ptr<LibraryPlan> plan_convolution(const graft_convolution& convolution);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_CONVOLUTION_H_
