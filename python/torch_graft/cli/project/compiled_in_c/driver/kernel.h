/* driver/kernel.h: a kernel of a loaded program. */
#ifndef ACME_DRIVER_KERNEL_H_
#define ACME_DRIVER_KERNEL_H_

#include <pthread.h>

#include "driver.h"

struct graft_kernel_s {
  chip_kernel entry;
  graft_kernel next; /* of the same program, which owns both */
};

#endif /* ACME_DRIVER_KERNEL_H_ */
