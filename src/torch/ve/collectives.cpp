// src/torch/ve/collectives.cpp: torch.distributed's operators on tensors of the slot.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>
#include <torch/library.h>

#include <memory>
#include <utility>
#include <vector>

#include "torch/ve/attach.h"
#include "torch/ve/call.h"
#include "torch/ve/slot.h"
#include "torch/version/c10d.h"
#include "torch/version/dispatch.h"

namespace graft::binding::ve {
namespace {

using Future = c10::ivalue::Future;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// The work of the group's backend, whose results are tensors of the slot. Keeps the call's tensors
// as long as it lives.
class Work final : public c10d::Work {
 public:
  Work(WorkPtr inner, std::shared_ptr<Call> call)
      : inner_(std::move(inner)), call_(std::move(call)) {}

  bool isCompleted() override { return inner_->isCompleted(); }
  bool isSuccess() const override { return inner_->isSuccess(); }
  std::exception_ptr exception() const override { return inner_->exception(); }
  int sourceRank() const override { return inner_->sourceRank(); }
  void synchronize() override { inner_->synchronize(); }
  bool wait(std::chrono::milliseconds timeout) override { return inner_->wait(timeout); }
  void blockCurrentStream() override { inner_->blockCurrentStream(); }
  void abort() override { inner_->abort(); }
  uint64_t getSequencenumber() const override { return inner_->getSequencenumber(); }

  std::vector<at::Tensor> result() override {
    std::vector<at::Tensor> results = inner_->result();
    for (at::Tensor& one : results) one = call_->outer(one);
    return results;
  }

  // Done when the backend's is, with the streams that are current then.
  c10::intrusive_ptr<Future> getFuture() override {
    const c10::intrusive_ptr<Future> inner = inner_->getFuture();
    auto outer = c10::make_intrusive<Future>(inner->elementType(), call_->devices());
    inner->addCallback([outer, call = call_, work = inner_](Future& done) {
      if (done.hasError()) return outer->setError(done.exception_ptr());
      work->synchronize();
      outer->markCompleted(call->outer(done.value()));
    });
    return outer;
  }

 private:
  const WorkPtr inner_;
  const std::shared_ptr<Call> call_;
};

// A list of lists of tensors, as the operators of torch.distributed take beside plain lists.
bool is_nested_list(const c10::IValue& value) {
  return value.isList() && value.toListRef().size() > 0 && value.toListRef()[0].isTensorList();
}

template <class Each>
c10::IValue each_list(const c10::IValue& lists, Each each) {
  c10::List<c10::List<at::Tensor>> changed;
  for (const c10::IValue& list : lists.toListRef()) changed.push_back(each(list).toTensorList());
  return changed;
}

void run_collective(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const auto call = std::make_shared<Call>(schema.name().c_str());
  const size_t count = schema.arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    const auto inner = [&](const c10::IValue& one) { return call->inner(one, true); };
    value = is_nested_list(value) ? each_list(value, inner) : inner(value);
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(c10::DispatchKeySet(kDispatchKey), stack);
  }
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    const auto outer = [&](const c10::IValue& one) { return call->outer(one); };
    if (value.isCustomClass()) {
      value = WorkPtr(c10::make_intrusive<Work>(value.toCustomClass<c10d::Work>(), call));
    } else {
      value = is_nested_list(value) ? each_list(value, outer) : outer(value);
    }
  }
}

}  // namespace

void attach_collectives() {
  const auto names = c10::Dispatcher::singleton().getAllOpNames();
  torch::Library* library = nullptr;
  for (const c10::OperatorName& name : names) {
    if (!name.name.starts_with("c10d::")) continue;
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op.has_value() || !op->hasKernelForDispatchKey(kDispatchKey)) continue;
    if (library == nullptr) {
      library = new torch::Library(torch::Library::IMPL, "c10d", kKey, __FILE__, __LINE__);
    }
    const std::string local = name.name.substr(name.name.find("::") + 2);
    const std::string overload = name.overload_name.empty() ? "" : "." + name.overload_name;
    library->impl((local + overload).c_str(),
                  torch::CppFunction::makeFromBoxedFunction<&run_collective>());
  }
}

}  // namespace graft::binding::ve
