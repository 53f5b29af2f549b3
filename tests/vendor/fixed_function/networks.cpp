// tests/vendor/fixed_function/networks.cpp: pooling and losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "chip.h"

namespace chip {
namespace {

// The planes of images [n, c, h, w] or [c, h, w].
struct Planes {
  const Tensor& tensor;
  uint32_t row = tensor.layout->rank - 2;
  int64_t h = tensor.size(row), w = tensor.size(row + 1), count = tensor.count() / (h * w);

  int64_t place(int64_t plane, int64_t y, int64_t x) const {
    return tensor.place((plane * h + y) * w + x);
  }
};

// max_pool2d: output, indices, input; kernel, stride, padding and dilation, two numbers each.
void run_max_pool(const Run& run) {
  const Planes output{run[0]}, indices{run[1]}, input{run[2]};
  for (int64_t plane = 0; plane < output.count; ++plane) {
    for (int64_t i = 0; i < output.h; ++i) {
      for (int64_t j = 0; j < output.w; ++j) {
        float largest = -std::numeric_limits<float>::infinity();
        int64_t found = -1;
        for (int64_t a = 0; a < run.integer(0); ++a) {
          for (int64_t b = 0; b < run.integer(1); ++b) {
            const int64_t y = i * run.integer(2) - run.integer(4) + a * run.integer(6);
            const int64_t x = j * run.integer(3) - run.integer(5) + b * run.integer(7);
            if (y < 0 || y >= input.h || x < 0 || x >= input.w) continue;
            const float value = run[2].real(input.place(plane, y, x));
            if (found >= 0 && !(value > largest) && !std::isnan(value)) continue;
            largest = value, found = y * input.w + x;
          }
        }
        run[0].real(output.place(plane, i, j)) = largest;
        run[1].whole(indices.place(plane, i, j)) = found;
      }
    }
  }
}

// max_pool2d_backward: grad_input, grad_output, indices.
void run_max_gradient(const Run& run) {
  const Planes to{run[0]}, above{run[1]}, indices{run[2]};
  for (int64_t at = 0, count = run[0].count(); at < count; ++at) run[0].at(at) = 0;
  for (int64_t plane = 0; plane < above.count; ++plane) {
    for (int64_t i = 0; i < above.h; ++i) {
      for (int64_t j = 0; j < above.w; ++j) {
        const int64_t found = run[2].whole(indices.place(plane, i, j));
        if (found < 0) continue;
        run[0].real(to.place(plane, found / to.w, found % to.w)) +=
            run[1].real(above.place(plane, i, j));
      }
    }
  }
}

// Calls each(place in small, place in large, elements of the window).
template <class Each>
void windows(const Planes& small, const Planes& large, const Each& each) {
  const auto end = [](int64_t i, int64_t from, int64_t to) {
    return ((i + 1) * from + to - 1) / to;
  };
  for (int64_t plane = 0; plane < small.count; ++plane) {
    for (int64_t i = 0; i < small.h; ++i) {
      for (int64_t j = 0; j < small.w; ++j) {
        const int64_t y0 = i * large.h / small.h, y1 = end(i, large.h, small.h);
        const int64_t x0 = j * large.w / small.w, x1 = end(j, large.w, small.w);
        for (int64_t y = y0; y < y1; ++y) {
          for (int64_t x = x0; x < x1; ++x) {
            each(small.place(plane, i, j), large.place(plane, y, x),
                 static_cast<float>((y1 - y0) * (x1 - x0)));
          }
        }
      }
    }
  }
}

void clear(const Tensor& tensor) {
  for (int64_t at = 0, count = tensor.count(); at < count; ++at) tensor.at(at) = 0;
}

void run_average(const Run& run) {
  clear(run[0]);
  windows(Planes{run[0]}, Planes{run[1]}, [&](int64_t to, int64_t from, float elements) {
    run[0].real(to) += run[1].real(from) / elements;
  });
}

void run_average_gradient(const Run& run) {
  clear(run[0]);
  windows(Planes{run[1]}, Planes{run[0]}, [&](int64_t from, int64_t to, float elements) {
    run[0].real(to) += run[1].real(from) / elements;
  });
}

enum Reduction { kNone, kMean };

// The target of element i, and where its score lies among [n, c, spatial...]; -1: left out.
int64_t target_of(const Run& run, const Tensor& target, int64_t i) {
  const int64_t label = target.whole(target.place(i));
  return label == run.integer(1) ? -1 : label;
}

int64_t score_of(const Tensor& scores, const Tensor& target, int64_t i, int64_t label) {
  const int64_t n = scores.layout->rank > 1 ? scores.size(0) : 1;
  const int64_t spatial = target.count() / n;
  const int64_t channels = scores.count() / target.count();
  return scores.place((i / spatial * channels + label) * spatial + i % spatial);
}

// nll_loss: output, total_weight; input, target, weight.
void run_loss(const Run& run) {
  double sum = 0, total = 0;
  for (int64_t i = 0; i < run[3].count(); ++i) {
    const int64_t label = target_of(run, run[3], i);
    const double share = label < 0 ? 0 : run[4].given() ? run[4].at(label) : 1;
    const double loss = label < 0 ? 0 : -share * run[2].real(score_of(run[2], run[3], i, label));
    if (run.integer(0) == kNone) run[0].at(i) = static_cast<float>(loss);
    sum += loss, total += share;
  }
  const bool each = run.integer(0) == kNone;
  if (!each) run[0].at(0) = static_cast<float>(run.integer(0) == kMean ? sum / total : sum);
  run[1].at(0) = static_cast<float>(each ? 0 : total);
}

// nll_loss_backward: grad_input; grad_output, target, weight, total_weight.
void run_loss_gradient(const Run& run) {
  clear(run[0]);
  for (int64_t i = 0; i < run[2].count(); ++i) {
    const int64_t label = target_of(run, run[2], i);
    if (label < 0) continue;
    double slope = -static_cast<double>(run[1].at(run.integer(0) == kNone ? i : 0));
    if (run[3].given()) slope *= run[3].at(label);
    if (run.integer(0) == kMean) slope /= run[4].at(0);
    run[0].real(score_of(run[0], run[2], i, label)) = static_cast<float>(slope);
  }
}

}  // namespace

std::vector<Operation> networks() {
  return {
      {"max_pool2d", run_max_pool, 0b10},   {"max_pool2d_backward", run_max_gradient, 0b100},
      {"adaptive_avg_pool2d", run_average}, {"adaptive_avg_pool2d_backward", run_average_gradient},
      {"nll_loss", run_loss, 0b1000},       {"nll_loss_backward", run_loss_gradient, 0b100}};
}

}  // namespace chip
