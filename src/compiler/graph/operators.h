// src/compiler/graph/operators.h: the operators that nodes have, each with what is known of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/ops/op_table.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

enum class OpClass : uint8_t {
  kOther,
  kPointwise,    // a row of the op table
  kReduction,    // along given dimensions
  kView,         // results share memory with the first operand
  kCopy,         // the same elements in other memory or another dtype
  kFill,         // one number everywhere
  kMatmul,       // mm, bmm, addmm, baddbmm
  kConvolution,  // aten.convolution.default
  kImage,        // gives its results the layout of its operand
  kRandom
};

// The operators that the compiler asks for one by one: (enumerator, class, overload of ATen's with
// its arguments, as Op::aten has them). What is known of an elementwise one stands in its row of
// the op table.
#define GRAFT_OPERATORS(X)                                                                      \
  X(kAbs, kPointwise, "abs.default")                                                            \
  X(kAddScalar, kPointwise, "add.Scalar")                                                       \
  X(kAddTensor, kPointwise, "add.Tensor")                                                       \
  X(kCeil, kPointwise, "ceil.default")                                                          \
  X(kDivScalar, kPointwise, "div.Scalar")                                                       \
  X(kDivTensor, kPointwise, "div.Tensor")                                                       \
  X(kExp, kPointwise, "exp.default")                                                            \
  X(kFloor, kPointwise, "floor.default")                                                        \
  X(kGelu, kPointwise, "gelu.default")                                                          \
  X(kHardtanh, kPointwise, "hardtanh.default")                                                  \
  X(kLog, kPointwise, "log.default")                                                            \
  X(kLogicalNot, kPointwise, "logical_not.default")                                             \
  X(kMaskedFill, kPointwise, "masked_fill.Scalar")                                              \
  X(kMulScalar, kPointwise, "mul.Scalar")                                                       \
  X(kMulTensor, kPointwise, "mul.Tensor")                                                       \
  X(kNeg, kPointwise, "neg.default")                                                            \
  X(kPowScalar, kPointwise, "pow.Tensor_Scalar")                                                \
  X(kRelu, kPointwise, "relu.default")                                                          \
  X(kRound, kPointwise, "round.default")                                                        \
  X(kRsqrt, kPointwise, "rsqrt.default")                                                        \
  X(kSilu, kPointwise, "silu.default")                                                          \
  X(kSubScalar, kPointwise, "sub.Scalar")                                                       \
  X(kSubTensor, kPointwise, "sub.Tensor")                                                       \
  X(kTrunc, kPointwise, "trunc.default")                                                        \
  X(kWhere, kPointwise, "where.self")                                                           \
  X(kToCopy, kCopy, "_to_copy.default")                                                         \
  X(kClone, kCopy, "clone.default")                                                             \
  X(kLiftFreshCopy, kCopy, "lift_fresh_copy.default")                                           \
  X(kAmax, kReduction, "amax.default(self,dim,keepdim)")                                        \
  X(kAmin, kReduction, "amin.default(self,dim,keepdim)")                                        \
  X(kMean, kReduction, "mean.dim(self,dim,keepdim)")                                            \
  X(kSum, kReduction, "sum.dim_IntList(self,dim,keepdim)")                                      \
  X(kUnsafeView, kView, "_unsafe_view.default(self,size)")                                      \
  X(kAlias, kView, "alias.default(self)")                                                       \
  X(kAsStrided, kView, "as_strided.default(self,size,stride,storage_offset)")                   \
  X(kDetach, kView, "detach.default(self)")                                                     \
  X(kDiagonal, kView, "diagonal.default(self,offset=0,dim1=0,dim2=1)")                          \
  X(kExpand, kView, "expand.default(self,size,implicit)")                                       \
  X(kPermute, kView, "permute.default(self,dims)")                                              \
  X(kReshape, kView, "reshape.default(self,shape)")                                             \
  X(kSelect, kView, "select.int(self,dim,index)")                                               \
  X(kSlice, kView, "slice.Tensor(self,dim=0,start=0,end,step)")                                 \
  X(kSplit, kView, "split.Tensor(self,split_size,dim=0)")                                       \
  X(kSplitWithSizes, kView, "split_with_sizes.default(self,split_sizes,dim=0)")                 \
  X(kT, kView, "t.default(self)")                                                               \
  X(kTranspose, kView, "transpose.int(self,dim0,dim1)")                                         \
  X(kUnbind, kView, "unbind.int(self,dim=0)")                                                   \
  X(kView, kView, "view.default(self,size)")                                                    \
  X(kFull, kFill, "full.default(size,fill_value)")                                              \
  X(kZeros, kFill, "zeros.default(size,=0)")                                                    \
  X(kAddmm, kMatmul, "addmm.default(self,mat1,mat2,beta=1,alpha=1)")                            \
  X(kBaddbmm, kMatmul, "baddbmm.default(self,batch1,batch2,beta=1,alpha=1)")                    \
  X(kBmm, kMatmul, "bmm.default(self,mat2)")                                                    \
  X(kMm, kMatmul, "mm.default(self,mat2)")                                                      \
  X(kConvolution, kConvolution,                                                                 \
    "convolution.default(input,weight,bias,stride,padding,dilation,transposed,output_padding,"  \
    "groups)")                                                                                  \
  X(kConvolutionBackward, kOther,                                                               \
    "convolution_backward.default(grad_output,input,weight,bias_sizes,stride,padding,dilation," \
    "transposed,output_padding,groups,output_mask)")                                            \
  X(kBatchNorm, kOther,                                                                         \
    "native_batch_norm.default(input,weight,bias,running_mean,running_var,training,momentum,"   \
    "eps)")                                                                                     \
  X(kBatchNormFunctional, kImage,                                                               \
    "_native_batch_norm_legit_functional.default(input,weight,bias,running_mean,running_var,"   \
    "training,momentum,eps)")                                                                   \
  X(kBatchNormInference, kImage,                                                                \
    "_native_batch_norm_legit_no_training.default(input,weight,bias,running_mean,running_var,"  \
    "momentum,eps)")                                                                            \
  X(kBatchNormBackward, kImage,                                                                 \
    "native_batch_norm_backward.default(grad_out,input,weight,running_mean,running_var,"        \
    "save_mean,save_invstd,train,eps,output_mask)")                                             \
  X(kCat, kImage, "cat.default(tensors,dim)")                                                   \
  X(kMaxPool, kImage,                                                                           \
    "max_pool2d_with_indices.default(self,kernel_size,stride,padding,dilation,ceil_mode)")      \
  X(kMaxPoolBackward, kImage,                                                                   \
    "max_pool2d_with_indices_backward.default(grad_output,self,kernel_size,stride,padding,"     \
    "dilation,ceil_mode,indices)")                                                              \
  X(kEmbedding, kOther, "embedding.default(weight,indices)")                                    \
  X(kEmbeddingBackward, kOther,                                                                 \
    "embedding_dense_backward.default(grad_output,indices,num_weights,padding_idx,"             \
    "scale_grad_by_freq)")                                                                      \
  X(kGather, kOther, "gather.default(self,dim,index)")                                          \
  X(kIndex, kOther, "index.Tensor(self,indices)")                                               \
  X(kIndexSelect, kOther, "index_select.default(self,dim,index)")                               \
  X(kArange, kOther, "arange.start_step(start,end,step=1)")                                     \
  X(kIndexPut, kOther, "index_put.default(self,indices,values,accumulate)")                     \
  X(kIndexPutInto, kOther, "index_put_.default(self,indices,values,accumulate)")                \
  X(kCopyInto, kOther, "copy_.default(self,src)")                                               \
  X(kScatter, kOther, "scatter.src(self,dim,index,src)")                                        \
  X(kTopK, kOther, "topk.default(self,k,dim,largest)")                                          \
  X(kCumsum, kOther, "cumsum.default(self,dim)")                                                \
  X(kMeanOfAll, kOther, "mean.default(self)")                                                   \
  X(kFlip, kOther, "flip.default(self,dims)")                                                   \
  X(kSoftmax, kOther, "_softmax.default(self,dim,half_to_float)")                               \
  X(kSoftmaxBackward, kOther, "_softmax_backward_data.default(grad_output,output,dim)")         \
  X(kLogSoftmax, kOther, "_log_softmax.default(self,dim,half_to_float)")                        \
  X(kLogSoftmaxBackward, kOther, "_log_softmax_backward_data.default(grad_output,output,dim)")  \
  X(kLayerNorm, kOther, "native_layer_norm.default(input,normalized_shape,weight,bias,eps)")    \
  X(kLayerNormBackward, kOther,                                                                 \
    "native_layer_norm_backward.default(grad_out,input,normalized_shape,mean,rstd,weight,bias," \
    "output_mask)")                                                                             \
  X(kNllLoss, kOther, "nll_loss_forward.default(self,target,weight,reduction,ignore_index)")    \
  X(kNllLoss2d, kOther,                                                                         \
    "nll_loss2d_forward.default(self,target,weight,reduction,"                                  \
    "ignore_index)")                                                                            \
  X(kNllLossBackward, kOther,                                                                   \
    "nll_loss_backward.default(grad_output,self,target,weight,reduction,"                       \
    "ignore_index,total_weight)")                                                               \
  X(kNllLoss2dBackward, kOther,                                                                 \
    "nll_loss2d_backward.default(grad_output,self,target,weight,reduction,"                     \
    "ignore_index,total_weight)")                                                               \
  X(kAttention, kOther,                                                                         \
    "_scaled_dot_product_fused_attention_overrideable.default(query,key,value,attn_bias,"       \
    "dropout_p=0,is_causal,return_debug_mask,scale)")                                           \
  X(kAttentionBackward, kOther,                                                                 \
    "_scaled_dot_product_fused_attention_overrideable_backward.default(grad_out,query,key,"     \
    "value,attn_bias,grad_input_mask,out,logsumexp,cum_seq_q,cum_seq_k,max_q,max_k,dropout_p,"  \
    "is_causal,philox_seed,philox_offset,scale)")                                               \
  X(kNativeDropout, kRandom, "native_dropout.default(input,p,train)")                           \
  X(kRand, kRandom, "rand.default")

