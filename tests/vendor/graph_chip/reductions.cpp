// tests/vendor/graph_chip/reductions.cpp: sums, softmax, normalisation and losses.
#include <algorithm>
#include <cmath>

#include "call.h"

namespace chip {

namespace {

int64_t wrapped(int64_t dim, int64_t rank) {
  return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim;
}

// By dimension, whether it is reduced; none named: all.
std::vector<bool> reduced_dims(const Call& call) {
  const Tensor& in = call[0];
  const Sizes dims = call.integers(1, "dim");
  std::vector<bool> reduced(in.sizes.size(), dims.empty());
  for (int64_t dim : dims) {
    if (in.rank() > 0) reduced[static_cast<size_t>(wrapped(dim, in.rank()))] = true;
  }
  return reduced;
}

template <double (*F)(double, double)>
void reduce(const Call& call, double begin, bool mean) {
  const Tensor &in = call[0], &out = call.result();
  const std::vector<bool> reduced = reduced_dims(call);
  const bool keeps = out.rank() == in.rank();
  Sizes outer, inner;
  for (size_t d = 0; d < in.sizes.size(); ++d) {
    outer.push_back(reduced[d] ? 1 : in.sizes[d]);
    inner.push_back(reduced[d] ? in.sizes[d] : 1);
  }
  int64_t elements = 1;
  for (int64_t size : inner) elements *= size;
  each(outer, [&](const Sizes& at) {
    double total = begin;
    each(inner, [&](const Sizes& i) {
      int64_t place = 0;
      for (size_t d = 0; d < i.size(); ++d) place += (at[d] + i[d]) * in.strides[d];
      total = F(total, in.get(place));
    });
    Sizes to;
    for (size_t d = 0; d < at.size(); ++d) {
      if (keeps || !reduced[d]) to.push_back(at[d]);
    }
    out.set(out.at(to), mean ? total / static_cast<double>(elements) : total);
  });
}

double plus(double a, double b) { return a + b; }
double greater(double a, double b) { return b > a || b != b ? b : a; }
void sum(const Call& call) { reduce<plus>(call, 0, false); }
void mean(const Call& call) { reduce<plus>(call, 0, true); }
void amax(const Call& call) { reduce<greater>(call, -INFINITY, false); }

// Calls f(begin of the line in in, in out) for each line along the dimension.
template <class F>
void each_line(const Tensor& in, const Tensor& out, int64_t dim, F f) {
  Sizes lines = in.sizes;
  if (!lines.empty()) lines[static_cast<size_t>(dim)] = 1;
  each(lines, [&](const Sizes& i) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < i.size(); ++d) from += i[d] * in.strides[d], to += i[d] * out.strides[d];
    f(from, to);
  });
}

template <bool kLog>
void softmax(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  const int64_t dim = wrapped(call.integer(1, "dim", 0), in.rank());
  const auto d = static_cast<size_t>(dim);
  each_line(in, out, dim, [&](int64_t from, int64_t to) {
    double most = -INFINITY, total = 0;
    for (int64_t k = 0; k < in.sizes[d]; ++k)
      most = std::max(most, in.get(from + k * in.strides[d]));
    for (int64_t k = 0; k < in.sizes[d]; ++k) {
      total += std::exp(in.get(from + k * in.strides[d]) - most);
    }
    for (int64_t k = 0; k < in.sizes[d]; ++k) {
      const double x = in.get(from + k * in.strides[d]) - most;
      out.set(to + k * out.strides[d], kLog ? x - std::log(total) : std::exp(x) / total);
    }
  });
}

