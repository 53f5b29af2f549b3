// tests/vendor/fixed_function/norms.cpp: softmax, layer and batch normalisation, and their
// gradients.
#include <algorithm>
#include <cmath>

#include "chip.h"

namespace chip {
namespace {

// Lines along a dimension: each(first place of every tensor, by number) and their strides.
struct Lines {
  int64_t outer = 1, inner = 1, n = 1;

  Lines(const Tensor& tensor, int64_t dim) {
    for (uint32_t d = 0; d < tensor.layout->rank; ++d) {
      (d < dim ? outer : d > dim ? inner : n) *= tensor.size(d);
    }
  }
  int64_t number(int64_t line, int64_t i) const {
    return (line / inner * n + i) * inner + line % inner;
  }
};

void run_softmax(const Run& run) {
  const Tensor &output = run[0], &input = run[1];
  const bool log = run.integer(1) != 0;
  const Lines lines(input, run.integer(0));
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    float largest = input.at(lines.number(line, 0));
    for (int64_t i = 1; i < lines.n; ++i) {
      largest = std::max(largest, input.at(lines.number(line, i)));
    }
    double sum = 0;
    for (int64_t i = 0; i < lines.n; ++i) {
      sum += std::exp(static_cast<double>(input.at(lines.number(line, i))) - largest);
    }
    for (int64_t i = 0; i < lines.n; ++i) {
      const double x = static_cast<double>(input.at(lines.number(line, i))) - largest;
      output.at(lines.number(line, i)) =
          static_cast<float>(log ? x - std::log(sum) : std::exp(x) / sum);
    }
  }
}

// softmax_backward: grad_input, grad_output, output.
void run_softmax_gradient(const Run& run) {
  const Tensor &to = run[0], &above = run[1], &output = run[2];
  const bool log = run.integer(1) != 0;
  const Lines lines(output, run.integer(0));
  for (int64_t line = 0; line < lines.outer * lines.inner; ++line) {
    double sum = 0;
    for (int64_t i = 0; i < lines.n; ++i) {
      const int64_t at = lines.number(line, i);
      sum += log ? above.at(at) : static_cast<double>(above.at(at)) * output.at(at);
    }
    for (int64_t i = 0; i < lines.n; ++i) {
      const int64_t at = lines.number(line, i);
      const double grad = above.at(at), y = output.at(at);
      to.at(at) = static_cast<float>(log ? grad - std::exp(y) * sum : (grad - sum) * y);
    }
  }
}

// layer_norm: output, mean, rstd, input, weight, bias.
void run_layer_norm(const Run& run) {
  const int64_t rows = run.integer(0), n = run.integer(1);
  for (int64_t row = 0; row < rows; ++row) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; ++i) mean += run[3].at(row * n + i);
    mean /= static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) square += std::pow(run[3].at(row * n + i) - mean, 2);
    const double scale = 1 / std::sqrt(square / static_cast<double>(n) + run.number(0));
    if (run[1].given()) run[1].at(row) = static_cast<float>(mean);
    if (run[2].given()) run[2].at(row) = static_cast<float>(scale);
    for (int64_t i = 0; i < n; ++i) {
      double value = (run[3].at(row * n + i) - mean) * scale;
      if (run[4].given()) value *= run[4].at(i);
      if (run[5].given()) value += run[5].at(i);
      run[0].at(row * n + i) = static_cast<float>(value);
    }
  }
}

