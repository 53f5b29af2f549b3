// drivers/host/onednn/convolution.cpp: plans of convolutions and their gradients.
#include "convolution.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "half.h"
#include "matmul.h"
#include "tensor.h"

namespace graft::host {
namespace {

using dnnl::memory;
using Slot = LibraryPlan::Slot;

// What the caller has in float16 and the plan has in float32.
struct Halves {
  bool tensors[3] = {}, epilogues[GRAFT_MAX_EPILOGUES] = {};
};

// A convolution seen as a plain one: source, weights and destination, and what is computed.
struct Problem {
  const graft_convolution& given;
  uint32_t kind;                 // graft_convolution_kind of the plain convolution
  uint32_t source, destination;  // index of the caller's tensor; the weights are 1
  graft_tensor tensors[3];       // as given, by the caller's index
  memory::dims stride, dilation, left, right;
  Halves halves = {};
};

// The transposed convolution's forward pass is the plain one's gradient, and the other way round.
uint32_t plain_kind(const graft_convolution& c) {
  if (c.transposed == 0 || c.kind == GRAFT_CONVOLUTION_BACKWARD_WEIGHT) return c.kind;
  return c.kind == GRAFT_CONVOLUTION_FORWARD ? GRAFT_CONVOLUTION_BACKWARD_INPUT
                                             : GRAFT_CONVOLUTION_FORWARD;
}

Problem make_problem(const graft_convolution& c) {
  Problem p = {c,
               plain_kind(c),
               c.transposed ? 2u : 0u,
               c.transposed ? 0u : 2u,
               {c.input, c.weight, c.output},
               {},
               {},
               {},
               {}};
  uint32_t rank = c.input.rank;
  if (rank < 3 || rank > 5 || c.weight.rank != rank || c.output.rank != rank || c.groups < 1 ||
      c.epilogue_count > GRAFT_MAX_EPILOGUES || c.kind > GRAFT_CONVOLUTION_BACKWARD_WEIGHT) {
    throw Unsupported{"ranks other than 3, 4 and 5, or a broken descriptor"};
  }
  check_bytes(c.input, c.weight);
  const graft_tensor& source = p.tensors[p.source];
  const graft_tensor& destination = p.tensors[p.destination];
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    // What the right edge needs follows from the sizes; it may cut off a part of the source.
    int64_t reach = (destination.sizes[i + 2] - 1) * c.stride[i] +
                    (c.weight.sizes[i + 2] - 1) * c.dilation[i] + 1;
    p.stride.push_back(c.stride[i]);
    p.dilation.push_back(c.dilation[i] - 1);
    p.left.push_back(c.padding[i]);
    p.right.push_back(reach - source.sizes[i + 2] - c.padding[i]);
  }
  return p;
}

// The weights with the groups as a dimension of their own: [g, out / g, in / g, spatial...].
memory::desc grouped_weights(const Problem& p, bool any) {
  const graft_tensor& w = p.tensors[1];
  memory::dims dims = sizes(w), steps = strides(w);
  int64_t groups = p.given.groups;
  if (groups > 1) {
    if (dims[0] % groups != 0) throw Unsupported{"channels that the groups do not divide"};
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    steps.insert(steps.begin(), steps[0] * dims[1]);
  }
  if (any) return memory::desc(dims, data_type(w.dtype), memory::format_tag::any);
  return memory::desc(dims, data_type(w.dtype), steps);
}

bool channels_last(const graft_tensor& t) { return t.strides[1] == 1 && t.sizes[1] > 1; }

// Channels-last activations run as they are; for others oneDNN chooses.
memory::desc activation(const graft_tensor& t) {
  if (channels_last(t)) return laid_out(t);
  return memory::desc(sizes(t), data_type(t.dtype), memory::format_tag::any);
}

// The float16 numbers that lie where those of the description would.
memory::desc halved(const memory::desc& desc) {
  return memory::desc(desc.get_dims(), memory::data_type::f16, desc.get_strides());
}

// A float32 copy of float16 numbers.
Slot widened(LibraryPlan& plan, Slot stored, const memory::desc& wide) {
  Slot copied = plan.scratch(wide);
  plan.convert(stored, copied);
  return copied;
}

// The caller's tensor as the problem describes it.
Slot given_tensor(LibraryPlan& plan, const Problem& p, uint32_t index, const memory::desc& given) {
  if (!p.halves.tensors[index]) return plan.tensor(index, given);
  return widened(plan, plan.tensor(index, halved(given)), given);
}

// The same for the operand of an epilogue.
Slot given_operand(LibraryPlan& plan, const Problem& p, uint32_t index, const memory::desc& given) {
  if (!p.halves.epilogues[index]) return plan.operand(index, given);
  return widened(plan, plan.operand(index, halved(given)), given);
}

// The slot that a primitive reads: the caller's tensor, or a reordered copy of it.
Slot read(LibraryPlan& plan, const Problem& p, uint32_t index, const memory::desc& given,
          const memory::desc& wanted) {
  Slot slot = given_tensor(plan, p, index, given);
  if (given == wanted) return slot;
  Slot copied = plan.scratch(wanted);
  plan.reorder(slot, copied);
  return copied;
}

// The slot that a primitive writes; finish() brings it to the caller's tensor.
Slot written(LibraryPlan& plan, const Problem& p, uint32_t index, const memory::desc& given,
             const memory::desc& wanted) {
  const bool direct = given == wanted && !p.halves.tensors[index];
  return direct ? plan.tensor(index, given) : plan.scratch(wanted);
}

void finish(LibraryPlan& plan, const Problem& p, uint32_t index, const memory::desc& given,
            Slot result) {
  if (!p.halves.tensors[index]) {
    if (plan.desc(result) != given) plan.reorder(result, plan.tensor(index, given));
    return;
  }
  Slot ordered = result;
  if (plan.desc(result) != given) {
    ordered = plan.scratch(given);
    plan.reorder(result, ordered);
  }
  plan.convert(ordered, plan.tensor(index, halved(given)));
}

dnnl::convolution_forward::primitive_desc describe_forward(const Problem& p,
                                                           const Epilogues& epilogues) {
  auto kind = dnnl::prop_kind::forward_training;
  auto algorithm = dnnl::algorithm::convolution_direct;
  memory::desc source = activation(p.tensors[p.source]);
  memory::desc destination = activation(p.tensors[p.destination]), none;
  return {engine(),
          kind,
          algorithm,
          source,
          grouped_weights(p, true),
          epilogues.bias.value_or(none),
          destination,
          p.stride,
          p.dilation,
          p.left,
          p.right,
          epilogues.attributes};
}

struct Forward {
  Epilogues epilogues;
  dnnl::convolution_forward::primitive_desc description;
};

// oneDNN's reference code is a hundred times slower than a kernel of its own for the epilogue.
bool is_slow(const Forward& forward) {
  return forward.epilogues.attributes.get_post_ops().len() > 0 &&
         std::string_view(forward.description.impl_info_str()).starts_with("ref");
}

Forward choose_forward(const Problem& p) {
  const graft_convolution& c = p.given;
  const graft_tensor& result = p.tensors[p.destination];
  for (bool takes_zeros : {true, false}) {
    const ResultShape shape = {1, 1, channels_last(result), takes_zeros};
    Epilogues epilogues = translate({c.epilogues, c.epilogue_count}, result, shape, c.math_mode);
    try {
      Forward forward = {epilogues, describe_forward(p, epilogues)};
      if (!is_slow(forward)) return forward;
    } catch (const dnnl::error&) {
      if (!takes_zeros) throw;
    }
  }
  throw Unsupported{"these epilogues with a fast implementation"};
}

void plan_forward(LibraryPlan& plan, const Problem& p) {
  const graft_convolution& c = p.given;
  const graft_tensor& result = p.tensors[p.destination];
  const auto [epilogues, description] = choose_forward(p);
  memory::desc given = laid_out(result);
  Slot source = read(plan, p, p.source, laid_out(p.tensors[p.source]), description.src_desc());
  Slot weights = read(plan, p, 1, grouped_weights(p, false), description.weights_desc());
  Slot to = written(plan, p, p.destination, given, description.dst_desc());
  std::vector<std::pair<int, Slot>> arguments = {
      {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, to}};
  if (epilogues.bias)
    arguments.emplace_back(DNNL_ARG_BIAS, given_operand(plan, p, 0, description.bias_desc()));
  for (const auto& binary : epilogues.binaries) {
    arguments.emplace_back(binary.argument, given_operand(plan, p, binary.operand, binary.desc));
  }
  for (int argument : epilogues.zeros) {
    arguments.emplace_back(argument, plan.zero(int(result.rank)));
  }
  if (epilogues.sum) {
    graft_tensor added = result;
    added.dtype = c.epilogues[*epilogues.sum].dtype;
    plan.reorder(given_operand(plan, p, *epilogues.sum, laid_out(added)), to);
  }
  arguments.emplace_back(DNNL_ARG_SCRATCHPAD, plan.scratch(description.scratchpad_desc()));
  plan.add(dnnl::convolution_forward(description), std::move(arguments));
  finish(plan, p, p.destination, given, to);
}

// oneDNN's code for tiles (AMX) grows with the stride, beyond its buffer: it crashes from 40 on.
constexpr int64_t kMostTiledStride = 16;

void check_stride(const Problem& p) {
  const uint32_t dtype = p.tensors[p.destination].dtype;
  const bool half = dtype == GRAFT_BFLOAT16 || dtype == GRAFT_FLOAT16;
  if (half && std::ranges::any_of(p.stride, [](int64_t by) { return by > kMostTiledStride; })) {
    throw Unsupported{"gradients of half types with strides above 16"};
  }
}

void plan_backward_input(LibraryPlan& plan, const Problem& p, const Epilogues& plain) {
  check_stride(p);
  Epilogues none;
  auto hint = describe_forward(p, none);
  auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::convolution_backward_data::primitive_desc description(
      engine(), algorithm, activation(p.tensors[p.source]), grouped_weights(p, true),
      activation(p.tensors[p.destination]), p.stride, p.dilation, p.left, p.right, hint,
      plain.attributes);
  memory::desc given = laid_out(p.tensors[p.source]);
  Slot gradient =
      read(plan, p, p.destination, laid_out(p.tensors[p.destination]), description.diff_dst_desc());
  Slot weights = read(plan, p, 1, grouped_weights(p, false), description.weights_desc());
  Slot to = written(plan, p, p.source, given, description.diff_src_desc());
  plan.add(dnnl::convolution_backward_data(description),
           {{DNNL_ARG_DIFF_DST, gradient},
            {DNNL_ARG_WEIGHTS, weights},
            {DNNL_ARG_DIFF_SRC, to},
            {DNNL_ARG_SCRATCHPAD, plan.scratch(description.scratchpad_desc())}});
  finish(plan, p, p.source, given, to);
}

void plan_backward_weight(LibraryPlan& plan, const Problem& p, const Epilogues& plain) {
  Epilogues none;
  auto hint = describe_forward(p, none);
  auto algorithm = dnnl::algorithm::convolution_direct;
  dnnl::convolution_backward_weights::primitive_desc description(
      engine(), algorithm, activation(p.tensors[p.source]), grouped_weights(p, true),
      activation(p.tensors[p.destination]), p.stride, p.dilation, p.left, p.right, hint,
      plain.attributes);
  memory::desc given = grouped_weights(p, false);
  Slot source = read(plan, p, p.source, laid_out(p.tensors[p.source]), description.src_desc());
  Slot gradient =
      read(plan, p, p.destination, laid_out(p.tensors[p.destination]), description.diff_dst_desc());
  Slot to = written(plan, p, 1, given, description.diff_weights_desc());
  plan.add(dnnl::convolution_backward_weights(description),
           {{DNNL_ARG_SRC, source},
            {DNNL_ARG_DIFF_DST, gradient},
            {DNNL_ARG_DIFF_WEIGHTS, to},
            {DNNL_ARG_SCRATCHPAD, plan.scratch(description.scratchpad_desc())}});
  finish(plan, p, 1, given, to);
}

// Whether every element between the first and the last one belongs to the tensor.
bool without_gaps(const graft_tensor& tensor) {
  int64_t count = 1, reach = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    count *= tensor.sizes[i];
    reach += (tensor.sizes[i] - 1) * tensor.strides[i];
  }
  return count == reach;
}

