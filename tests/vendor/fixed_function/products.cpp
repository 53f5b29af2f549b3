// tests/vendor/fixed_function/products.cpp: matrix products, convolutions, attention.
#include <algorithm>
#include <cmath>
#include <limits>

#include "chip.h"

namespace chip {
namespace {

// matmul: output, a, b, addend.
void run_matmul(const Run& run) {
  const Tensor &output = run[0], &a = run[1], &b = run[2], &addend = run[3];
  const uint32_t row = output.layout->rank - 2, column = row + 1;
  const int64_t m = output.size(row), n = output.size(column), k = a.size(column);
  const int64_t batches = row == 1 ? output.size(0) : 1;
  const auto start = [&](const Tensor& tensor, int64_t batch, int64_t i) {
    return (row == 1 ? batch * tensor.stride(0) : 0) + i * tensor.stride(row);
  };
  shared(batches * m, [&](int64_t line) {
    const int64_t batch = line / m, i = line % m;
    std::vector<float> sums(static_cast<size_t>(n), 0.0f);
    for (int64_t p = 0; p < k; ++p) {
      const float factor = a.real(start(a, batch, i) + p * a.stride(column));
      const float* from = &b.real(start(b, batch, p));
      const int64_t step = b.stride(column);
      for (int64_t j = 0; j < n; ++j) sums[static_cast<size_t>(j)] += factor * from[j * step];
    }
    for (int64_t j = 0; j < n; ++j) {
      auto value = static_cast<float>(run.number(0)) * sums[static_cast<size_t>(j)];
      if (addend.given()) {
        const float more = addend.real(start(addend, batch, i) + j * addend.stride(column));
        value += static_cast<float>(run.number(1)) * more;
      }
      if (run.integer(0) != 0) value = std::max(value, 0.0f);
      output.real(start(output, batch, i) + j * output.stride(column)) = value;
    }
  });
}

// A convolution of two spatial dimensions as sums over its taps: input, weight and output,
// whichever of them is written. Of the pairs (image row of input, of output) each tap joins some.
struct Taps {
  const Run& run;
  const Tensor &input, &weight, &output;
  int64_t groups = run.integer(9);
  int64_t out_group = weight.size(0) / groups;

  // Input position of output position `at` at tap k along spatial dimension d; -1: outside.
  int64_t position(size_t d, int64_t at, int64_t k) const {
    const int64_t place = at * run.integer(d) - run.integer(3 + d) + k * run.integer(6 + d);
    return place < 0 || place >= input.size(static_cast<uint32_t>(d) + 2) ? -1 : place;
  }

  // each(place in input, in weight, in output) for image n, output channel o.
  template <class Each>
  void walk(int64_t n, int64_t o, const Each& each) const {
    const int64_t first = o / out_group * weight.size(1);
    for (int64_t c = 0; c < weight.size(1); ++c) {
      for (int64_t y = 0; y < weight.size(2); ++y) {
        for (int64_t x = 0; x < weight.size(3); ++x) {
          const int64_t tap = o * weight.stride(0) + c * weight.stride(1) + y * weight.stride(2) +
                              x * weight.stride(3);
          for (int64_t i = 0; i < output.size(2); ++i) {
            const int64_t row = position(0, i, y);
            if (row < 0) continue;
            const int64_t line =
                n * input.stride(0) + (first + c) * input.stride(1) + row * input.stride(2);
            const int64_t to = n * output.stride(0) + o * output.stride(1) + i * output.stride(2);
            for (int64_t j = 0; j < output.size(3); ++j) {
              const int64_t column = position(1, j, x);
              if (column < 0) continue;
              each(line + column * input.stride(3), tap, to + j * output.stride(3));
            }
          }
        }
      }
    }
  }
};

void clear(const Tensor& tensor) {
  for (int64_t at = 0, count = tensor.count(); at < count; ++at) tensor.at(at) = 0;
}

// convolution: output, input, weight, bias.
void run_convolution(const Run& run) {
  const Tensor &output = run[0], &input = run[1], &weight = run[2], &bias = run[3];
  const Taps taps{run, input, weight, output};
  const int64_t channels = output.size(1), plane = output.size(2) * output.size(3);
  shared(output.size(0) * channels, [&](int64_t image) {
    const int64_t n = image / channels, o = image % channels;
    for (int64_t at = 0; at < plane; ++at) {
      output.at(image * plane + at) = bias.given() ? bias.at(o) : 0;
    }
    taps.walk(n, o, [&](int64_t in, int64_t tap, int64_t out) {
      output.real(out) += input.real(in) * weight.real(tap);
    });
  });
}

// convolution_backward_input: grad_input, weight, grad_output.
void run_input_gradient(const Run& run) {
  clear(run[0]);
  const Taps taps{run, run[0], run[1], run[2]};
  shared(run[0].size(0), [&](int64_t n) {
    for (int64_t o = 0; o < run[2].size(1); ++o) {
      taps.walk(n, o, [&](int64_t in, int64_t tap, int64_t out) {
        run[0].real(in) += run[2].real(out) * run[1].real(tap);
      });
    }
  });
}

// convolution_backward_weight: grad_weight, input, grad_output.
void run_weight_gradient(const Run& run) {
  clear(run[0]);
  const Taps taps{run, run[1], run[0], run[2]};
  shared(run[0].size(0), [&](int64_t o) {
    for (int64_t n = 0; n < run[1].size(0); ++n) {
      taps.walk(n, o, [&](int64_t in, int64_t tap, int64_t out) {
        run[0].real(tap) += run[1].real(in) * run[2].real(out);
      });
    }
  });
}

bool two_dimensions(const Plan& plan) { return plan.tensors[0].rank == 4; }

// One head of attention: the weights of a row of queries.
struct Head {
  const Run& run;
  const Tensor &query, &key, &bias;

