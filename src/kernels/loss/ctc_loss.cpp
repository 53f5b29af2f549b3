// src/kernels/loss/ctc_loss.cpp: the connectionist temporal classification loss and its gradient.
#include "kernels/loss/ctc_loss.h"

#include <limits>

#include "kernels/launch/arguments.h"
#include "kernels/launch/checked_index.h"
#include "kernels/launch/work_split.h"
#include "kernels/launch/workspace.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// log(exp(a) + exp(b) + ...); -infinity where all are.
Value log_sum(std::initializer_list<Value> terms) {
  Value most = *terms.begin();
  for (const Value term : terms) most = select(term > most, term, most);
  most = select(most == -kInfinity, 0, most);
  Value sum = like(most, 0);
  for (const Value term : terms) sum = sum + exp(term - most);
  return log(sum) + most;
}

// What both kernels declare of the sequences, and where things lie of the one that is looked at.
// State 2 i + 1 of a sequence is its label i, the others are blanks.
class Sequences {
 public:
  Sequences(Builder& b, graft_dtype data, graft_dtype target)
      : b_(b),
        log_probs_(b.read(data)),
        targets_(b.read(target)),
        lengths_(b.read(GRAFT_INT64)),
        labels_(b.update(GRAFT_INT64)),
        checker_(b) {
    b.indices({&lines_, &per_item_, &time_, &classes_, &states_, &blank_, &target_stride_,
               &prob_time_, &prob_batch_, &prob_class_});
  }

  // body() for each sequence of this work-item, once its labels are known.
  template <class Body>
  void each(Body body) {
    each_line(b_, lines_, per_item_, [&](Value batch) {
      batch_ = batch;
      steps_ = lengths_.load(batch * 3);
      count_ = lengths_.load(batch * 3 + 1);
      last_ = count_ * 2;
      const Value first = lengths_.load(batch * 3 + 2);
      b_.loop(b_.i64(0), count_, [&](Value i) {
        const Value given = targets_.load(first + i * target_stride_);
        labels_.store(batch * states_ + i * 2 + 1, checker_.check(given, classes_, false));
      });
      b_.vector_loop(b_.i64(0), count_ + 1,
                     [&](Value i) { labels_.store(batch * states_ + i * 2, blank_); });
      body();
    });
  }

  Value batch() const { return batch_; }
  Value steps() const { return steps_; }
  Value last() const { return last_; }  // the last state
  Value time() const { return time_; }
  Value classes() const { return classes_; }
  Value states() const { return states_; }

  Value label(Value state) const { return labels_.load(batch_ * states_ + state); }
  Value log_prob(Value step, Value label) const {
    return log_probs_.load(step * prob_time_ + batch_ * prob_batch_ + label * prob_class_);
  }
  // The first element of a step's row of log_alpha.
  Value row(Value step) const { return (batch_ * time_ + step) * states_; }

  // Adds what reaches a state from three of the row beside it: itself and the next two by way;
  // the one over next only where that skips no label that is the same.
  Value reached(const Address& row, Value first, Value state, int way) const {
    const Value one = state + way, two = state + 2 * way;
    const auto within = [&](Value s) { return way < 0 ? s >= 0 : s <= last_; };
    const auto clamped = [&](Value s) { return select(within(s), s, state); };
    const Value differs = within(two) & (label(clamped(two)) != label(state));
    const Value here = row.load(first + state);
    const Value next = select(within(one), row.load(first + clamped(one)), -kInfinity);
    const Value skipped = select(differs, row.load(first + clamped(two)), -kInfinity);
    return log_sum({here, next, skipped});
  }

 private:
  Builder& b_;
  Address log_probs_, targets_, lengths_, labels_;
  IndexChecker checker_;
  Value lines_, per_item_, time_, classes_, states_, blank_, target_stride_, prob_time_,
      prob_batch_, prob_class_;
  Value batch_, steps_, count_, last_;
};

std::string key_of(const char* what, const CtcSequences& sequences) {
  return std::string(what) + "_" + name_of(sequences.log_probs.dtype) + "_" +
         name_of(sequences.targets.dtype);
}