// Says float32 instead of float16; returns whether it was float16.
bool become_float(uint32_t& dtype) {
  if (dtype != GRAFT_FLOAT16) return false;
  dtype = GRAFT_FLOAT32;
  return true;
}

// Turns a convolution of float16 numbers into one of float32 where that is faster and conversions
// as they lie write nothing else.
Halves become_float(graft_convolution& c) {
  graft_tensor* tensors[] = {&c.input, &c.weight, &c.output};
  Halves halves;
  for (const graft_tensor* tensor : tensors) {
    // An operand to add is laid out as the output.
    const bool converted = tensor->dtype == GRAFT_FLOAT16 || tensor == &c.output;
    if (converted && !without_gaps(*tensor)) return halves;
  }
  if (!computes_half_as_float()) return halves;
  for (int i = 0; i < 3; ++i) halves.tensors[i] = become_float(tensors[i]->dtype);
  for (uint32_t i = 0; i < c.epilogue_count; ++i) {
    halves.epilogues[i] = become_float(c.epilogues[i].dtype);
  }
  return halves;
}

// With few pixels a product, which reads the weights as they lie, is faster by what copying them
// takes (2 to 4 % of ResNet-50 on one image); with many, and in halves, the two are alike.
constexpr int64_t kMostPixels = 1024;

