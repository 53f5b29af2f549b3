// tests/drivers/check/library_cases.cpp: the extensions graft.blas and graft.dnn against plain
// loops.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::check::Session;

namespace {

graft_tensor float_tensor(std::vector<int64_t> sizes) {
  graft_tensor tensor{};
  tensor.dtype = GRAFT_FLOAT32;
  tensor.rank = static_cast<uint32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    tensor.sizes[i] = sizes[i];
    tensor.strides[i] = stride;
    stride *= sizes[i];
  }
  return tensor;
}

std::vector<float> numbers(size_t count, int seed) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 17) - 8.0f;
  }
  return all;
}

graft_address upload(Session& session, graft_stream stream, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const graft_address address = session.allocate(bytes.size());
  session.upload(stream, address, bytes);
  return address;
}

void require_floats(Session& session, graft_stream stream, graft_address address,
                    const std::vector<float>& wanted, const std::string& what) {
  const auto bytes = session.download(stream, address, wanted.size() * sizeof(float));
  for (size_t i = 0; i < wanted.size(); ++i) {
    float got = 0;
    std::memcpy(&got, bytes.data() + i * sizeof(float), sizeof got);
    const bool nan = std::isnan(got) && std::isnan(wanted[i]);
    session.require(nan || std::abs(got - wanted[i]) <= 1e-3f * (1 + std::abs(wanted[i])),
                    what + ": element " + std::to_string(i) + " is " + std::to_string(got) +
                        " instead of " + std::to_string(wanted[i]));
  }
}

// Executes a plan of either table once, with the workspace that it needs.
template <class Table>
void execute(Session& session, const Table& table, graft_stream stream, graft_plan plan,
             const graft_plan_needs& needs, std::vector<graft_address> tensors,
             std::vector<graft_address> operands) {
  graft_execution execution{};
  execution.struct_size = sizeof execution;
  std::copy(tensors.begin(), tensors.end(), execution.tensors);
  std::copy(operands.begin(), operands.end(), execution.operands);
  if (needs.workspace_bytes > 0) execution.workspace = session.allocate(needs.workspace_bytes);
  session.expect(table.plan_execute(stream, plan, &execution), GRAFT_OK, "plan_execute");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.expect(table.plan_destroy(plan), GRAFT_OK, "plan_destroy");
}

graft_plan_needs empty_needs() {
  graft_plan_needs needs{};
  needs.struct_size = sizeof needs;
  return needs;
}

// x after one step, as include/graft/extensions.h says.
double after(const graft_epilogue& step, double x, double operand) {
  switch (step.kind) {
    case GRAFT_EPILOGUE_SCALE:
      return x * step.value;
    case GRAFT_EPILOGUE_BIAS:
      return x + operand;
    case GRAFT_EPILOGUE_RELU:
      return x < 0 ? 0 : x;
    case GRAFT_EPILOGUE_GELU:
      return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
    case GRAFT_EPILOGUE_GELU_TANH:
      return x * 0.5 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case GRAFT_EPILOGUE_SILU:
      return x / (1 + std::exp(-x));
    case GRAFT_EPILOGUE_MINIMUM:
      return x > step.value ? step.value : x;
    case GRAFT_EPILOGUE_CHANNEL_SCALE:
      return x * operand;
    default:
      throw std::logic_error("a step that the check does not know");
  }
}

bool takes_vector(const graft_epilogue& step) {
  return step.kind == GRAFT_EPILOGUE_BIAS || step.kind == GRAFT_EPILOGUE_CHANNEL_SCALE;
}

// a: one element is nan, so that its whole row is.
std::vector<float> plain_matmul(const graft_matmul& matmul, const std::vector<float>& a,
                                const std::vector<float>& b,
                                const std::vector<std::vector<float>>& vectors) {
  const int64_t m = matmul.c.sizes[0], n = matmul.c.sizes[1], k = matmul.a.sizes[1];
  std::vector<float> wanted;
  for (int64_t i = 0; i < m * n; ++i) {
    const int64_t row = i / n, column = i % n;
    double sum = 0;
    for (int64_t x = 0; x < k; ++x) {
      sum += a[static_cast<size_t>(row * k + x)] *
             b[static_cast<size_t>(x * matmul.b.strides[0] + column * matmul.b.strides[1])];
    }
    for (size_t step = 0; step < vectors.size(); ++step) {
      const std::vector<float>& vector = vectors[step];
      const float operand = vector.empty() ? 0 : vector[static_cast<size_t>(column)];
      sum = after(matmul.epilogues[step], sum, operand);
    }
    wanted.push_back(static_cast<float>(sum));
  }
  return wanted;
}

