/* kernels/kernel.h: the vendor's own kernels, each for one operator of graft.ops.
 *
 * For the real chip: write the kernels in its language, build them beside the driver, and let
 * `entry` be what your SDK launches. The list of operators, with each one's tensors, integers,
 * numbers and scalars, is the page docs/drivers/operations.md of Graft. */
#ifndef ACME_KERNELS_KERNEL_H_
#define ACME_KERNELS_KERNEL_H_

#include <stdbool.h>

#include "chip/chip.h"
#include "graft/descriptors.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kMaxTensors = 6, kMaxScalars = 6, kMaxIntegers = 12, kMaxNumbers = 6 };

/* What a plan keeps of a call; a kernel's first word is the address of one. Then come the addresses
 * of the tensors, written ones first, then the bits of the scalars. */
typedef struct kernel_call {
  uint32_t tensor_count, scalar_count;
  graft_tensor tensors[kMaxTensors];
  uint32_t scalar_dtypes[kMaxScalars];
  int64_t integers[kMaxIntegers];
  double numbers[kMaxNumbers];
} kernel_call;

typedef struct kernel {
  const char* name; /* of the operator */
  chip_kernel entry;
  bool (*takes)(const graft_operation* operation); /* NULL: all layouts in float32 */
} kernel;

/* The lists of the files, each ended by a name that is NULL. */
extern const kernel elementwise_kernels[];
extern const kernel matrix_kernels[];

/* The kernel of an operator; NULL if the chip has none. */
const kernel* kernel_named(const char* name);
/* Keeps what a kernel needs of operation in *out_call; false if the kernel cannot compute it. */
bool kernel_takes(const kernel* self, const graft_operation* operation, kernel_call* out_call);

/* Where element number `at`, in row-major order, stands. */
int64_t tensor_place(const graft_tensor* tensor, int64_t at);
int64_t tensor_count(const graft_tensor* tensor);
/* Whether the call has the tensor. */
bool tensor_given(const kernel_call* call, uint32_t i);
float scalar_value(const kernel_call* call, const chip_word* words, uint32_t i);

#ifdef __cplusplus
}
#endif

#endif /* ACME_KERNELS_KERNEL_H_ */
