// tests/vendor/graph_chip/convolutions.cpp: convolutions and pooling of images.
#include <cmath>

#include "call.h"

namespace chip {

namespace {

// Numbers of a convolution; first: where its strides stand among the arguments.
struct Window {
  std::pair<int64_t, int64_t> stride, padding, dilation;
  int64_t groups;

  Window(const Call& call, size_t first)
      : stride(call.pair(first, "stride", 1)),
        padding(call.pair(first + 1, "padding", 0)),
        dilation(call.pair(first + 2, "dilation", 1)),
        groups(call.integer(first + 5, "groups", 1)) {}

  // Calls f(input, weight, output), places of each product, for one image and output channel.
  template <class F>
  void each_product(const Tensor& x, const Tensor& w, const Tensor& y, int64_t n, int64_t o,
                    F f) const {
    const int64_t inner = w.sizes[1], group = o / (w.sizes[0] / groups);
    for (int64_t c = 0; c < inner; ++c) {
      for (int64_t kh = 0; kh < w.sizes[2]; ++kh) {
        for (int64_t kw = 0; kw < w.sizes[3]; ++kw) {
          const int64_t weight =
              o * w.strides[0] + c * w.strides[1] + kh * w.strides[2] + kw * w.strides[3];
          for (int64_t oh = 0; oh < y.sizes[2]; ++oh) {
            const int64_t ih = oh * stride.first - padding.first + kh * dilation.first;
            if (ih < 0 || ih >= x.sizes[2]) continue;
            const int64_t row =
                n * x.strides[0] + (group * inner + c) * x.strides[1] + ih * x.strides[2];
            const int64_t line = n * y.strides[0] + o * y.strides[1] + oh * y.strides[2];
            for (int64_t ow = 0; ow < y.sizes[3]; ++ow) {
              const int64_t iw = ow * stride.second - padding.second + kw * dilation.second;
              if (iw >= 0 && iw < x.sizes[3]) {
                f(row + iw * x.strides[3], weight, line + ow * y.strides[3]);
              }
            }
          }
        }
      }
    }
  }
};

void fill(const Tensor& to, double value) {
  each(to.sizes, [&](const Sizes& i) { to.set(to.at(i), value); });
}

void convolution(const Call& call) {
  const Tensor &x = call[0], &w = call[1], &y = call.result();
  const Tensor* bias = call.tensor(2);
  const Window window(call, 3);
  each(y.sizes, [&](const Sizes& i) { y.set(y.at(i), bias == nullptr ? 0 : bias->get(i[1])); });
  for (int64_t n = 0; n < y.sizes[0]; ++n) {
    for (int64_t o = 0; o < y.sizes[1]; ++o) {
      window.each_product(x, w, y, n, o, [&](int64_t from, int64_t weight, int64_t to) {
        y.floats()[to] += x.floats()[from] * w.floats()[weight];
      });
    }
  }
}

// (gradient, input, weight, bias sizes, stride, ..., mask)
void convolution_backward(const Call& call) {
  const Tensor &grad = call[0], &x = call[1], &w = call[2];
  const Tensor *gx = call.maybe(0), *gw = call.maybe(1), *gb = call.maybe(2);
  const Window window(call, 4);
  for (const Tensor* one : {gx, gw, gb}) {
    if (one != nullptr) fill(*one, 0);
  }
  // A gradient lies as its tensor does, or by strides of its own.
  for (int64_t n = 0; n < grad.sizes[0]; ++n) {
    for (int64_t o = 0; o < grad.sizes[1]; ++o) {
      if (gx != nullptr) {
        window.each_product(*gx, w, grad, n, o, [&](int64_t from, int64_t weight, int64_t to) {
          gx->floats()[from] += grad.floats()[to] * w.floats()[weight];
        });
      }
      if (gw != nullptr) {
        window.each_product(x, *gw, grad, n, o, [&](int64_t from, int64_t weight, int64_t to) {
          gw->floats()[weight] += grad.floats()[to] * x.floats()[from];
        });
      }
    }
  }
  if (gb == nullptr) return;
  each(grad.sizes,
       [&](const Sizes& i) { gb->floats()[i[1]] += static_cast<float>(grad.get(grad.at(i))); });
}

// (input, kernel, stride, padding, dilation, ceil); results: the greatest, and where they are
void max_pool(const Call& call) {
  const Tensor &x = call[0], &y = call.result(0), *where = call.maybe(1);
  const auto kernel = call.pair(1, "kernel_size", 1), padding = call.pair(3, "padding", 0);
  const auto dilation = call.pair(4, "dilation", 1);
  auto stride = call.pair(2, "stride", 0);
  if (stride.first == 0) stride = kernel;
  each(y.sizes, [&](const Sizes& i) {
    double most = -INFINITY;
    int64_t place = -1;
    for (int64_t kh = 0; kh < kernel.first; ++kh) {
      for (int64_t kw = 0; kw < kernel.second; ++kw) {
        const int64_t h = i[2] * stride.first - padding.first + kh * dilation.first;
        const int64_t w = i[3] * stride.second - padding.second + kw * dilation.second;
        if (h < 0 || w < 0 || h >= x.sizes[2] || w >= x.sizes[3]) continue;
        const double value = x.get(x.at({i[0], i[1], h, w}));
        if (value > most || place < 0 || value != value) most = value, place = h * x.sizes[3] + w;
      }
    }
    y.set(y.at(i), most);
    if (where != nullptr) where->set(where->at(i), static_cast<double>(place));
  });
}

// (gradient, input, ..., places at 7)
void max_pool_backward(const Call& call) {
  const Tensor &grad = call[0], &x = call[1], &where = call[7], &out = call.result();
  fill(out, 0);
  each(grad.sizes, [&](const Sizes& i) {
    const auto place = static_cast<int64_t>(where.get(where.at(i)));
    const int64_t to = out.at({i[0], i[1], place / x.sizes[3], place % x.sizes[3]});
    out.set(to, out.get(to) + grad.get(grad.at(i)));
  });
}

}  // namespace

void add_convolutions(Kernels* kernels) {
  kernels->insert({{"aten.convolution.default", convolution},
                   {"aten.convolution_backward.default", convolution_backward},
                   {"aten.max_pool2d_with_indices.default", max_pool},
                   {"aten.max_pool2d_with_indices_backward.default", max_pool_backward}});
}

}  // namespace chip