struct MatmulCase {
  int64_t m, n, k;
  bool transposed_b;
};

// optional: a library that does not know the steps may refuse the plan.
void check_matmul(Session& session, const MatmulCase& sizes,
                  const std::vector<graft_epilogue>& steps, bool optional) {
  const auto& blas = session.extension<graft_blas_table>();
  const auto [m, n, k, transposed_b] = sizes;
  graft_matmul matmul{};
  matmul.struct_size = sizeof matmul;
  matmul.a = float_tensor({m, k});
  matmul.b = float_tensor({k, n});
  if (transposed_b) {
    matmul.b.strides[0] = 1;
    matmul.b.strides[1] = k;
  }
  matmul.c = float_tensor({m, n});
  matmul.epilogue_count = static_cast<uint32_t>(steps.size());
  std::copy(steps.begin(), steps.end(), matmul.epilogues);
  graft_plan_needs needs = empty_needs();
  graft_plan plan = nullptr;
  const graft_status status = blas.matmul_plan(session.device, &matmul, &needs, &plan);
  if (optional && status == GRAFT_UNSUPPORTED) return;
  session.expect(status, GRAFT_OK, "matmul_plan");
  auto a = numbers(static_cast<size_t>(m * k), 1);
  a[0] = std::numeric_limits<float>::quiet_NaN();
  const auto b = numbers(static_cast<size_t>(k * n), 2);
  std::vector<std::vector<float>> vectors(steps.size());
  graft_stream stream = session.stream();
  std::vector<graft_address> operands(steps.size(), 0);
  std::string names;
  for (size_t i = 0; i < steps.size(); ++i) {
    names += (i == 0 ? " " : ", ") + std::to_string(steps[i].kind);
    if (!takes_vector(steps[i])) continue;
    vectors[i] = numbers(static_cast<size_t>(n), 3 + static_cast<int>(i));
    operands[i] = upload(session, stream, vectors[i]);
  }
  const auto wanted = plain_matmul(matmul, a, b, vectors);
  const graft_address c = upload(session, stream, std::vector<float>(wanted.size(), -1.0f));
  execute(session, blas, stream, plan, needs,
          {upload(session, stream, a), upload(session, stream, b), c}, operands);
  require_floats(session, stream, c, wanted, "matmul with the epilogues" + names);
}

}  // namespace

DRIVER_CASE(plain, "graft.blas: matmul", "extension", kOpen) {
  for (const MatmulCase& sizes :
       {MatmulCase{5, 7, 9, false}, MatmulCase{64, 33, 128, false}, MatmulCase{33, 64, 16, true}}) {
    check_matmul(session, sizes, {}, false);
  }
}

DRIVER_CASE(matmul, "graft.blas: matmul with bias and relu", "extension", kOpen) {
  const std::vector<graft_epilogue> steps = {{GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0},
                                             {GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0}};
  for (const MatmulCase& sizes :
       {MatmulCase{5, 7, 9, false}, MatmulCase{64, 33, 128, false}, MatmulCase{33, 64, 16, true}}) {
    check_matmul(session, sizes, steps, true);
  }
}

DRIVER_CASE(epilogues, "graft.blas: each epilogue is as PyTorch computes it", "extension", kOpen) {
  const graft_epilogue scale{GRAFT_EPILOGUE_SCALE, GRAFT_FLOAT32, 0.01};
  const graft_epilogue bias{GRAFT_EPILOGUE_BIAS, GRAFT_FLOAT32, 0};
  const graft_epilogue channels{GRAFT_EPILOGUE_CHANNEL_SCALE, GRAFT_FLOAT32, 0};
  const graft_epilogue relu{GRAFT_EPILOGUE_RELU, GRAFT_FLOAT32, 0};
  const graft_epilogue minimum{GRAFT_EPILOGUE_MINIMUM, GRAFT_FLOAT32, 6};
  std::vector<std::vector<graft_epilogue>> lists = {
      {channels}, {minimum}, {relu, minimum}, {minimum, relu}, {channels, bias, relu}};
  for (uint32_t kind : {GRAFT_EPILOGUE_GELU, GRAFT_EPILOGUE_GELU_TANH, GRAFT_EPILOGUE_SILU}) {
    lists.push_back({scale, {kind, GRAFT_FLOAT32, 0}});
  }
  for (const auto& steps : lists) check_matmul(session, {5, 7, 9, false}, steps, true);
}

