// tests/kernels/attention/reference.h: attention and its gradients as loops in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace graft::test {

using Numbers = std::vector<double>;

struct AttentionShape {
  int64_t batch, heads, key_heads, rows, columns, depth, value_depth;
};

// Row-major tensors in double and the plain algorithm.
struct AttentionReference {
  AttentionShape s;
  Numbers q, k, v, bias;  // bias: [rows, columns] or empty
  bool causal;
  double scale;
  Numbers kept;  // what dropout multiplies weights with, [batch, heads, rows, columns], or empty

  size_t at(int64_t b, int64_t heads, int64_t h, int64_t n, int64_t i, int64_t depth,
            int64_t d) const {
    return static_cast<size_t>(((b * heads + h) * n + i) * depth + d);
  }

  double factor(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return kept.empty() ? 1 : kept[at(b, s.heads, h, s.rows, i, s.columns, j)];
  }

  // The weights of one row; log: of the sum of its scores' exponentials.
  Numbers weights(int64_t b, int64_t h, int64_t i, double* log = nullptr) const {
    Numbers p(static_cast<size_t>(s.columns), 0.0);
    const int64_t kh = h / (s.heads / s.key_heads);
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < s.columns; ++j) {
      double x = 0;
      for (int64_t d = 0; d < s.depth; ++d) {
        x += q[at(b, s.heads, h, s.rows, i, s.depth, d)] *
             k[at(b, s.key_heads, kh, s.columns, j, s.depth, d)];
      }
      x *= scale;
      if (!bias.empty()) x += bias[static_cast<size_t>(i * s.columns + j)];
      if (causal && j > i) x = -std::numeric_limits<double>::infinity();
      p[static_cast<size_t>(j)] = x;
      largest = std::max(largest, x);
    }
    for (double& x : p) x = std::isinf(x) ? 0 : std::exp(x - largest), sum += x;
    for (double& x : p) x = sum == 0 ? 0 : x / sum;
    if (log != nullptr) *log = std::log(sum) + (sum == 0 ? 0 : largest);
    return p;
  }

  template <class Visit>
  void each_row(Visit visit) const {
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t h = 0; h < s.heads; ++h) {
        for (int64_t i = 0; i < s.rows; ++i) visit(b, h, h / (s.heads / s.key_heads), i);
      }
    }
  }

  Numbers forward() const {
    Numbers o(static_cast<size_t>(s.batch * s.heads * s.rows * s.value_depth), 0.0);
    each_row([&](int64_t b, int64_t h, int64_t kh, int64_t i) {
      const Numbers p = weights(b, h, i);
      for (int64_t j = 0; j < s.columns; ++j) {
        for (int64_t d = 0; d < s.value_depth; ++d) {
          o[at(b, s.heads, h, s.rows, i, s.value_depth, d)] +=
              factor(b, h, i, j) * p[static_cast<size_t>(j)] *
              v[at(b, s.key_heads, kh, s.columns, j, s.value_depth, d)];
        }
      }
    });
    return o;
  }

  Numbers logarithms() const {
    Numbers logs;
    each_row([&](int64_t b, int64_t h, int64_t, int64_t i) {
      logs.emplace_back();
      weights(b, h, i, &logs.back());
    });
    return logs;
  }

  void backward(const Numbers& g, Numbers* dq, Numbers* dk, Numbers* dv) const {
    dq->assign(q.size(), 0), dk->assign(k.size(), 0), dv->assign(v.size(), 0);
    each_row([&](int64_t b, int64_t h, int64_t kh, int64_t i) {
      const Numbers p = weights(b, h, i);
      Numbers slope(p.size(), 0.0);
      double total = 0;
      for (int64_t j = 0; j < s.columns; ++j) {
        const size_t c = static_cast<size_t>(j);
        for (int64_t d = 0; d < s.value_depth; ++d) {
          const double above = g[at(b, s.heads, h, s.rows, i, s.value_depth, d)];
          const size_t to = at(b, s.key_heads, kh, s.columns, j, s.value_depth, d);
          slope[c] += factor(b, h, i, j) * above * v[to];
          (*dv)[to] += factor(b, h, i, j) * p[c] * above;
        }
        total += p[c] * slope[c];
      }
      for (int64_t j = 0; j < s.columns; ++j) {
        const size_t c = static_cast<size_t>(j);
        const double x = p[c] * (slope[c] - total) * scale;
        for (int64_t d = 0; d < s.depth; ++d) {
          const size_t from = at(b, s.heads, h, s.rows, i, s.depth, d);
          const size_t to = at(b, s.key_heads, kh, s.columns, j, s.depth, d);
          (*dq)[from] += x * k[to];
          (*dk)[to] += x * q[from];
        }
      }
    });
  }
};

}  // namespace graft::test
