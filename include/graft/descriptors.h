/* include/graft/descriptors.h: what a driver's library or kernel is asked to compute, for the
 * extensions of graft/extensions.h, which includes this header. */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_DESCRIPTORS_H_
#define GRAFT_DESCRIPTORS_H_

#include "graft/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_plan_s* graft_plan;

#define GRAFT_MAX_RANK 8

/* A tensor without its address. Strides count elements and may be 0 (broadcast). */
/* The dimensions have PyTorch's order; a library reads the layout from the strides. */
typedef struct graft_tensor {
  uint32_t dtype; /* graft_dtype */
  uint32_t rank;
  int64_t sizes[GRAFT_MAX_RANK];
  int64_t strides[GRAFT_MAX_RANK];
} graft_tensor;

/* Steps that change a result before it is stored, in the order of the list. */
typedef enum graft_epilogue_kind {
  GRAFT_EPILOGUE_SCALE = 0, /* x * value */
  GRAFT_EPILOGUE_BIAS = 1,  /* x + operand; operand: a vector over the result's last dimension
                               (matmul) or its channels (convolution) */
  GRAFT_EPILOGUE_ADD = 2,   /* x + value * operand; operand: laid out as the result; a
                               convolution's does not overlap the result */
  /* The following are PyTorch's functions; NaN if x is NaN. */
  GRAFT_EPILOGUE_RELU = 3,
  GRAFT_EPILOGUE_GELU = 4,      /* by erf */
  GRAFT_EPILOGUE_GELU_TANH = 5, /* by tanh */
  GRAFT_EPILOGUE_SILU = 6,
  GRAFT_EPILOGUE_MINIMUM = 7,      /* the smaller one of x and value */
  GRAFT_EPILOGUE_CHANNEL_SCALE = 8 /* x * operand; operand: a vector, as for BIAS */
} graft_epilogue_kind;

/* One step of an epilogue. If the library lacks a step or does not know its kind, making the plan
 * returns UNSUPPORTED. Results of half types are rounded once, after the last step. */
typedef struct graft_epilogue {
  uint32_t kind;  /* graft_epilogue_kind */
  uint32_t dtype; /* of the operand; a vector may be float32 if the result is of a half type */
  double value;
} graft_epilogue;

/* Most steps of one descriptor. */
#define GRAFT_MAX_EPILOGUES 4

/* How much precision a library may give up for speed. */
typedef enum graft_math_mode {
  GRAFT_MATH_STRICT = 0, /* products and sums at least in the operands' precision */
  GRAFT_MATH_TF32 = 1,
  GRAFT_MATH_BF16 = 2
} graft_math_mode;

/* c = epilogues(a b). Rank 2, or 3 with a leading batch; a: [m, k], b: [k, n], c: [m, n]. */
/* Any strides; UNSUPPORTED if the library cannot take them. The caller sets struct_size. */
typedef struct graft_matmul {
  uint32_t struct_size;
  uint32_t math_mode;
  graft_tensor a, b, c;
  uint32_t epilogue_count;
  uint32_t unused;
  graft_epilogue epilogues[GRAFT_MAX_EPILOGUES];
} graft_matmul;

/* Which of the three tensors of a convolution is computed from the other two. */
typedef enum graft_convolution_kind {
  GRAFT_CONVOLUTION_FORWARD = 0,        /* writes output */
  GRAFT_CONVOLUTION_BACKWARD_INPUT = 1, /* output is the gradient; writes input */
  GRAFT_CONVOLUTION_BACKWARD_WEIGHT = 2 /* writes weight */
} graft_convolution_kind;

/* input: [n, c, spatial...], weight: [out channels, c / groups, spatial...] (transposed:
 * [c, out channels / groups, spatial...]), output: [n, out channels, spatial...]. */
typedef struct graft_convolution {
  uint32_t struct_size;
  uint32_t kind; /* graft_convolution_kind */
  uint32_t math_mode;
  uint32_t transposed;
  graft_tensor input, weight, output;
  int64_t stride[3], padding[3], dilation[3];
  int64_t groups;
  uint32_t epilogue_count; /* forward only */
  uint32_t unused;
  graft_epilogue epilogues[GRAFT_MAX_EPILOGUES];
} graft_convolution;

/* A plan's needs: bytes of scratch memory for one execution. Graft gives two executions that may
 * overlap two workspaces. The caller sets struct_size. */
typedef struct graft_plan_needs {
  uint32_t struct_size;
  uint32_t unused;
  uint64_t workspace_bytes;
} graft_plan_needs;

/* Addresses for one execution, in the order of the descriptor's tensors, then of the epilogues
 * (0 for an epilogue without operand). */
typedef struct graft_execution {
  uint32_t struct_size;
  uint32_t tag;
  graft_address tensors[3];
  graft_address operands[GRAFT_MAX_EPILOGUES];
  graft_address workspace;
} graft_execution;

/* The dtype of a tensor that a call of an operator does not have: rank 0. */
#define GRAFT_NO_TENSOR UINT32_MAX

/* One operator on tensors of these layouts: docs/drivers/operations.md lists the names, and the
 * order of each one's tensors, attributes and scalars. Every tensor has elements. The arrays are
 * read during the call. The caller sets struct_size. */
typedef struct graft_operation {
  uint32_t struct_size;
  uint32_t math_mode; /* graft_math_mode */
  const char* name;
  uint32_t tensor_count; /* written ones first */
  uint32_t scalar_count; /* numbers that come with each execution */
  uint32_t integer_count;
  uint32_t number_count;
  const graft_tensor* tensors;
  const uint32_t* scalar_dtypes; /* graft_dtype */
  const int64_t* integers;       /* attributes, which a plan may be made for */
  const double* numbers;         /* likewise */
} graft_operation;

GRAFT_STATIC_ASSERT(sizeof(graft_tensor) == 136, "the tensor's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_epilogue) == 16, "the epilogue's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_matmul) == 488, "the matmul's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_convolution) == 576, "the convolution's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_plan_needs) == 16, "the needs' layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_execution) == 72, "the execution's layout is frozen");
GRAFT_STATIC_ASSERT(sizeof(graft_operation) == 64, "the operation's layout is frozen");

#ifdef __cplusplus
}
#endif

#endif /* GRAFT_DESCRIPTORS_H_ */