// (gradient, output, dim)
template <bool kLog>
void softmax_backward(const Call& call) {
  const Tensor &grad = call[0], &y = call[1], &out = call.result();
  const int64_t dim = wrapped(call.integer(2, "dim", 0), y.rank());
  const auto d = static_cast<size_t>(dim);
  Sizes lines = y.sizes;
  lines[d] = 1;
  each(lines, [&](const Sizes& i) {
    const int64_t g = grad.at(i), v = y.at(i), o = out.at(i);
    double total = 0;
    for (int64_t k = 0; k < y.sizes[d]; ++k) {
      const double slope = grad.get(g + k * grad.strides[d]);
      total += kLog ? slope : slope * y.get(v + k * y.strides[d]);
    }
    for (int64_t k = 0; k < y.sizes[d]; ++k) {
      const double slope = grad.get(g + k * grad.strides[d]), value = y.get(v + k * y.strides[d]);
      out.set(o + k * out.strides[d],
              kLog ? slope - std::exp(value) * total : value * (slope - total));
    }
  });
}

void cumsum(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  const int64_t dim = wrapped(call.integer(1, "dim", 0), in.rank());
  const auto d = static_cast<size_t>(dim);
  each_line(in, out, dim, [&](int64_t from, int64_t to) {
    double total = 0;
    for (int64_t k = 0; k < in.sizes[d]; ++k) {
      total += in.get(from + k * in.strides[d]);
      out.set(to + k * out.strides[d], total);
    }
  });
}

double scale_of(const Tensor* weight, int64_t at) {
  return weight == nullptr ? 1 : weight->get(at);
}

// Rows of the last dimensions, as many as normalized_shape has.
struct Rows {
  Sizes outer, inner;
  int64_t elements = 1;
  Rows(const Tensor& in, size_t last) {
    const auto split = in.sizes.end() - static_cast<ptrdiff_t>(last);
    outer.assign(in.sizes.begin(), split), inner.assign(split, in.sizes.end());
    for (int64_t size : inner) elements *= size;
  }
  static Sizes joined(const Sizes& a, const Sizes& b) {
    Sizes all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  Sizes first(const Sizes& row) const { return joined(row, Sizes(inner.size(), 0)); }
};

void layer_norm(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  const Tensor *weight = call.tensor(2), *bias = call.tensor(3);
  const double eps = call.number(4, "eps", 1e-5);
  const Rows rows(in, call.integers(1).size());
  each(rows.outer, [&](const Sizes& row) {
    double total = 0, squares = 0;
    const auto value = [&](const Sizes& i) { return in.get(in.at(Rows::joined(row, i))); };
    each(rows.inner, [&](const Sizes& i) { total += value(i); });
    const double mean = total / static_cast<double>(rows.elements);
    each(rows.inner, [&](const Sizes& i) { squares += (value(i) - mean) * (value(i) - mean); });
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(rows.elements) + eps);
    each(rows.inner, [&](const Sizes& i) {
      const double scaled =
          (value(i) - mean) * rstd * (weight == nullptr ? 1 : weight->get(weight->at(i)));
      out.set(out.at(Rows::joined(row, i)),
              scaled + (bias == nullptr ? 0 : bias->get(bias->at(i))));
    });
    const Sizes at = rows.first(row);
    if (const Tensor* to = call.maybe(1)) to->set(to->at(at), mean);
    if (const Tensor* to = call.maybe(2)) to->set(to->at(at), rstd);
  });
}

