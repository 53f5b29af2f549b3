// src/compiler/run/library_step.cpp: runs a product or convolution with its epilogue.
#include "compiler/run/library_step.h"

#include "kernels/launch/library.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/matmul.h"
#include "kernels/tensor/axes.h"
#include "runtime/driver/op_tag.h"

namespace graft::compiler {

namespace {

template <class Descriptor>
std::shared_ptr<const CachedPlan> plan_with_epilogue(OpenDevice& device, Descriptor descriptor,
                                                     const LibraryCall& call,
                                                     std::span<const TensorView> views) {
  for (const LibraryEpilogue& step : call.epilogue) {
    const ValueId typed = step.operand == kNone ? call.product : step.operand;
    append_epilogue(&descriptor, step.kind, views[typed].dtype, step.value);
  }
  return library_plan(device, descriptor);
}

}  // namespace

LibraryStep::LibraryStep(const Graph& graph, const Effects& effects,
                         const std::vector<NodeId>& nodes, LibraryCall call)
    : call_(std::move(call)),
      tag_(op_tag(graph.nodes[nodes[0]].op->qualified())),
      outside_(graph, nodes[0]) {
  if (nodes.size() > 1) rest_ = group_kernel(graph, effects, {nodes.begin() + 1, nodes.end()});
}

void LibraryStep::prepare(const Graph& graph, std::span<const TensorView> views, Stream& stream,
                          const std::function<int64_t(const Size&)>& at) {
  plan_ = nullptr;
  const bool works = views[call_.left].count() > 0 && views[call_.right].count() > 0 &&
                     views[call_.result].count() > 0 && views[call_.product].dtype != GRAFT_FLOAT64;
  if (works) plan_ = plan(views, stream.device());
  if (plan_ != nullptr) return;
  outside_.prepare(at);
  if (!rest_) return;
  if (!launch_) {
    KernelLaunch made(graph, *rest_, stream.device());
    made.try_out(graph, stream);
    launch_.emplace(std::move(made));
  }
  launch_->arrange(at);
}

std::shared_ptr<const CachedPlan> LibraryStep::plan(std::span<const TensorView> views,
                                                    OpenDevice& device) const {
  const TensorView &a = views[call_.left], &b = views[call_.right], &c = views[call_.result];
  if (call_.convolves) {
    if (may_saturate(views[call_.product].dtype)) return nullptr;
    return plan_with_epilogue(
        device, describe_convolution(GRAFT_CONVOLUTION_FORWARD, {a, b, c}, call_.parameters), call_,
        views);
  }
  if (c.rank > 3 || !plain_matrix(a) || !plain_matrix(b) || !c.contiguous()) return nullptr;
  return plan_with_epilogue(device, describe_matmul(c, a, b), call_, views);
}

void LibraryStep::product(Stream& stream, const TensorView& output,
                          std::span<const TensorView> views) const {
  MatmulEpilogue epilogue;
  TensorView addend;
  for (size_t i = 0; i < call_.own; ++i) {
    const LibraryEpilogue& step = call_.epilogue[i];
    if (step.kind == GRAFT_EPILOGUE_SCALE) {
      epilogue.alpha = step.value;
      continue;
    }
    const TensorView& given = views[step.operand];
    addend = given;
    addend.rank = call_.convolves ? given.rank : output.rank;
    for (int d = 0; !call_.convolves && d < output.rank; ++d) {
      const int from = d - output.rank + given.rank;
      addend.sizes[d] = output.sizes[d];
      addend.strides[d] = from < 0 || given.sizes[from] == 1 ? 0 : given.strides[from];
    }
    epilogue.beta = step.value;
    epilogue.addend = &addend;
  }
  if (call_.convolves) {
    convolution(stream, output, views[call_.left], views[call_.right], epilogue.addend,
                call_.parameters);
  } else {
    matmul(stream, output, views[call_.left], views[call_.right], epilogue);
  }
}

void LibraryStep::run(ExecutionHost& host, Stream& stream, std::span<TensorView> views,
                      std::span<const Scalar> numbers) {
  const TensorView& result = views[call_.result];
  if (result.count() == 0) return;
  const OpScope named(tag_);
  if (plan_ != nullptr) {
    graft_execution execution{};
    execution.tensors[0] = views[call_.left].address;
    execution.tensors[1] = views[call_.right].address;
    execution.tensors[2] = result.address;
    for (size_t i = 0; i < call_.epilogue.size(); ++i) {
      const ValueId operand = call_.epilogue[i].operand;
      if (operand != kNone) execution.operands[i] = views[operand].address;
    }
    execute_plan(stream, plan_, execution);
    return;
  }
  TensorView& inside = views[call_.product];
  const bool alike = inside.dtype == result.dtype;
  const Workspace apart(stream, alike ? 0 : extent_bytes(inside));
  if (call_.product != call_.result) inside.address = alike ? result.address : apart.address();
  try {
    if (own_) product(stream, inside, views);
  } catch (const Error& error) {
    if (!error.lacks_kernel()) throw;
    own_ = false;
    host.lacks_node(error);
  }
  if (!own_) outside_.run(host, stream, views, numbers);
  if (launch_) launch_->launch(stream, views, numbers);
}

}  // namespace graft::compiler