enum class OperatorId : uint16_t {
#define GRAFT_ENUMERATOR(id, cls, text) id,
  GRAFT_OPERATORS(GRAFT_ENUMERATOR)
#undef GRAFT_ENUMERATOR
      kUnnamed
};

// One of ATen's arguments, at its position.
struct SchemaArgument {
  std::string name{};   // as a keyword; empty: given by position alone
  int operand = -1;     // of the formula that it feeds: inputs first, then scalars; -1: none
  bool fixed = false;   // the call has no such argument: it is always the default
  bool needed = false;  // a condition that does not hold where the argument was left out
  std::string text{};   // the default, or what the argument must be; empty: neither
  double number = 0;    // the text, where it is one
};

// A row of the op table that computes an operator, if the conditions hold.
struct RowCandidate {
  const Op* row;
  std::vector<SchemaArgument> parameters;
};

struct Operator {
  std::string name;  // "aten.add.Tensor"
  OperatorId id = OperatorId::kUnnamed;
  OpClass cls = OpClass::kOther;
  bool in_place = false;                   // by its name
  bool users = false;                      // its kernel is one that the user registered
  std::vector<SchemaArgument> parameters;  // as far as they are known
  std::vector<RowCandidate> rows;          // those with fewer operands first

  const SchemaArgument* parameter(std::string_view wanted) const;  // null for none
  std::string qualified() const;  // "aten::add.Tensor", as in eager's errors
};

// The one object of an operator, known or not, from its name with the overload. Lives as long as
// the process. Any thread.
GRAFT_EXPORT const Operator* find_operator(std::string_view name);
GRAFT_EXPORT const Operator* find_operator(OperatorId id);

// The one object of that name whose kernel is the user's. The compiler knows nothing of what it
// computes: it has no class and no row, so that the host runs its nodes. Any thread.
GRAFT_EXPORT const Operator* find_user_operator(std::string_view name);

}  // namespace graft::compiler
