// drivers/host/onednn/matmul.h: plans of matrix products.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_

#include <memory>

#include "plan.h"

namespace graft::host {

// Both throw Unsupported or dnnl::error. reads_addend: ResultShape's.
std::unique_ptr<LibraryPlan> plan_matmul(const graft_matmul& matmul);
std::unique_ptr<LibraryPlan> plan_product(const graft_matmul& matmul, bool reads_addend);

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_MATMUL_H_
