// src/kernels/reduce/moments.h: the mean of a line of elements and their squared deviations from
// it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "kernels/launch/group_fold.h"
#include "kernels/launch/lanes.h"

namespace graft {

// Sums of deviations d from an approximate mean m0, corrected for what it is off by:
//   m = m0 + sum(d) / n, squares = sum(d * d) - sum(d) * sum(d) / n, never below 0 (NaN stays).
struct CorrectedMoments {
  ir::Value off;      // m - m0
  ir::Value squares;  // sum of (x - m)^2
};
CorrectedMoments corrected_moments(ir::Value sum, ir::Value squares, ir::Value count);

// Whether m0 lay within kFar standard deviations of the mean, so that these moments are as good as
// those from another pass that measures from m. NaN: no.
inline constexpr double kFar = 1;
ir::Value near_mean(const CorrectedMoments& moments, ir::Value count);

// Joins moments (m0, m - m0, squared deviations, count): Chan, Golub and LeVeque's way with means
// of two parts, so that deviations far below the roundoff of the mean count. Without elements:
// zeros.
std::vector<ir::Value> join_moments(const std::vector<ir::Value>& a,
                                    const std::vector<ir::Value>& b);
inline constexpr size_t kMomentParts = 4;

// Moments of a line, by one work-item or by the kLanes of a group (line_loop.h).
//
// A block of kMomentBlock elements, which the cache holds, is read for the sums above with the mean
// of kMomentSample elements spread over it for m0 (summed less the first one), and where that is
// not near_mean(), once more with the mean that they give. Then the blocks' moments are joined.
// With u the unit roundoff, sigma^2 the variance, n elements, K = n / kMomentBlock blocks and
// C = 1 + kFar^2, to first order:
//   |mean - exact| <= u |mean| + C (K + 128) u sigma,
//   |squares - exact| <= C (K + 128) u squares,
// and usually their square roots instead of K and 128. Equal elements give themselves and 0. The
// lanes of a group take all their elements for the sample.
// T. F. Chan, G. H. Golub, R. J. LeVeque, Algorithms for Computing the Sample Variance, The
// American Statistician 37 (1983): the corrected two-pass algorithm (1.7), shifted data (1.9), and
// joining (2.1); sums in 64 lanes with the bound of N. J. Higham, The Accuracy of Floating Point
// Summation, SIAM J. Sci. Comput. 14 (1993).
inline constexpr int64_t kMomentBlock = 4096, kMomentSample = 8;

class LineMoments {
 public:
  struct Result {
    ir::Value mean;
    ir::Value squares;  // sum of squared deviations
  };
  using Load = std::function<ir::Value(ir::Value element)>;  // a value of type

  // Before the kernel's first loop or if.
  LineMoments(ir::Builder& builder, WorkMapping deal, ir::Type type);

  // Of load(0) .. load(count - 1), in every work-item of the line. Outside of ifs.
  Result of(ir::Value count, const Load& load);

 private:
  using Values = std::vector<ir::Value>;
  ir::Value sample_mean(ir::Value begin, ir::Value end, const Load& load);
  Values block(ir::Value begin, ir::Value end, const Load& load);
  Values lane_block(ir::Value begin, ir::Value end, const Load& load);
  Result alone(ir::Value count, const Load& load);
  Result shared(ir::Value count, const Load& load);

  ir::Builder& b_;
  ir::Type type_;
  std::optional<GroupFold> fold_;
};

}  // namespace graft
