/* driver/operation.h: the extension graft.ops, by which Graft calls the kernels of kernels/. */
#ifndef ACME_DRIVER_OPERATION_H_
#define ACME_DRIVER_OPERATION_H_

#include "graft/extensions.h"

extern const graft_ops_table operation_table;

#endif /* ACME_DRIVER_OPERATION_H_ */
