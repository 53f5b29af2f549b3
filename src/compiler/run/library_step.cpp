// src/compiler/run/library_step.cpp: runs a product or convolution with its epilogue.
#include "compiler/run/library_step.h"

#include "kernels/launch/library.h"
#include "kernels/launch/workspace.h"
#include "kernels/matmul/matmul.h"
#include "kernels/tensor/axes.h"
#include "runtime/stream/device.h"

namespace graft::compiler {

namespace {

// Libraries want one stride of a matrix to be 1 and the other to span its lines.
bool plain_matrix(const TensorView& view) {
  const int row = view.rank - 2, column = view.rank - 1;
  auto spans = [&](int lines, int line) {
    return (view.strides[line] == 1 || view.sizes[line] == 1) &&
           (view.strides[lines] >= view.sizes[line] || view.sizes[lines] == 1);
  };
  return spans(row, column) || spans(column, row);
}

template <class Descriptor>
void append(Descriptor& to, const LibraryCall& call, std::span<const TensorView> views) {
  for (const LibraryEpilogue& step : call.epilogue) {
    const ValueId typed = step.operand == kNone ? call.product : step.operand;
    to.epilogues[to.epilogue_count++] = {static_cast<uint32_t>(step.kind),
                                         static_cast<uint32_t>(views[typed].dtype), step.value};
  }
}

}  // namespace

LibraryStep::LibraryStep(const Graph& graph, const Effects& effects,
                         const std::vector<NodeId>& nodes, LibraryCall call)
    : call_(std::move(call)), outside_(graph, nodes[0]) {
  if (nodes.size() > 1) rest_ = group_kernel(graph, effects, {nodes.begin() + 1, nodes.end()});
}

void LibraryStep::prepare(const Graph& graph, std::span<const TensorView> views, Stream& stream,
                          const std::function<int64_t(const Size&)>& at) {
  plan_ = nullptr;
  const bool works = views[call_.left].count() > 0 && views[call_.right].count() > 0 &&
                     views[call_.result].count() > 0 && views[call_.product].dtype != GRAFT_FLOAT64;
  if (works && call_.convolves) plan_convolution(views, stream.device());
  if (works && !call_.convolves) plan_product(views, stream.device());
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

void LibraryStep::plan_product(std::span<const TensorView> views, Device& device) {
  const TensorView &a = views[call_.left], &b = views[call_.right], &c = views[call_.result];
  BlasLibrary& library = blas_library(device);
  if (library.table == nullptr || c.rank > 3) return;
  if (!plain_matrix(a) || !plain_matrix(b) || !c.contiguous()) return;
  graft_matmul matmul{};
  matmul.struct_size = sizeof(matmul);
  matmul.math_mode = GRAFT_MATH_STRICT;
  matmul.a = describe(a);
  matmul.b = describe(b);
  matmul.c = describe(c);
  append(matmul, call_, views);
  execute_ = library.table->plan_execute;
  plan_ = library.plans.get(plan_key(matmul), [&] {
    graft_plan_needs needs{sizeof(graft_plan_needs), 0, 0};
    graft_plan made = nullptr;
    const graft_status status =
        Driver::call(library.table->matmul_plan, device.handle(), &matmul, &needs, &made);
    return planned(device, status, needs, made, library.table->plan_destroy, "matmul_plan");
  });
  if (plan_->plan == nullptr) plan_ = nullptr;
}

void LibraryStep::plan_convolution(std::span<const TensorView> views, Device& device) {
  DnnLibrary& library = dnn_library(device);
  if (library.table == nullptr || may_saturate(views[call_.product].dtype)) return;
  graft_convolution call{};
  call.struct_size = sizeof(call);
  call.kind = GRAFT_CONVOLUTION_FORWARD;
  call.math_mode = GRAFT_MATH_STRICT;
  call.input = describe(views[call_.left]);
  call.weight = describe(views[call_.right]);
  call.output = describe(views[call_.result]);
  for (int i = 0; i < 3; ++i) {
    call.stride[i] = call_.parameters.stride[i];
    call.padding[i] = call_.parameters.padding[i];
    call.dilation[i] = call_.parameters.dilation[i];
  }
  call.groups = call_.parameters.groups;
  append(call, call_, views);
  execute_ = library.table->plan_execute;
  plan_ = library.plans.get(plan_key(call), [&] {
    graft_plan_needs needs{sizeof(graft_plan_needs), 0, 0};
    graft_plan made = nullptr;
    const graft_status status =
        Driver::call(library.table->convolution_plan, device.handle(), &call, &needs, &made);
    return planned(device, status, needs, made, library.table->plan_destroy, "convolution_plan");
  });
  if (plan_->plan == nullptr) plan_ = nullptr;
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
  if (plan_ != nullptr) {
    graft_execution execution{};
    execution.tensors[0] = views[call_.left].address;
    execution.tensors[1] = views[call_.right].address;
    execution.tensors[2] = result.address;
    for (size_t i = 0; i < call_.epilogue.size(); ++i) {
      const ValueId operand = call_.epilogue[i].operand;
      if (operand != kNone) execution.operands[i] = views[operand].address;
    }
    execute_plan(stream, plan_, execute_, execution);
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
  }
  if (!own_) outside_.run(host, stream, views, numbers);
  if (launch_) launch_->launch(stream, views, numbers);
}

}  // namespace graft::compiler
