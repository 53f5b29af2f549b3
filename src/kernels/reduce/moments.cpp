// src/kernels/reduce/moments.cpp: the mean of a line of elements and their squared deviations from
// it.
#include "kernels/reduce/moments.h"

namespace graft {

using namespace ir;

namespace {

// Parts of moments that begin without elements.
std::vector<Variable> no_moments(ir::Builder& b, ir::Type type) {
  std::vector<Variable> parts;
  for (size_t k = 0; k < kMomentParts; ++k) parts.emplace_back(b.constant(type, 0.0));
  return parts;
}

void set(const std::vector<Variable>& parts, const Values& values) {
  for (size_t k = 0; k < kMomentParts; ++k) parts[k] = values[k];
}

Values values_of(const std::vector<Variable>& parts) { return {parts.begin(), parts.end()}; }

}  // namespace

CorrectedMoments corrected_moments(Value sum, Value squares, Value count) {
  const Value off = sum / count;
  const Value left = squares - off * sum;
  return {off, select(left < 0, 0, left)};
}

Value near_mean(const CorrectedMoments& moments, Value count) {
  return moments.off * moments.off * count <= kFar * kFar * moments.squares;
}

Values join_moments(const Values& a, const Values& b) {
  const Value count = a[3] + b[3];
  const Value share = select(count == 0, 0.0, b[3] / count);
  const Value apart = b[0] - a[0] + (b[1] - a[1]), product = apart * share;
  const Value none = a[3] == 0;
  return {select(none, b[0], a[0]), select(none, b[1], a[1] + product),
          select(none, b[2], a[2] + b[2] + apart * a[3] * product), count};
}

LineMoments::LineMoments(ir::Builder& builder, WorkMapping deal, ir::Type type)
    : b_(builder), type_(type) {
  if (deal != WorkMapping::kSpans)
    fold_.emplace(b_, std::vector<ir::Type>(kMomentParts, type), deal);
}

LineMoments::Result LineMoments::of(Value count, const Load& load) {
  return fold_ ? shared(count, load) : alone(count, load);
}

Value LineMoments::sample_mean(Value begin, Value end, const Load& load) {
  const Value taken = ir::minimum(end - begin, b_.i64(kMomentSample));
  const Value step = ir::maximum((end - begin) / kMomentSample, b_.i64(1));
  const Value first = load(begin);
  const Variable apart(b_.constant(type_, 0.0));
  b_.loop(
      begin, begin + taken * step, [&](Value i) { apart = apart + (load(i) - first); }, step);
  return first + apart / cast(type_, taken);
}

// An approximate mean of the block, what it is off by, squared deviations, count.
Values LineMoments::block(Value begin, Value end, const Load& load) {
  const Value zero = b_.constant(type_, 0.0), count = cast(type_, end - begin);
  const auto moments_from = [&](Value m0) {
    const Values sums = ir::fold(
        {zero, zero}, begin, end,
        [&](const Values& sum, Value i) {
          const Value distance = load(i) - m0;
          return Values{sum[0] + distance, sum[1] + distance * distance};
        },
        [](const Values& x, const Values& y) {
          return Values{x[0] + y[0], x[1] + y[1]};
        });
    return corrected_moments(sums[0], sums[1], count);
  };
  const Variable m0(sample_mean(begin, end, load));
  const CorrectedMoments found = moments_from(m0);
  const Variable off(found.off), squares(found.squares);
  b_.if_(!near_mean(found, count), [&] {
    m0 = m0 + off;
    const CorrectedMoments again = moments_from(m0);
    off = again.off;
    squares = again.squares;
  });
  return {m0, off, squares, count};
}

LineMoments::Result LineMoments::alone(Value count, const Load& load) {
  const std::vector<Variable> all = no_moments(b_, type_);
  const auto one_block = [&] { set(all, block(b_.i64(0), count, load)); };
  const auto each_block = [&](Value begin) {
    const Value end = ir::minimum(begin + kMomentBlock, count);
    set(all, join_moments(values_of(all), block(begin, end, load)));
  };
  const auto blocks = [&] { b_.loop(b_.i64(0), count, each_block, b_.i64(kMomentBlock)); };
  b_.if_((count <= kMomentBlock) & (count > 0), one_block, blocks);
  return {all[0] + all[1], all[2]};
}

// Of the elements of this lane.
Values LineMoments::lane_block(Value begin, Value end, const Load& load) {
  const Value zero = b_.constant(type_, 0.0), stride = b_.i64(kLanes);
  const Value taken = select(end > begin, (end - begin + (kLanes - 1)) / kLanes, 0);
  const Value count = cast(type_, taken), divisor = select(count == 0, 1.0, count);
  const Variable shift(zero), total(zero), sum(zero), products(zero);
  b_.if_(end > begin, [&] { shift = load(begin); });
  b_.loop(
      begin, end, [&](Value i) { total = total + (load(i) - shift); }, stride);
  const Value near = shift + total / divisor;
  const auto deviation = [&](Value i) {
    const Value distance = load(i) - near;
    sum = sum + distance;
    products = products + distance * distance;
  };
  b_.loop(begin, end, deviation, stride);
  const CorrectedMoments moments = corrected_moments(sum, products, divisor);
  return {near, moments.off, moments.squares, count};
}

LineMoments::Result LineMoments::shared(Value count, const Load& load) {
  const std::vector<Variable> all = no_moments(b_, type_);
  const auto each_block = [&](Value begin) {
    const Value end = ir::minimum(begin + kMomentBlock, count);
    set(all, join_moments(values_of(all), lane_block(begin + fold_->lane(), end, load)));
  };
  b_.loop(b_.i64(0), count, each_block, b_.i64(kMomentBlock));
  const Values folded = fold_->fold(values_of(all), &join_moments);
  return {folded[0] + folded[1], folded[2]};
}

}  // namespace graft