// (gradient, input, shape, mean, rstd, weight, bias, mask)
void layer_norm_backward(const Call& call) {
  const Tensor &grad = call[0], &in = call[1], &mean = call[3], &rstd = call[4];
  const Tensor *weight = call.tensor(5), *out = call.maybe(0), *gw = call.maybe(1),
               *gb = call.maybe(2);
  const Rows rows(in, call.integers(2).size());
  std::vector<double> weights(static_cast<size_t>(rows.elements)), biases(weights);
  each(rows.outer, [&](const Sizes& row) {
    const Sizes at = rows.first(row);
    const double m = mean.get(mean.at(at)), r = rstd.get(rstd.at(at));
    double total = 0, scaled = 0;
    size_t n = 0;
    const auto slope = [&](const Sizes& i) { return grad.get(grad.at(Rows::joined(row, i))); };
    const auto value = [&](const Sizes& i) {
      return (in.get(in.at(Rows::joined(row, i))) - m) * r;
    };
    const auto scale = [&](const Sizes& i) {
      return weight == nullptr ? 1 : weight->get(weight->at(i));
    };
    each(rows.inner, [&](const Sizes& i) {
      const double g = slope(i) * scale(i);
      total += g, scaled += g * value(i);
      weights[n] += slope(i) * value(i), biases[n++] += slope(i);
    });
    if (out == nullptr) return;
    const auto count = static_cast<double>(rows.elements);
    each(rows.inner, [&](const Sizes& i) {
      out->set(out->at(Rows::joined(row, i)),
               r * (slope(i) * scale(i) - total / count - value(i) * scaled / count));
    });
  });
  size_t n = 0;
  each(rows.inner, [&](const Sizes& i) {
    if (gw != nullptr) gw->set(gw->at(i), weights[n]);
    if (gb != nullptr) gb->set(gb->at(i), biases[n]);
    ++n;
  });
}

// Calls f(place) for each element of a channel, the second dimension.
template <class F>
void each_in_channel(const Tensor& t, int64_t channel, F f) {
  Sizes sizes = t.sizes;
  sizes[1] = 1;
  each(sizes, [&](const Sizes& i) { f(i, t.at(i) + channel * t.strides[1]); });
}

void normalize_channels(const Call& call, size_t out_eps, bool training, double momentum) {
  const Tensor &in = call[0], &out = call.result();
  const Tensor *weight = call.tensor(1), *bias = call.tensor(2), *mean = call.tensor(3),
               *var = call.tensor(4);
  const double eps = call.number(out_eps, "eps", 1e-5);
  const auto count = static_cast<double>(in.count() / std::max<int64_t>(in.sizes[1], 1));
  for (int64_t c = 0; c < in.sizes[1]; ++c) {
    double total = 0, squares = 0;
    if (training) {
      each_in_channel(in, c, [&](const Sizes&, int64_t at) { total += in.get(at); });
      total /= count;
      each_in_channel(in, c, [&](const Sizes&, int64_t at) {
        squares += (in.get(at) - total) * (in.get(at) - total);
      });
    }
    const double m = training ? total : mean->get(c), v = training ? squares / count : var->get(c);
    const double r = 1 / std::sqrt(v + eps);
    each_in_channel(in, c, [&](const Sizes& i, int64_t at) {
      const double scaled = (in.get(at) - m) * r * scale_of(weight, c);
      out.set(out.at(i) + c * out.strides[1], scaled + (bias == nullptr ? 0 : bias->get(c)));
    });
    if (!training) continue;
    const double unbiased = count > 1 ? squares / (count - 1) : squares / count;
    if (call.maybe(1) != nullptr) call.maybe(1)->set(c, m);
    if (call.maybe(2) != nullptr) call.maybe(2)->set(c, r);
    if (call.maybe(3) != nullptr)
      call.maybe(3)->set(c, mean->get(c) * (1 - momentum) + m * momentum);
    if (call.maybe(4) != nullptr)
      call.maybe(4)->set(c, var->get(c) * (1 - momentum) + unbiased * momentum);
  }
}

void batch_norm(const Call& call) {
  normalize_channels(call, 7, call.flag(5), call.number(6, "momentum", 0.1));
}
void batch_norm_inference(const Call& call) { normalize_channels(call, 6, false, 0); }

