// drivers/host/onednn/matmul.h: plans of matrix products.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_

#include <memory>

#include "plan.h"

namespace graft::host {

// Throws Unsupported or dnnl::error.
std::unique_ptr<LibraryPlan> plan_matmul(const graft_matmul& matmul);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_