// layer_norm_backward: grad_input, grad_weight, grad_bias; grad_output, input, mean, rstd, weight.
void run_layer_gradients(const Run& run) {
  const int64_t rows = run.integer(0), n = run.integer(1);
  std::vector<double> to_weight(static_cast<size_t>(n)), to_bias(static_cast<size_t>(n));
  for (int64_t row = 0; row < rows; ++row) {
    const double mean = run[5].at(row), scale = run[6].at(row);
    double sum = 0, along = 0;
    const auto slope = [&](int64_t i) {
      return static_cast<double>(run[3].at(row * n + i)) * (run[7].given() ? run[7].at(i) : 1);
    };
    const auto normal = [&](int64_t i) { return (run[4].at(row * n + i) - mean) * scale; };
    for (int64_t i = 0; i < n; ++i) {
      sum += slope(i), along += slope(i) * normal(i);
      to_weight[static_cast<size_t>(i)] += run[3].at(row * n + i) * normal(i);
      to_bias[static_cast<size_t>(i)] += run[3].at(row * n + i);
    }
    for (int64_t i = 0; i < n && run[0].given(); ++i) {
      const auto count = static_cast<double>(n);
      run[0].at(row * n + i) =
          static_cast<float>(scale * (slope(i) - sum / count - normal(i) * along / count));
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    if (run[1].given()) run[1].at(i) = static_cast<float>(to_weight[static_cast<size_t>(i)]);
    if (run[2].given()) run[2].at(i) = static_cast<float>(to_bias[static_cast<size_t>(i)]);
  }
}

// Elements of one channel, numbered.
struct Channel {
  int64_t n, channels, plane;

  explicit Channel(const Tensor& tensor) : n(tensor.size(0)), channels(tensor.size(1)), plane(1) {
    for (uint32_t d = 2; d < tensor.layout->rank; ++d) plane *= tensor.size(d);
  }
  int64_t count() const { return n * plane; }
  int64_t number(int64_t c, int64_t i) const {
    return (i / plane * channels + c) * plane + i % plane;
  }
};

void apply_channel(const Run& run, const Channel& of, int64_t c, size_t input, double mean,
                   double scale) {
  const Tensor &weight = run[input + 1], &bias = run[input + 2];
  for (int64_t i = 0; i < of.count(); ++i) {
    double value = (run[input].at(of.number(c, i)) - mean) * scale;
    if (weight.given()) value *= weight.at(c);
    if (bias.given()) value += bias.at(c);
    run[0].at(of.number(c, i)) = static_cast<float>(value);
  }
}

// batch_norm_train: output, save_mean, save_invstd, new_mean, new_variance; input, weight, bias,
// running_mean, running_variance.
void run_batch_norm(const Run& run) {
  const Channel of(run[5]);
  const auto count = static_cast<double>(of.count());
  for (int64_t c = 0; c < of.channels; ++c) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < of.count(); ++i) mean += run[5].at(of.number(c, i));
    mean /= count;
    for (int64_t i = 0; i < of.count(); ++i)
      square += std::pow(run[5].at(of.number(c, i)) - mean, 2);
    const double scale = 1 / std::sqrt(square / count + run.number(1)), step = run.number(0);
    run[1].at(c) = static_cast<float>(mean);
    run[2].at(c) = static_cast<float>(scale);
    if (run[3].given()) {
      run[3].at(c) = static_cast<float>((1 - step) * run[8].at(c) + step * mean);
      run[4].at(c) = static_cast<float>((1 - step) * run[9].at(c) + step * square / (count - 1));
    }
    apply_channel(run, of, c, 5, mean, scale);
  }
}

// batch_norm_inference: output; input, weight, bias, running_mean, running_variance.
void run_batch_inference(const Run& run) {
  const Channel of(run[1]);
  for (int64_t c = 0; c < of.channels; ++c) {
    apply_channel(run, of, c, 1, run[4].at(c), 1 / std::sqrt(run[5].at(c) + run.number(0)));
  }
}

// batch_norm_backward: grad_input, grad_weight, grad_bias; grad_output, input, weight, mean,
// spread.
void run_batch_gradients(const Run& run) {
  const Channel of(run[4]);
  const bool train = run.integer(0) != 0;
  const auto count = static_cast<double>(of.count());
  for (int64_t c = 0; c < of.channels; ++c) {
    const double mean = run[6].at(c), spread = run[7].at(c);
    const double scale = train ? spread : 1 / std::sqrt(spread + run.number(0));
    double sum = 0, along = 0;
    for (int64_t i = 0; i < of.count(); ++i) {
      const double slope = run[3].at(of.number(c, i));
      sum += slope, along += slope * (run[4].at(of.number(c, i)) - mean) * scale;
    }
    if (run[1].given()) run[1].at(c) = static_cast<float>(along);
    if (run[2].given()) run[2].at(c) = static_cast<float>(sum);
    const double factor = scale * (run[5].given() ? run[5].at(c) : 1);
    for (int64_t i = 0; i < of.count() && run[0].given(); ++i) {
      const int64_t at = of.number(c, i);
      double slope = run[3].at(at);
      if (train) slope -= sum / count + (run[4].at(at) - mean) * scale * along / count;
      run[0].at(at) = static_cast<float>(factor * slope);
    }
  }
}

}  // namespace

std::vector<Operation> norms() {
  return {{"softmax", run_softmax},
          {"softmax_backward", run_softmax_gradient},
          {"layer_norm", run_layer_norm},
          {"layer_norm_backward", run_layer_gradients},
          {"batch_norm_train", run_batch_norm},
          {"batch_norm_inference", run_batch_inference},
          {"batch_norm_backward", run_batch_gradients}};
}

}  // namespace chip