ir::Kernel build_forward(const std::string& key, const CtcSequences& given) {
  Builder b(key);
  const graft_dtype data = given.log_probs.dtype;
  const Address losses = b.write(data), alpha = b.update(data);
  Sequences s(b, data, given.targets.dtype);
  const Value loss_stride = b.index();
  s.each([&] {
    const Value minus_infinity = b.constant(ir::compute_type(data), -kInfinity);
    const Variable likelihood(select(s.last() == 0, like(minus_infinity, 0), minus_infinity));
    b.if_(s.steps() > 0, [&] {
      const Value start = s.row(b.i64(0));
      b.vector_loop(b.i64(0), s.last() + 1, [&](Value state) {
        const Value first = s.log_prob(b.i64(0), s.label(state));
        alpha.store(start + state, select(state < 2, first, minus_infinity));
      });
      b.loop(b.i64(1), s.steps(), [&](Value step) {
        const Value before = s.row(step - 1), now = s.row(step);
        b.vector_loop(b.i64(0), s.last() + 1, [&](Value state) {
          alpha.store(now + state,
                      s.reached(alpha, before, state, -1) + s.log_prob(step, s.label(state)));
        });
      });
      const Value end = s.row(s.steps() - 1) + s.last();
      const Value label = alpha.load(select(s.last() > 0, end - 1, end));
      likelihood = select(s.last() > 0, log_sum({alpha.load(end), label}), alpha.load(end));
    });
    losses.store(s.batch() * loss_stride, -likelihood.get());
  });
  return b.finish();
}

ir::Kernel build_backward(const std::string& key, const CtcSequences& given, bool zero_infinity) {
  Builder b(key);
  const graft_dtype data = given.log_probs.dtype;
  const Address output = b.update(data), beta = b.update(data);
  const Address grad = b.read(data), losses = b.read(data), alpha = b.read(data);
  Sequences s(b, data, given.targets.dtype);
  const Value grad_stride = b.index(), loss_stride = b.index();
  const Value out_time = b.index(), out_batch = b.index(), out_class = b.index();
  s.each([&] {
    const Value minus_infinity = b.constant(ir::compute_type(data), -kInfinity);
    const Value loss = losses.load(s.batch() * loss_stride);
    const Value used = zero_infinity ? select(loss == kInfinity, b.i64(0), s.steps()) : s.steps();
    const auto place = [&](Value step, Value label) {
      return step * out_time + s.batch() * out_batch + label * out_class;
    };
    b.loop(b.i64(0), s.time(), [&](Value step) {
      const Value start = select(step < used, minus_infinity, 0);
      b.vector_loop(b.i64(0), s.classes(),
                    [&](Value label) { output.store(place(step, label), start); });
    });
    const auto beta_row = [&](Value step) { return (s.batch() * 2 + step % 2) * s.states(); };
    b.loop(b.i64(0), used, [&](Value done) {
      const Value step = used - 1 - done, now = beta_row(step), after = beta_row(step + 1);
      b.if_(
          done == 0,
          [&] {
            b.vector_loop(b.i64(0), s.last() + 1, [&](Value state) {
              const Value end = s.log_prob(step, s.label(state));
              beta.store(now + state, select(state + 2 > s.last(), end, minus_infinity));
            });
          },
          [&] {
            b.vector_loop(b.i64(0), s.last() + 1, [&](Value state) {
              beta.store(now + state,
                         s.reached(beta, after, state, 1) + s.log_prob(step, s.label(state)));
            });
          });
      b.loop(b.i64(0), s.last() + 1, [&](Value state) {
        const Value through = alpha.load(s.row(step) + state) + beta.load(now + state);
        const Value sum = place(step, s.label(state));
        output.store(sum, log_sum({output.load(sum), through}));
      });
    });
    const Value factor = grad.load(s.batch() * grad_stride);
    b.loop(b.i64(0), used, [&](Value step) {
      b.vector_loop(b.i64(0), s.classes(), [&](Value label) {
        const Value at = place(step, label), chance = s.log_prob(step, label);
        const Value expected = exp(output.load(at) + loss - chance);
        output.store(at, (exp(chance) - expected) * factor);
      });
    });
  });
  return b.finish();
}