// The image as a matrix of pixels by channels; none where pixels do not lie at one distance.
std::optional<graft_tensor> pixels(const graft_tensor& image) {
  graft_tensor matrix = image;
  int64_t count = 1, pitch = 0, span = 0;
  for (uint32_t i = image.rank; i-- > 0;) {
    if (i == 1 || image.sizes[i] == 1) continue;
    if (pitch != 0 && image.strides[i] != span) return std::nullopt;
    if (pitch == 0) pitch = image.strides[i];
    span = image.strides[i] * image.sizes[i];
    count *= image.sizes[i];
  }
  if (pitch == 0) pitch = image.sizes[1];
  if (!channels_last(image) || pitch < image.sizes[1]) return std::nullopt;
  matrix.rank = 2;
  matrix.sizes[0] = count, matrix.sizes[1] = image.sizes[1];
  matrix.strides[0] = pitch, matrix.strides[1] = 1;
  return matrix;
}

// A convolution of single pixels as the product of these with the weights, which are read as they
// lie; none where it is something else, or has many.
std::optional<graft_matmul> as_product(const graft_convolution& c) {
  const uint32_t rank = c.input.rank;
  bool single = c.kind == GRAFT_CONVOLUTION_FORWARD && c.transposed == 0 && c.groups == 1 &&
                c.input.dtype == GRAFT_FLOAT32;
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    single = single && c.weight.sizes[i + 2] == 1 && c.stride[i] == 1 && c.padding[i] == 0 &&
             c.input.sizes[i + 2] == c.output.sizes[i + 2];
  }
  const auto from = pixels(c.input), to = pixels(c.output);
  if (!single || !from || !to || to->sizes[0] > kMostPixels) return std::nullopt;
  graft_matmul product = {};
  product.struct_size = sizeof product;
  product.math_mode = c.math_mode;
  product.a = *from, product.b = c.weight, product.c = *to;
  product.b.rank = 2;
  product.b.sizes[0] = c.weight.sizes[1], product.b.sizes[1] = c.weight.sizes[0];
  product.b.strides[0] = c.weight.strides[1], product.b.strides[1] = c.weight.strides[0];
  product.epilogue_count = c.epilogue_count;
  std::copy_n(c.epilogues, c.epilogue_count, product.epilogues);
  return product;
}

}  // namespace

std::unique_ptr<LibraryPlan> plan_convolution(const graft_convolution& given) {
  make_problem(given);  // refuses what is broken
  if (const auto product = as_product(given)) return plan_product(*product, true);
  graft_convolution c = given;
  const Halves halves = become_float(c);
  Problem p = make_problem(c);
  p.halves = halves;
  auto plan = std::make_unique<LibraryPlan>();
  if (p.kind == GRAFT_CONVOLUTION_FORWARD) {
    plan_forward(*plan, p);
    return plan;
  }
  if (c.epilogue_count != 0) throw Unsupported{"epilogues of a gradient"};
  Epilogues plain = translate({}, p.tensors[p.source], {1}, c.math_mode);
  if (p.kind == GRAFT_CONVOLUTION_BACKWARD_INPUT) {
    plan_backward_input(*plan, p, plain);
  } else {
    plan_backward_weight(*plan, p, plain);
  }
  return plan;
}

}  // namespace graft::host
