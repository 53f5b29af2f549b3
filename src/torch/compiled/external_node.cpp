// src/torch/compiled/external_node.cpp: nodes of a compiled graph that PyTorch's dispatcher runs.
#include "torch/compiled/external_node.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/List.h>
#include <fmt/format.h>

#include "compiler/graph/graph.h"
#include "runtime/driver/error.h"
#include "torch/device/type.h"
#include "torch/dispatch/user_kernels.h"
#include "torch/tensor/memory.h"
#include "torch/tensor/view.h"
#include "torch/ve/call.h"
#include "torch/version/factories.h"

namespace graft::binding {
namespace {

using compiler::Argument;
using compiler::ExternalCall;
using compiler::Graph;
using compiler::Node;
using Kind = compiler::Argument::Kind;

c10::OperatorName operator_name(const std::string& op) {
  const size_t dot = op.find('.'), second = op.find('.', dot + 1);
  const std::string overload = second == std::string::npos ? "" : op.substr(second + 1);
  return {op.substr(0, dot) + "::" + op.substr(dot + 1, second - dot - 1),
          overload == "default" ? "" : overload};
}

c10::OperatorHandle find(const Graph& graph, const Node& node) {
  const std::string* const called = node.note("called");
  const std::string& name = called == nullptr ? node.op->name : *called;
  auto found = c10::Dispatcher::singleton().findSchema(operator_name(name));
  if (found.has_value()) return *found;
  throw Error(GRAFT_UNSUPPORTED,
              fmt::format("graph {}: PyTorch has no operator {}", graph.name, name));
}

bool on_device(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(kDispatchKey) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// The same arguments, and one out argument for each result.
bool is_out_form(const c10::FunctionSchema& plain, const c10::FunctionSchema& out) {
  const size_t count = plain.arguments().size(), results = plain.returns().size();
  if (out.arguments().size() != count + results) return false;
  for (size_t i = 0; i < count + results; ++i) {
    const c10::Argument& argument = out.arguments()[i];
    if (argument.is_out() != (i >= count)) return false;
    if (i < count && (argument.name() != plain.arguments()[i].name() ||
                      *argument.type() != *plain.arguments()[i].type())) {
      return false;
    }
  }
  return true;
}

std::optional<c10::OperatorHandle> out_form(const c10::OperatorHandle& op, const Node& node) {
  for (const c10::Argument& result : op.schema().returns()) {
    if (result.type()->kind() != c10::TypeKind::TensorType) return std::nullopt;
  }
  if (node.op->users) return std::nullopt;
  const bool undefined = std::count(node.results.begin(), node.results.end(), compiler::kNone) > 0;
  if (undefined || !node.writes.empty() || node.views != compiler::kNone) return std::nullopt;
  const c10::OperatorName& name = op.operator_name();
  for (const std::string& overload : {name.overload_name + "_out", std::string("out")}) {
    auto found = c10::Dispatcher::singleton().findSchema({name.name, overload});
    if (found.has_value() && is_out_form(op.schema(), found->schema()) &&
        found->hasKernelForDispatchKey(kDispatchKey) && !user_kernel(*found, false)) {
      return found;
    }
  }
  return std::nullopt;
}

c10::IValue of_word(const std::string& word) {
  using c10::Layout, c10::MemoryFormat;
  static const std::unordered_map<std::string, int64_t> numbers = {
      {"contiguous_format", static_cast<int64_t>(MemoryFormat::Contiguous)},
      {"preserve_format", static_cast<int64_t>(MemoryFormat::Preserve)},
      {"channels_last", static_cast<int64_t>(MemoryFormat::ChannelsLast)},
      {"channels_last_3d", static_cast<int64_t>(MemoryFormat::ChannelsLast3d)},
      {"strided", static_cast<int64_t>(Layout::Strided)}};
  if (auto found = numbers.find(word); found != numbers.end()) return found->second;
#define GRAFT_ONE(name, value, bytes, text) \
  if (word == (text)) return static_cast<int64_t>(to_torch(GRAFT_##name));
  GRAFT_DTYPES(GRAFT_ONE)
#undef GRAFT_ONE
  return c10::Device(word);
}

at::Tensor host_number(const Scalar& scalar) {
  at::Tensor tensor = at::detail::empty_cpu({}, to_torch(scalar.dtype));
  const size_t bytes = tensor.element_size();
  if (tensor.is_complex()) {
    auto* parts = static_cast<char*>(tensor.mutable_data_ptr());
    std::memcpy(parts, &scalar.bits[0], bytes / 2);
    std::memcpy(parts + bytes / 2, &scalar.bits[1], bytes / 2);
  } else {
    std::memcpy(tensor.mutable_data_ptr(), scalar.bits, bytes);
  }
  return tensor;
}

// A number where a tensor is expected: it decides no dtype, as in eager's calls.
at::Tensor number_as_tensor(const Argument& argument) {
  c10::Scalar number = argument.truth;
  if (argument.kind == Kind::kInteger) number = argument.integer.constant_part();
  if (argument.kind == Kind::kFloat) number = argument.number;
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// Arguments of a node as PyTorch's boxed values; tensors are taken one after the other.
class Boxing {
 public:
  Boxing(const ExternalCall& call, c10::DeviceIndex device) : call_(call), device_(device) {}

  c10::IValue box(const Argument& argument, const c10::Type& type) {
    if (argument.kind == Kind::kNone) {
      return type.kind() == c10::TypeKind::TensorType ? c10::IValue(at::Tensor()) : c10::IValue();
    }
    if (type.kind() == c10::TypeKind::OptionalType) {
      return box(argument, *type.castRaw<c10::OptionalType>()->getElementType());
    }
    if (type.kind() == c10::TypeKind::ListType) {
      return list(argument, type.castRaw<c10::ListType>()->getElementType());
    }
    if (type.kind() == c10::TypeKind::TensorType && argument.kind != Kind::kValue) {
      return number_as_tensor(argument);
    }
    const bool real = type.kind() == c10::TypeKind::FloatType;
    switch (argument.kind) {
      case Kind::kValue:
        return tensor();
      case Kind::kInteger: {
        const int64_t integer = argument.integer.constant_part();
        if (real) return static_cast<double>(integer);
        return integer;
      }
      case Kind::kFloat:
        return argument.number;
      case Kind::kBool:
        return argument.truth;
      case Kind::kString:
        return argument.text;
      case Kind::kWord:
        return of_word(argument.text);
      default:
        throw Error(GRAFT_INTERNAL, "a list where " + type.str() + " is expected");
    }
  }

 private:
  at::Tensor tensor() {
    const size_t at = next_++;
    const TensorView& view = call_.operands[at];
    if (view.address == 0 && view.count() != 0) return host_number(call_.scalars[at]);
    return tensor_over(view, device_);
  }

  c10::IValue list(const Argument& argument, const c10::TypePtr& element) {
    std::vector<c10::IValue> values;
    if (argument.kind != Kind::kList) {
      values.push_back(box(argument, *element));  // int[2] may be given as one integer
    }
    for (const Argument& one : argument.list) values.push_back(box(one, *element));
    c10::impl::GenericList list(element);
    list.reserve(values.size());
    for (c10::IValue& value : values) list.push_back(std::move(value));
    return list;
  }

  const ExternalCall& call_;
  const c10::DeviceIndex device_;
  size_t next_ = 0;
};

std::string text_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "no tensor";
  return c10::str(tensor.scalar_type(), tensor.sizes(), " on ", tensor.device());
}

// What a user's kernel returned has to be what its operator's meta kernel says.
void check_users(const Node& node, size_t place, const at::Tensor& result,
                 const at::Tensor& expected) {
  const bool writes = node.note("called") != nullptr;  // into a tensor that the caller made
  const bool same = result.defined() && result.sizes() == expected.sizes() &&
                    (writes || (result.scalar_type() == expected.scalar_type() &&
                                result.device() == expected.device()));
  if (same) return;
  throw Error(
      GRAFT_INVALID_ARGUMENT,
      fmt::format("the kernel of {} that was registered at {} returned {} as result {}, but "
                  "the graph was compiled for {}. Return what PyTorch's own kernel returns, "
                  "or do not compile this call",
                  node.op->name, *node.note("kernel"), text_of(result), place, text_of(expected)));
}

// The arguments of a call that writes into some of them, in the place of a call that returns new
// tensors: copies of the operands, or the memory of the results. Returns what is written.
torch::jit::Stack write_elsewhere(const c10::FunctionSchema& schema, const ExternalCall& call,
                                  c10::DeviceIndex device, torch::jit::Stack* stack) {
  torch::jit::Stack written;
  size_t next = 0;
  for (size_t i = 0; i < stack->size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (argument.alias_info() == nullptr || !argument.alias_info()->isWrite()) continue;
    c10::IValue& value = (*stack)[i];
    if (argument.is_out()) {
      value = tensor_over(call.results[next++], device);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> copies;
      for (const at::Tensor& one : value.toTensorVector()) copies.push_back(one.clone());
      value = copies;
    } else {
      value = value.toTensor().clone();
    }
    written.push_back(value);
  }
  return written;
}

size_t position_of(const c10::FunctionSchema& schema, const std::string& name) {
  const auto found = schema.argumentIndexWithName(name);
  if (found.has_value()) return static_cast<size_t>(*found);
  throw Error(GRAFT_INTERNAL, schema.name() + " has no argument " + name);
}

}  // namespace

at::Tensor tensor_over(const TensorView& view, c10::DeviceIndex device) {
  const at::ScalarType dtype = to_torch(view.dtype);
  const auto rank = static_cast<size_t>(view.rank);
  const at::IntArrayRef sizes(view.sizes, rank), strides(view.strides, rank);
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(dtype));
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      c10::DataPtr(reinterpret_cast<void*>(view.address), device_of(device)), &device_memory(),
      /*resizable=*/false);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(kDispatchKey), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

ExternalNode::ExternalNode(const Graph& graph, const Node& node)
    : op_(find(graph, node)), out_(out_form(op_, node)), native_(out_ || on_device(op_)) {}

void ExternalNode::run(const ExternalCall& call, c10::DeviceIndex device) const {
  torch::jit::Stack stack;
  push_arguments(call, device, &stack);
  if (out_.has_value()) {
    for (const TensorView& result : call.results) stack.emplace_back(tensor_over(result, device));
    out_->callBoxed(&stack);
    return;
  }
  if (call.node.op->users) {
    run_users(call, device, &stack);
  } else {
    op_.callBoxed(&stack);
  }
  if (call.node.writes.empty()) keep_results(call, device, stack);
}

// Below autograd, as an operator's kernel is called: what autograd does with it was traced.
void ExternalNode::run_users(const ExternalCall& call, c10::DeviceIndex device,
                             torch::jit::Stack* stack) const {
  const at::AutoDispatchBelowADInplaceOrView below;
  const bool elsewhere = call.node.note("called") != nullptr;
  torch::jit::Stack written;
  if (elsewhere) written = write_elsewhere(op_.schema(), call, device, stack);
  if (call.node.note("slot") == nullptr) {
    op_.callBoxed(stack);
  } else {
    ve::Call faces(op_.schema().name());
    faces.place(ve::outer(device_of(device)));
    for (c10::IValue& value : *stack) value = faces.outer(value);
    op_.callBoxed(stack);
    for (c10::IValue& value : *stack) value = faces.inner(std::move(value), false);
  }
  if (elsewhere) *stack = std::move(written);
}

void ExternalNode::push_arguments(const ExternalCall& call, c10::DeviceIndex device,
                                  torch::jit::Stack* stack) const {
  const c10::FunctionSchema& schema = op_.schema();
  const size_t count = schema.arguments().size();
  std::vector<bool> given(count, false);
  stack->resize(count);
  Boxing boxing(call, device);
  size_t next = 0;
  for (const Argument& argument : call.node.arguments) {
    const size_t at = argument.name.empty() ? next++ : position_of(schema, argument.name);
    (*stack)[at] = boxing.box(argument, *schema.arguments().at(at).real_type());
    given[at] = true;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!given[i]) (*stack)[i] = schema.arguments()[i].default_value().value_or(c10::IValue());
  }
}

void ExternalNode::keep_results(const ExternalCall& call, c10::DeviceIndex device,
                                const torch::jit::Stack& stack) const {
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) {
    if (value.isTensorList()) {
      for (const at::Tensor& one : value.toTensorVector()) results.push_back(one);
    } else {
      results.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    }
  }
  if (results.size() != call.results.size()) {
    throw Error(GRAFT_INTERNAL,
                fmt::format("{} returned {} results, but the graph has {}", call.node.op->name,
                            results.size(), call.results.size()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (call.node.results[i] == compiler::kNone) continue;
    const at::Tensor kept = tensor_over(call.results[i], device);
    // Norms that do not train give no statistics, where the graph has room for some.
    const bool empty = results[i].defined() && results[i].numel() == 0 && kept.numel() != 0;
    if (empty && i > 0) continue;
    if (call.node.op->users) check_users(call.node, i, results[i], kept);
    if (empty || !results[i].defined()) continue;
    kept.copy_(results[i]);
  }
}

}  // namespace graft::binding