  int64_t key_head(int64_t h) const { return h / (query.size(1) / key.size(1)); }

  static int64_t row(const Tensor& tensor, int64_t b, int64_t h, int64_t i) {
    return b * tensor.stride(0) + h * tensor.stride(1) + i * tensor.stride(2);
  }

  double weights(int64_t b, int64_t h, int64_t i, std::vector<double>* out) const {
    const int64_t columns = key.size(2), depth = query.size(3);
    const int64_t seen = run.integer(0) != 0 ? std::min(i + 1, columns) : columns;
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    out->assign(static_cast<size_t>(columns), 0.0);
    for (int64_t j = 0; j < seen; ++j) {
      double score = 0;
      const int64_t from = row(query, b, h, i), to = row(key, b, key_head(h), j);
      for (int64_t d = 0; d < depth; ++d) {
        score += static_cast<double>(query.real(from + d * query.stride(3))) *
                 key.real(to + d * key.stride(3));
      }
      score *= run.number(0);
      if (bias.given()) score += bias.real(row(bias, b, h, i) + j * bias.stride(3));
      (*out)[static_cast<size_t>(j)] = score;
      largest = std::max(largest, score);
    }
    for (int64_t j = 0; j < seen; ++j) {
      double& weight = (*out)[static_cast<size_t>(j)];
      weight = std::isinf(largest) ? 0 : std::exp(weight - largest);
      sum += weight;
    }
    for (double& weight : *out) weight = sum == 0 ? 0 : weight / sum;
    return sum == 0 ? -std::numeric_limits<double>::infinity() : largest + std::log(sum);
  }
};

bool drops_nothing(const Plan& plan) { return plan.numbers[1] == 0; }

// attention: output, logsumexp, query, key, value, bias.
void run_attention(const Run& run) {
  const Tensor &output = run[0], &query = run[2], &value = run[4];
  const Head head{run, query, run[3], run[5]};
  const int64_t heads = query.size(1), rows = query.size(2);
  shared(query.size(0) * heads, [&](int64_t image) {
    const int64_t b = image / heads, h = image % heads;
    std::vector<double> weights;
    for (int64_t i = 0; i < rows; ++i) {
      run[1].at(image * rows + i) = static_cast<float>(head.weights(b, h, i, &weights));
      for (int64_t d = 0; d < value.size(3); ++d) {
        double sum = 0;
        for (size_t j = 0; j < weights.size(); ++j) {
          const int64_t from = Head::row(value, b, head.key_head(h), static_cast<int64_t>(j));
          sum += weights[j] * value.real(from + d * value.stride(3));
        }
        output.real(Head::row(output, b, h, i) + d * output.stride(3)) = static_cast<float>(sum);
      }
    }
  });
}

// attention_backward: grad_query, grad_key, grad_value, grad_output, query, key, value, bias.
void run_attention_gradients(const Run& run) {
  const Tensor &above = run[3], &query = run[4], &key = run[5], &value = run[6];
  for (size_t i = 0; i < 3; ++i) clear(run[i]);
  const Head head{run, query, key, run[7]};
  const auto element = [](const Tensor& tensor, int64_t b, int64_t h, int64_t i,
                          int64_t d) -> float& {
    return tensor.real(Head::row(tensor, b, h, i) + d * tensor.stride(3));
  };
  std::vector<double> weights, slopes;
  for (int64_t b = 0; b < query.size(0); ++b) {
    for (int64_t h = 0; h < query.size(1); ++h) {
      const int64_t kh = head.key_head(h);
      for (int64_t i = 0; i < query.size(2); ++i) {
        head.weights(b, h, i, &weights);
        slopes.assign(weights.size(), 0.0);
        double mean = 0;
        for (size_t j = 0; j < weights.size(); ++j) {
          const auto at = static_cast<int64_t>(j);
          for (int64_t d = 0; d < value.size(3); ++d) {
            const float slope = element(above, b, h, i, d);
            slopes[j] += static_cast<double>(slope) * element(value, b, kh, at, d);
            element(run[2], b, kh, at, d) += static_cast<float>(weights[j] * slope);
          }
          mean += weights[j] * slopes[j];
        }
        for (size_t j = 0; j < weights.size(); ++j) {
          const auto at = static_cast<int64_t>(j);
          const double slope = weights[j] * (slopes[j] - mean) * run.number(0);
          for (int64_t d = 0; d < query.size(3); ++d) {
            element(run[0], b, h, i, d) += static_cast<float>(slope * element(key, b, kh, at, d));
            element(run[1], b, kh, at, d) += static_cast<float>(slope * element(query, b, h, i, d));
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<Operation> products() {
  return {{"matmul", run_matmul},
          {"convolution", run_convolution, 0, two_dimensions},
          {"convolution_backward_input", run_input_gradient, 0, two_dimensions},
          {"convolution_backward_weight", run_weight_gradient, 0, two_dimensions},
          {"attention", run_attention, 0, drops_nothing},
          {"attention_backward", run_attention_gradients, 0, drops_nothing}};
}

}  // namespace chip