// Appends what Sequences declares.
void append(Arguments& arguments, Stream& stream, const CtcSequences& sequences,
            const Workspace& labels, int64_t states, const WorkSplit& split) {
  const TensorView& probs = sequences.log_probs;
  const uint64_t label_bytes = static_cast<uint64_t>(probs.sizes[1] * states) * sizeof(int64_t);
  arguments.read(probs).read(sequences.targets).read(sequences.lengths);
  arguments.address(labels.address(), label_bytes, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  append_checker(arguments, stream);
  arguments.indices({split.lines, split.per_item, probs.sizes[0], probs.sizes[2], states,
                     sequences.blank, sequences.targets.strides[sequences.targets.rank - 1]});
  for (int i = 0; i < 3; ++i) arguments.index(probs.strides[i]);
}

VendorCall& read(VendorCall& to, const CtcSequences& sequences) {
  return to.read(sequences.log_probs).read(sequences.targets).read(sequences.lengths);
}

void require_sequences(const CtcSequences& sequences) {
  const graft_dtype data = sequences.log_probs.dtype, target = sequences.targets.dtype;
  if (data != GRAFT_FLOAT32 && data != GRAFT_FLOAT64) {
    throw Error(GRAFT_UNSUPPORTED, std::string("ctc_loss: no kernel for ") + name_of(data));
  }
  if (target != GRAFT_INT32 && target != GRAFT_INT64) {
    throw Error(GRAFT_UNSUPPORTED,
                std::string("ctc_loss: no kernel for labels of ") + name_of(target));
  }
}

}  // namespace

void ctc_loss(Stream& stream, const CtcSequences& sequences, const TensorView& losses,
              const TensorView& log_alpha) {
  if (offer(stream, Operation::ctc_loss, [&](VendorCall& to) {
        read(to.write(losses).write(log_alpha), sequences).integers({sequences.blank});
      }))
    return;
  require_sequences(sequences);
  const int64_t batch = sequences.log_probs.sizes[1], states = log_alpha.sizes[2];
  if (batch == 0) return;
  const Workspace labels(stream, static_cast<uint64_t>(batch * states) * sizeof(int64_t));
  const WorkSplit split = split_work(batch, sequences.log_probs.sizes[0] * states * 8);
  const std::string key = key_of("ctc_loss", sequences);
  Arguments arguments;
  arguments.write(losses).update(log_alpha);
  append(arguments, stream, sequences, labels, states, split);
  arguments.index(losses.strides[0]);
  launch_kernel(stream, key, split.grid, arguments, [&] { return build_forward(key, sequences); });
}

void ctc_loss_backward(Stream& stream, const CtcSequences& sequences, const TensorView& grad_input,
                       const TensorView& grad, const TensorView& losses,
                       const TensorView& log_alpha, bool zero_infinity) {
  if (offer(stream, Operation::ctc_loss_backward, [&](VendorCall& to) {
        read(to.write(grad_input), sequences).read(grad).read(losses).read(log_alpha);
        to.integers({sequences.blank, zero_infinity});
      }))
    return;
  require_sequences(sequences);
  const int64_t batch = sequences.log_probs.sizes[1], states = log_alpha.sizes[2];
  if (grad_input.count() == 0) return;
  const uint64_t beta_bytes = static_cast<uint64_t>(batch * 2 * states) * size_of(losses.dtype);
  const Workspace labels(stream, static_cast<uint64_t>(batch * states) * sizeof(int64_t));
  const Workspace beta(stream, beta_bytes);
  const int64_t per_step = states * 16 + sequences.log_probs.sizes[2] * 4;
  const WorkSplit split = split_work(batch, sequences.log_probs.sizes[0] * per_step);
  const std::string key =
      key_of(zero_infinity ? "ctc_loss_backward_zero_infinity" : "ctc_loss_backward", sequences);
  Arguments arguments;
  arguments.update(grad_input);
  arguments.address(beta.address(), beta_bytes, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  arguments.read(grad).read(losses).read(log_alpha);
  append(arguments, stream, sequences, labels, states, split);
  arguments.index(grad.strides[0]).index(losses.strides[0]);
  for (int i = 0; i < 3; ++i) arguments.index(grad_input.strides[i]);
  const auto build = [&] { return build_backward(key, sequences, zero_infinity); };
  launch_kernel(stream, key, split.grid, arguments, build);
}

}  // namespace graft