// (gradient, input, weight, running mean and var, saved mean and invstd, train, eps, mask)
void batch_norm_backward(const Call& call) {
  const Tensor &grad = call[0], &in = call[1];
  const Tensor *weight = call.tensor(2), *out = call.maybe(0);
  const bool train = call.flag(7);
  const auto count = static_cast<double>(in.count() / std::max<int64_t>(in.sizes[1], 1));
  for (int64_t c = 0; c < in.sizes[1]; ++c) {
    const double m = train ? call[5].get(c) : call[3].get(c);
    const double r =
        train ? call[6].get(c) : 1 / std::sqrt(call[4].get(c) + call.number(8, "eps", 1e-5));
    double total = 0, scaled = 0;
    each_in_channel(in, c, [&](const Sizes& i, int64_t at) {
      const double g = grad.get(grad.at(i) + c * grad.strides[1]);
      total += g, scaled += g * (in.get(at) - m) * r;
    });
    if (call.maybe(1) != nullptr) call.maybe(1)->set(c, scaled);
    if (call.maybe(2) != nullptr) call.maybe(2)->set(c, total);
    if (out == nullptr) continue;
    each_in_channel(in, c, [&](const Sizes& i, int64_t at) {
      double g = grad.get(grad.at(i) + c * grad.strides[1]);
      if (train) g -= total / count + (in.get(at) - m) * r * scaled / count;
      out->set(out->at(i) + c * out->strides[1], g * r * scale_of(weight, c));
    });
  }
}

// (scores [n, classes], target, weight, reduction, ignored class)
void nll_loss(const Call& call) {
  const Tensor &in = call[0], &target = call[1], &out = call.result();
  const int64_t reduction = call.integer(3, "reduction", 1),
                ignored = call.integer(4, "ignore_index", -100);
  double total = 0, weight = 0;
  for (int64_t i = 0; i < in.sizes[0]; ++i) {
    const auto c = static_cast<int64_t>(target.get(i * target.strides[0]));
    const double loss = c == ignored ? 0 : -in.get(i * in.strides[0] + c * in.strides[1]);
    total += loss, weight += c != ignored;
    if (reduction == 0) out.set(i * out.strides[0], loss);
  }
  if (reduction != 0) out.set(0, reduction == 1 ? total / weight : total);
  if (call.maybe(1) != nullptr) call.maybe(1)->set(0, weight);
}

// (gradient, scores, target, weight, reduction, ignored class, total weight)
void nll_loss_backward(const Call& call) {
  const Tensor &grad = call[0], &target = call[2], &out = call.result();
  const int64_t reduction = call.integer(4, "reduction", 1),
                ignored = call.integer(5, "ignore_index", -100);
  each(out.sizes, [&](const Sizes& i) {
    const auto c = static_cast<int64_t>(target.get(i[0] * target.strides[0]));
    const double g = grad.get(reduction == 0 ? i[0] * grad.strides[0] : 0);
    const double slope = reduction == 1 ? g / call[6].get(0) : g;
    out.set(out.at(i), i[1] == c && c != ignored ? -slope : 0);
  });
}

}  // namespace

void add_reductions(Kernels* kernels) {
  kernels->insert({{"aten.sum.dim_IntList", sum},
                   {"aten.sum.default", sum},
                   {"aten.mean.dim", mean},
                   {"aten.mean.default", mean},
                   {"aten.amax.default", amax},
                   {"aten.cumsum.default", cumsum},
                   {"aten._softmax.default", softmax<false>},
                   {"aten._log_softmax.default", softmax<true>},
                   {"aten._softmax_backward_data.default", softmax_backward<false>},
                   {"aten._log_softmax_backward_data.default", softmax_backward<true>},
                   {"aten.native_layer_norm.default", layer_norm},
                   {"aten.native_layer_norm_backward.default", layer_norm_backward},
                   {"aten._native_batch_norm_legit_functional.default", batch_norm},
                   {"aten._native_batch_norm_legit_no_training.default", batch_norm_inference},
                   {"aten.native_batch_norm_backward.default", batch_norm_backward},
                   {"aten.nll_loss_forward.default", nll_loss},
                   {"aten.nll_loss_backward.default", nll_loss_backward}});
}

}  // namespace chip
