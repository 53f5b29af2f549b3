// src/torch/ve/kernels.cpp: every operator of the slot.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <array>
#include <mutex>
#include <set>
#include <string>

#include "torch/tensor/empty.h"
#include "torch/ve/attach.h"
#include "torch/ve/backward.h"
#include "torch/ve/call.h"
#include "torch/ve/faces.h"
#include "torch/ve/naming.h"
#include "torch/ve/slot.h"
#include "torch/version/dispatch.h"

namespace graft::binding::ve {
namespace {

using c10::DispatchKey;

struct KeyPair {
  DispatchKey outer, inner;
};
constexpr std::array kKeys{KeyPair{kKey, kDispatchKey},
                           KeyPair{kSparseKey, DispatchKey::SparsePrivateUse1},
                           KeyPair{ve::kQuantizedKey, binding::kQuantizedKey}};

bool may_hold_tensors(const c10::IValue& value) {
  return !value.isNone() && !value.isInt() && !value.isDouble() && !value.isBool() &&
         !value.isIntList();
}

// Does on the device behind the slot what the key of its own has a kernel for.
template <DispatchKey key>
void run_inside(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  follow_backward();
  const c10::FunctionSchema& schema = op.schema();
  Call call(schema.name());
  const size_t count = schema.arguments().size(), first = stack->size() - count;
  for (size_t i = 0; i < count; ++i) {
    c10::IValue& value = (*stack)[first + i];
    if (!may_hold_tensors(value)) continue;
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    value = call.inner(std::move(value), alias != nullptr && alias->isWrite());
  }
  try {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(key), stack);
  } catch (const c10::Error& error) {
    call.rethrow(error);
  }
  call.write_back();
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    value = call.outer(value);
  }
}

template <size_t place>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<&run_inside<kKeys[place].inner>>();
}

// Operators that PyTorch composes for every device, and that the device behind has a kernel for,
// have to be named: a fallback stands behind compositions.
template <size_t place>
void name_kernels(torch::Library& library, const std::set<std::string>& own) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op.has_value() || !op->hasSchema()) continue;
    if (!op->hasKernelForDispatchKey(kKeys[place].inner)) continue;
    if (op->hasKernelForDispatchKey(kKeys[place].outer)) continue;
    std::string local = name.name.substr(name.name.find("::") + 2);
    if (!name.overload_name.empty()) local += "." + name.overload_name;
    if (!own.contains(local)) library.impl(local.c_str(), boxed<place>());
  }
}

// The impl of compressed sparse tensors has a list of devices, and the slot is none of them.
constexpr std::array kCompressedMakers{
    "_sparse_compressed_tensor_unsafe", "_sparse_compressed_tensor_with_dims",
    "_sparse_csr_tensor_unsafe",        "_sparse_csc_tensor_unsafe",
    "_sparse_bsr_tensor_unsafe",        "_sparse_bsc_tensor_unsafe"};

void refuse_maker(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack*) {
  ve::refuse_compressed(op.schema().name());
}

void attach_refusals() {
  auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", kSparseCompressedKey, __FILE__, __LINE__);
  for (const char* name : kCompressedMakers) {
    library->impl(name, torch::CppFunction::makeFromBoxedFunction<&refuse_maker>());
  }
}

template <size_t place>
void attach_key(const std::set<std::string>& own) {
  // Never destroyed: destruction would take the kernels back while tensors live.
  auto* const library =
      new torch::Library(torch::Library::IMPL, "aten", kKeys[place].outer, __FILE__, __LINE__);
  name_kernels<place>(*library, own);
}

// At the first tensor: a process without one does not pay for a thousand registrations.
void name_all_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    attach_key<0>({"empty.memory_format", "empty_strided"});
    attach_key<1>({});
    attach_refusals();
    attach_key<2>({});
    attach_collectives();
    attach_composites();
    attach_recurrent();
  });
}

// What make returns of the device behind one of the slot, as the slot's.
template <class Make>
at::Tensor made_on(std::optional<at::Device> wanted, Make make) {
  const c10::Device outer(kType, resolve(wanted.value_or(c10::Device(kType, -1)).index()));
  name_all_kernels();
  follow_backward();
  try {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Call("aten::empty").outer(make(inner(outer)));
  } catch (const c10::Error& error) {
    throw_renamed(error, outer);
  }
}

at::Tensor empty_memory_format(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                               std::optional<at::Layout> layout, std::optional<at::Device> device,
                               std::optional<bool> pinned, std::optional<at::MemoryFormat> format) {
  check_empty_options(layout, pinned);
  return made_on(device, [&](c10::Device inner) {
    return empty_graft(sizes, wanted_or_default(dtype), inner, format);
  });
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
                         std::optional<at::Device> device, std::optional<bool> pinned) {
  check_empty_options(layout, pinned);
  return made_on(device, [&](c10::Device inner) {
    return empty_strided_graft(sizes, strides, wanted_or_default(dtype), inner);
  });
}

// Either may be of the slot, of the device type of ours, or on the CPU, each of any index.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  follow_backward();
  Call from_call("aten::copy_"), to_call("aten::copy_");
  const at::Tensor source = from_call.inner(self, false), target = to_call.inner(to, true);
  try {
    const at::AutoDispatchBelowADInplaceOrView below;
    target.copy_(source, non_blocking);
  } catch (const c10::Error& error) {
    (self.device().type() == kType ? from_call : to_call).rethrow(error);
  }
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

template <size_t place>
void attach_fallback() {
  auto* const library =
      new torch::Library(torch::Library::IMPL, "_", kKeys[place].outer, __FILE__, __LINE__);
  library->fallback(boxed<place>());
}

}  // namespace

void attach_kernels() {
  attach_fallback<0>();
  attach_fallback<1>();
  attach_fallback<2>();
  auto* const library = new torch::Library(torch::Library::IMPL, "aten", kKey, __FILE__, __LINE__);
  library->impl("empty.memory_format", &empty_memory_format);
  library->impl("empty_strided", &empty_strided);
  library->impl("_copy_from", &copy_from);
  library->impl("_copy_from_and_resize", &copy_from_and_resize);
}

}  // namespace graft::binding::ve
