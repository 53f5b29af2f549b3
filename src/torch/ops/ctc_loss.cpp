// src/torch/ops/ctc_loss.cpp: the connectionist temporal classification loss.
#include "kernels/loss/ctc_loss.h"

#include <ATen/TensorUtils.h>
#include <ATen/ops/_ctc_loss_backward_ops.h>
#include <ATen/ops/_ctc_loss_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <vector>

#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

// Checks as the CPU's kernel does, in its words, and keeps the tensors that the views see.
class GivenSequences {
 public:
  GivenSequences(const at::Tensor& log_probs, const at::Tensor& targets,
                 at::IntArrayRef input_lengths, at::IntArrayRef target_lengths, int64_t blank)
      : log_probs_(log_probs), targets_(targets.to(log_probs.device())), blank_(blank) {
    require_kernel();
    check_batch(input_lengths, target_lengths);
    const int64_t count = log_probs.size(1);
    const bool in_a_row = targets.dim() == 1;
    std::vector<int64_t> lengths;
    int64_t labels = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = at_least_zero(target_lengths[i], "target_lengths");
      const int64_t first = in_a_row ? labels * targets_.stride(0) : i * targets_.stride(0);
      lengths.insert(lengths.end(), {input_lengths[i], length, first});
      labels += length;
      longest_ = std::max(longest_, length);
    }
    check_targets(in_a_row ? labels : count);
    check_steps(input_lengths);
    const at::Tensor host = at::from_blob(lengths.data(), {count, 3}, at::kLong);
    lengths_ = host.to(log_probs.device());
  }

  CtcSequences views() const {
    return {view_of(log_probs_), view_of(targets_), view_of(lengths_), blank_};
  }
  int64_t states() const { return 2 * longest_ + 1; }

  // What forward gave, and the gradient of its losses.
  void check_results(const at::Tensor& grad, const at::Tensor& losses,
                     const at::Tensor& log_alpha) const {
    const int64_t count = log_probs_.size(1), steps = log_probs_.size(0);
    check_result("grad", grad, {count});
    check_result("neg_log_likelihood", losses, {count});
    check_result("log_alpha", log_alpha, {count, steps, states()});
  }

 private:
  static constexpr at::CheckedFrom kCaller = "ctc_loss_allocate_outputs";

  void require_kernel() const {
    const at::ScalarType type = log_probs_.scalar_type(), label = targets_.scalar_type();
    if (log_probs_.numel() == 0) throw_unfilled();
    if (type != at::kFloat && type != at::kDouble) throw_unfilled();
    if (label != at::kLong && label != at::kInt) throw_unfilled();
  }

  void check_result(const char* name, const at::Tensor& given, at::IntArrayRef sizes) const {
    const at::ScalarType type = log_probs_.scalar_type();
    TORCH_CHECK(given.sizes() == sizes && given.scalar_type() == type, "ctc_loss_backward: ", name,
                " has sizes ", given.sizes(), " and dtype ", given.scalar_type(), ", expected ",
                sizes, " and ", type, "; give what _ctc_loss returned for the same arguments");
  }

  static int64_t at_least_zero(int64_t length, const char* name) {
    TORCH_CHECK(length >= 0, "Expected ", name, " to have value at least 0, but got value ", length,
                " (while checking arguments for ", kCaller, ")");
    return length;
  }

  void check_batch(at::IntArrayRef input_lengths, at::IntArrayRef target_lengths) const {
    at::checkDim(kCaller, at::TensorArg(log_probs_, "log_probs", 1), 3);
    at::checkDimRange(kCaller, at::TensorArg(targets_, "targets", 2), 1, 3);
    const auto count = static_cast<size_t>(log_probs_.size(1));
    TORCH_CHECK(blank_ >= 0 && blank_ < log_probs_.size(2), "blank must be in label range");
    TORCH_CHECK(input_lengths.size() == count, "input_lengths must be of size batch_size");
    TORCH_CHECK(target_lengths.size() == count, "target_lengths must be of size batch_size");
  }

  void check_targets(int64_t rows) const {
    const at::TensorArg targets(targets_, "targets", 2);
    at::checkSize(kCaller, targets, 0, rows);
    if (targets_.dim() == 1) return;
    TORCH_CHECK(targets_.size(1) >= longest_, "Expected tensor to have size at least ", longest_,
                " at dimension 1, but got size ", targets_.size(1), " for ", targets,
                " (while checking arguments for ", kCaller, ")");
  }

  void check_steps(at::IntArrayRef input_lengths) const {
    const int64_t most = log_probs_.size(0);
    for (const int64_t length : input_lengths) {
      at_least_zero(length, "input_lengths");
      TORCH_CHECK(length <= most, "Expected input_lengths to have value at most ", most,
                  ", but got value ", length, " (while checking arguments for ", kCaller, ")");
    }
  }

  at::Tensor log_probs_, targets_, lengths_;
  int64_t blank_, longest_ = 0;
};

std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& log_probs, const at::Tensor& targets,
                                           at::IntArrayRef input_lengths,
                                           at::IntArrayRef target_lengths, int64_t blank, bool) {
  const GivenSequences sequences(log_probs, targets, input_lengths, target_lengths, blank);
  at::Tensor losses = at::empty({log_probs.size(1)}, log_probs.options());
  at::Tensor alpha =
      at::empty({log_probs.size(1), log_probs.size(0), sequences.states()}, log_probs.options());
  ctc_loss(stream_of(log_probs), sequences.views(), view_of(losses), view_of(alpha));
  return {losses, alpha};
}

at::Tensor backward(const at::Tensor& grad, const at::Tensor& log_probs, const at::Tensor& targets,
                    at::IntArrayRef input_lengths, at::IntArrayRef target_lengths,
                    const at::Tensor& losses, const at::Tensor& log_alpha, int64_t blank,
                    bool zero_infinity) {
  const GivenSequences sequences(log_probs, targets, input_lengths, target_lengths, blank);
  sequences.check_results(grad, losses, log_alpha);
  at::Tensor grad_input = at::empty(log_probs.sizes(), log_probs.options());
  ctc_loss_backward(stream_of(log_probs), sequences.views(), view_of(grad_input), view_of(grad),
                    view_of(losses), view_of(log_alpha.contiguous()), zero_infinity);
  return grad_input;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  implement<at::_ops::_ctc_loss, &forward>(m);
  implement<at::_ops::_ctc_loss_backward, &backward>(m);
}

}  // namespace graft::binding
