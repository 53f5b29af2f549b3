// tests/vendor/graph_chip/products.cpp: matrix products and attention.
#include <algorithm>
#include <cmath>

#include "call.h"

namespace chip {

namespace {

// out = beta * added + alpha * a b, over the last two dimensions; added may be null.
void product(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor* added, double beta,
             double alpha) {
  const size_t r = out.sizes.size() - 2;
  const int64_t depth = a.sizes[r + 1];
  each(out.sizes, [&](const Sizes& i) {
    const int64_t batch_a = r == 0 ? 0 : i[0] * a.strides[0],
                  batch_b = r == 0 ? 0 : i[0] * b.strides[0];
    const float* x = a.floats() + batch_a + i[r] * a.strides[r];
    const float* y = b.floats() + batch_b + i[r + 1] * b.strides[r + 1];
    double total = 0;
    for (int64_t k = 0; k < depth; ++k) {
      total +=
          static_cast<double>(x[k * a.strides[r + 1]]) * static_cast<double>(y[k * b.strides[r]]);
    }
    const double more = added == nullptr || beta == 0 ? 0 : beta * added->get(added->at(i));
    out.set(out.at(i), more + alpha * total);
  });
}

void multiply(const Call& call) { product(call.result(), call[0], call[1], nullptr, 0, 1); }
void multiply_and_add(const Call& call) {
  product(call.result(), call[1], call[2], &call[0], call.number(3, "beta", 1),
          call.number(4, "alpha", 1));
}

// One head of one batch: rows of q, k and v.
struct Head {
  const Tensor &q, &k, &v;
  const Tensor* bias;
  int64_t b, h;
  double scale;
  bool causal;

  Head(const Call& call, size_t first, bool causal, int64_t b, int64_t h)
      : q(call[first]),
        k(call[first + 1]),
        v(call[first + 2]),
        bias(call.tensor(first + 3, "attn_bias")),
        b(b),
        h(h),
        scale(call.number(99, "scale", 1 / std::sqrt(static_cast<double>(q.sizes[3])))),
        causal(causal) {}

  int64_t keys() const { return k.sizes[2]; }
  double dot(const Tensor& x, int64_t i, const Tensor& y, int64_t j) const {
    double total = 0;
    for (int64_t e = 0; e < x.sizes[3]; ++e)
      total += x.get(x.at({b, h, i, e})) * y.get(y.at({b, h, j, e}));
    return total;
  }
  // The probabilities of a query; returns the logarithm of their sum.
  double weigh(int64_t row, std::vector<double>* p) const {
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < keys(); ++j) {
      double& s = (*p)[static_cast<size_t>(j)];
      s = dot(q, row, k, j) * scale + (bias == nullptr ? 0 : bias->get(bias->at({b, h, row, j})));
      if (causal && j > row) s = -INFINITY;
      most = std::max(most, s);
    }
    const double base = most == -INFINITY ? 0 : most;
    for (double& s : *p) total += s = std::exp(s - base);
    for (double& s : *p) s = total == 0 ? 0 : s / total;
    return base + std::log(total);
  }
};

// (query, key, value, bias, dropout, causal, mask wanted; scale)
void attention(const Call& call) {
  const Tensor &q = call[0], &out = call.result(), *sums = call.maybe(1);
  for (int64_t b = 0; b < q.sizes[0]; ++b) {
    for (int64_t h = 0; h < q.sizes[1]; ++h) {
      const Head head(call, 0, call.flag(5, "is_causal"), b, h);
      std::vector<double> p(static_cast<size_t>(head.keys()));
      for (int64_t i = 0; i < q.sizes[2]; ++i) {
        const double sum = head.weigh(i, &p);
        if (sums != nullptr) sums->set(sums->at({b, h, i}), sum);
        for (int64_t e = 0; e < head.v.sizes[3]; ++e) {
          double total = 0;
          for (int64_t j = 0; j < head.keys(); ++j) {
            total += p[static_cast<size_t>(j)] * head.v.get(head.v.at({b, h, j, e}));
          }
          out.set(out.at({b, h, i, e}), total);
        }
      }
    }
  }
  for (size_t i : {size_t{6}, size_t{7}}) {
    if (call.maybe(i) != nullptr)
      call.maybe(i)->set(0, 0);  // numbers of a dropout that there is not
  }
}

void zero(const Tensor* to) {
  if (to != nullptr) each(to->sizes, [&](const Sizes& i) { to->set(to->at(i), 0); });
}
void add_to(const Tensor* to, const Sizes& index, double value) {
  if (to != nullptr) to->set(to->at(index), to->get(to->at(index)) + value);
}

// (gradient, query, key, value, bias, mask, out, sums, ..., dropout, causal, ...; scale)
void attention_backward(const Call& call) {
  const Tensor &grad = call[0], &q = call[1], &out = call[6];
  const Tensor *gq = call.maybe(0), *gk = call.maybe(1), *gv = call.maybe(2);
  for (size_t i = 0; i < 4; ++i) zero(call.maybe(i));
  const Sizes wanted = call.integers(5);
  const Tensor* gb = wanted.size() > 3 && wanted[3] != 0 ? call.maybe(3) : nullptr;
  for (int64_t b = 0; b < q.sizes[0]; ++b) {
    for (int64_t h = 0; h < q.sizes[1]; ++h) {
      const Head head(call, 1, call.flag(13, "is_causal"), b, h);
      std::vector<double> p(static_cast<size_t>(head.keys()));
      for (int64_t i = 0; i < q.sizes[2]; ++i) {
        head.weigh(i, &p);
        const double total = head.dot(grad, i, out, i);
        for (int64_t j = 0; j < head.keys(); ++j) {
          const double weight = p[static_cast<size_t>(j)];
          const double slope = weight * (head.dot(grad, i, head.v, j) - total);
          for (int64_t e = 0; e < q.sizes[3]; ++e) {
            add_to(gq, {b, h, i, e}, slope * head.scale * head.k.get(head.k.at({b, h, j, e})));
            add_to(gk, {b, h, j, e}, slope * head.scale * q.get(q.at({b, h, i, e})));
          }
          for (int64_t e = 0; e < head.v.sizes[3]; ++e) {
            add_to(gv, {b, h, j, e}, weight * grad.get(grad.at({b, h, i, e})));
          }
          add_to(gb, {b, h, i, j}, slope);
        }
      }
    }
  }
}

}  // namespace

void add_products(Kernels* kernels) {
  kernels->insert({{"aten.mm.default", multiply},
                   {"aten.bmm.default", multiply},
                   {"aten.addmm.default", multiply_and_add},
                   {"aten.baddbmm.default", multiply_and_add},
                   {"aten._scaled_dot_product_fused_attention_overrideable.default", attention},
                   {"aten._scaled_dot_product_fused_attention_overrideable_backward.default",
                    attention_backward}});
}

}  // namespace chip