DRIVER_CASE(ended, "graft.blas: a plan ends and its executions go on", "extension", kOpen) {
  const auto& blas = session.extension<graft_blas_table>();
  constexpr int64_t kSize = 256;
  graft_matmul matmul{};
  matmul.struct_size = sizeof matmul;
  matmul.a = matmul.b = matmul.c = float_tensor({kSize, kSize});
  const auto a = numbers(kSize * kSize, 1), b = numbers(kSize * kSize, 2);
  const auto wanted = plain_matmul(matmul, a, b, {});
  graft_stream stream = session.stream();
  graft_execution execution{};
  execution.struct_size = sizeof execution;
  execution.tensors[0] = upload(session, stream, a);
  execution.tensors[1] = upload(session, stream, b);
  std::vector<graft_address> results;
  for (int i = 0; i < 8; ++i) {
    results.push_back(upload(session, stream, std::vector<float>(wanted.size(), -1.0f)));
  }
  graft_plan_needs needs = empty_needs();
  graft_plan plan = nullptr;
  session.expect(blas.matmul_plan(session.device, &matmul, &needs, &plan), GRAFT_OK, "matmul_plan");
  if (needs.workspace_bytes > 0) execution.workspace = session.allocate(needs.workspace_bytes);
  for (const graft_address result : results) {
    execution.tensors[2] = result;
    session.expect(blas.plan_execute(stream, plan, &execution), GRAFT_OK, "plan_execute");
  }
  session.expect(blas.plan_destroy(plan), GRAFT_OK, "plan_destroy");
  for (const graft_address result : results) {
    require_floats(session, stream, result, wanted, "an execution of a plan that ended");
  }
}

DRIVER_CASE(convolution, "graft.dnn: convolution with stride and padding", "extension", kOpen) {
  const auto& dnn = session.extension<graft_dnn_table>();
  constexpr int64_t kChannels = 3, kOut = 4, kSize = 8, kFilter = 3, kResult = 4;
  graft_convolution convolution{};
  convolution.struct_size = sizeof convolution;
  convolution.kind = GRAFT_CONVOLUTION_FORWARD;
  convolution.input = float_tensor({1, kChannels, kSize, kSize});
  convolution.weight = float_tensor({kOut, kChannels, kFilter, kFilter});
  convolution.output = float_tensor({1, kOut, kResult, kResult});
  std::fill_n(convolution.stride, 3, 2);
  std::fill_n(convolution.padding, 3, 1);
  std::fill_n(convolution.dilation, 3, 1);
  convolution.groups = 1;
  graft_plan_needs needs = empty_needs();
  graft_plan plan = nullptr;
  session.expect(dnn.convolution_plan(session.device, &convolution, &needs, &plan), GRAFT_OK,
                 "convolution_plan");
  const auto input = numbers(kChannels * kSize * kSize, 4);
  const auto weight = numbers(kOut * kChannels * kFilter * kFilter, 5);
  std::vector<float> wanted(kOut * kResult * kResult);
  for (size_t index = 0; index < wanted.size(); ++index) {
    const auto out = static_cast<int64_t>(index) / (kResult * kResult);
    const auto y = static_cast<int64_t>(index) / kResult % kResult * 2 - 1;
    const auto x = static_cast<int64_t>(index) % kResult * 2 - 1;
    for (int64_t tap = 0; tap < kChannels * kFilter * kFilter; ++tap) {
      const int64_t channel = tap / (kFilter * kFilter);
      const int64_t row = y + tap / kFilter % kFilter;
      const int64_t column = x + tap % kFilter;
      if (row < 0 || row >= kSize || column < 0 || column >= kSize) continue;
      wanted[index] += input[static_cast<size_t>((channel * kSize + row) * kSize + column)] *
                       weight[static_cast<size_t>(out * kChannels * kFilter * kFilter + tap)];
    }
  }
  graft_stream stream = session.stream();
  const graft_address output = upload(session, stream, std::vector<float>(wanted.size(), -1.0f));
  execute(session, dnn, stream, plan, needs,
          {upload(session, stream, input), upload(session, stream, weight), output}, {});
  require_floats(session, stream, output, wanted, "convolution");
}

DRIVER_CASE(impossible_matmul, "graft.blas: sizes that do not fit are refused", "extension",
            kOpen) {
  const auto& blas = session.extension<graft_blas_table>();
  graft_matmul matmul{};
  matmul.struct_size = sizeof matmul;
  matmul.a = float_tensor({4, 5});
  matmul.b = float_tensor({6, 7});
  matmul.c = float_tensor({4, 7});
  graft_plan_needs needs = empty_needs();
  graft_plan plan = nullptr;
  session.require(blas.matmul_plan(session.device, &matmul, &needs, &plan) != GRAFT_OK,
                  "a matmul of [4, 5] by [6, 7] got a plan");
}
