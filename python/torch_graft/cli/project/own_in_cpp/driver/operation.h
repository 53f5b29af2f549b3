// driver/operation.h: the slots of graft.ops, by which Graft calls the kernels of kernels/.
#ifndef ACME_DRIVER_OPERATION_H_
#define ACME_DRIVER_OPERATION_H_

#include "graft/extensions.h"

namespace acme_driver {

struct OperationSlots {
  static graft_status operation_known(graft_device device, const char* name);
  static graft_status operation_plan(graft_device device, const graft_operation* operation,
                                     graft_plan_needs* out_needs, graft_plan* out_plan);
  static graft_status operation_execute(graft_stream stream, graft_plan plan,
                                        const graft_launch* launch);
  static graft_status plan_destroy(graft_plan plan);
};

}  // namespace acme_driver

#endif  // ACME_DRIVER_OPERATION_H_
