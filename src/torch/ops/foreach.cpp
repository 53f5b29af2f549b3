// src/torch/ops/foreach.cpp: the _foreach operators, a launch for several tensors at once.
#define AT_PER_OPERATOR_HEADERS
#include "torch/version/ops/foreach.h"

#include <ATen/OpMathType.h>
#include <ATen/Operators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/result_type.h>

#include <algorithm>
#include <vector>

#include "kernels/pointwise/list.h"
#include "kernels/pointwise/pointwise.h"
#include "torch/dispatch/composite.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/list_route.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using native::can_use_fast_route;
using native::check_foreach_api_restrictions;
using Kind = ListOperand::Kind;
using Numbers = at::ArrayRef<at::Scalar>;
using Tensors = std::vector<at::Tensor>;
using Views = std::vector<TensorView>;

Tensors empty_like_each(at::TensorList list) {
  Tensors results;
  results.reserve(list.size());
  for (const at::Tensor& tensor : list) results.push_back(at::empty_like(tensor));
  return results;
}

// Operators on single tensors do this by themselves.
void count_writes(at::TensorList written) {
  for (const at::Tensor& tensor : written) tensor.unsafeGetTensorImpl()->bump_version();
}

// PyTorch's rules refuse the others or promote with them.
bool is_plain(const at::Scalar& number) { return !number.isComplex() && !number.isBoolean(); }

// The arguments of one call, in the order of its schema: that of a row's inputs and scalars.
// Borrows them.
class Operands {
 public:
  void add(at::TensorList list) {
    if (lists_.empty()) {
      check_foreach_api_restrictions(list);
    } else {
      check_foreach_api_restrictions(lists_[0], list);
    }
    lists_.push_back(list);
    placed_.push_back({Kind::kTensors, list, {}, {}, {}});
  }
  void add(const at::Scalar& number) { add(Kind::kNumber, {&number, 1}); }
  void add(Numbers numbers) {
    check_foreach_api_restrictions(lists_[0], numbers);
    add(Kind::kNumbers, numbers);
  }
  // A number in memory: on the device, or on the CPU, where it is read.
  void add(const at::Tensor& element) {
    element_ = &element;
    element_place_ = placed_.size();
    placed_.push_back({element.is_cpu() ? Kind::kNumber : Kind::kElement, {}, {}, {}, {}});
  }

  // Runs the row into new tensors, or into the first list where results is null. False, and nothing
  // done, where it does not fit.
  bool run(const Op& row, uint8_t types, Tensors* results) {
    const bool done = done_by(
        [&] {
          if (!fits(row, types)) return false;
          if (results != nullptr) *results = empty_like_each(lists_[0]);
          launch(row, results != nullptr ? at::TensorList(*results) : lists_[0]);
          return true;
        },
        lists_[0][0]);
    if (done && results == nullptr) count_writes(lists_[0]);
    return done;
  }

 private:
  struct Placed {
    Kind kind;
    at::TensorList list;
    Numbers given;
    Views views;
    std::vector<graft::Scalar> numbers;
  };

  void add(Kind kind, Numbers numbers) {
    numbers_ = numbers;
    placed_.push_back({kind, {}, numbers, {}, {}});
  }

  // As torch.cuda: one device, one dtype, dense tensors, nothing to promote. Beyond it, a list may
  // hold one element for each tensor, as capturable optimizers have.
  bool fits(const Op& row, uint8_t types) {
    std::vector<at::TensorList> dense;
    for (Placed& placed : placed_) {
      if (placed.kind != Kind::kTensors) continue;
      if (are_elements(placed.list)) placed.kind = Kind::kElements;
      if (placed.kind == Kind::kTensors) dense.push_back(placed.list);
    }
    if (!can_use_fast_route(dense, numbers_)) return false;
    if (!std::all_of(numbers_.begin(), numbers_.end(), is_plain)) return false;
    const at::ScalarType type = lists_[0][0].scalar_type();
    if (at::isComplexType(type) || !computes_in(row, to_graft(type))) return false;
    if (at::isIntegralType(type, true) && (types & kIntegerTypes) == 0) return false;
    return element_ == nullptr || place_element();
  }

  bool are_elements(at::TensorList list) const {
    const auto is_element = [&](const at::Tensor& tensor) {
      return tensor.dim() == 0 && tensor.layout() == at::kStrided &&
             tensor.device() == lists_[0][0].device() && tensor.dtype() == lists_[0][0].dtype();
    };
    const auto is_larger = [](const at::Tensor& tensor) { return tensor.dim() != 0; };
    return std::any_of(lists_[0].begin(), lists_[0].end(), is_larger) &&
           std::all_of(list.begin(), list.end(), is_element);
  }

  bool place_element() {
    const at::TensorList list = lists_[0];
    Placed& placed = placed_[element_place_];
    if (element_->dim() != 0) return false;
    if (placed.kind == Kind::kElement) {
      placed.views = {flat_view(*element_)};
      return element_->device() == list[0].device() && element_->dtype() == list[0].dtype();
    }
    for (const at::Tensor& tensor : list) {
      if (at::result_type(tensor, *element_) != tensor.scalar_type()) return false;
    }
    element_number_ = element_->item();
    placed.given = {&element_number_, 1};
    return is_plain(element_number_);
  }

  void launch(const Op& row, at::TensorList outputs) {
    const at::ScalarType type = outputs[0].scalar_type();
    std::vector<ListOperand> operands;
    for (Placed& placed : placed_) {
      if (!placed.list.empty()) placed.views = flat_views(placed.list);
      for (const at::Scalar& number : placed.given) {
        placed.numbers.push_back(to_graft(number, at::toOpMathType(type)));
      }
      operands.push_back({placed.kind, placed.views, placed.numbers});
    }
    pointwise_list(stream_of(outputs[0]), row, to_graft(type), flat_views(outputs), operands);
  }

  std::vector<at::TensorList> lists_;
  Numbers numbers_;
  const at::Tensor* element_ = nullptr;
  at::Scalar element_number_;
  size_t element_place_ = 0;
  std::vector<Placed> placed_;
};

// An operator that runs a row over its lists, for integers only where types has them. In place
// where it returns nothing.
template <class Op, Name row, uint8_t types = kRealTypes, class Schema = typename Op::schema>
struct ListOperator;

template <class Op, Name row, uint8_t types, class Result, class... Arguments>
struct ListOperator<Op, row, types, Result(Arguments...)> {
  static Result call(Arguments... arguments) {
    Operands operands;
    (operands.add(arguments), ...);
    if constexpr (std::is_void_v<Result>) {
      if (operands.run(op_row<row>(), types, nullptr)) return;
    } else {
      Tensors results;
      if (operands.run(op_row<row>(), types, &results)) return results;
    }
    return composite<Op>(arguments...);
  }
};

// The same with the numbers of another operator's list in one tensor of the CPU.
template <class Listed, Name row>
auto with_packed_numbers(at::TensorList self, at::TensorList a, at::TensorList b,
                         const at::Tensor& numbers) {
  const std::vector<at::Scalar> list =
      native::convert_tensor_to_scalar_list(numbers, static_cast<int64_t>(self.size()));
  return ListOperator<Listed, row>::call(self, a, b, list);
}

// Elements of one dtype move as bits; others are converted.
void move(at::TensorList to, at::TensorList from) {
  Views targets = flat_views(to), sources = flat_views(from);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].dtype != sources[i].dtype) continue;
    targets[i].dtype = sources[i].dtype = raw_dtype_of_size(size_of(targets[i].dtype));
  }
  const ListOperand source = ListOperand::tensors(sources);
  pointwise_list(stream_of(to[0]), op_row<"positive">(), sources[0].dtype, targets, {&source, 1});
}

void copy_each(at::TensorList self, at::TensorList source, bool non_blocking) {
  check_foreach_api_restrictions(self, source);
  const auto run = [&] {
    if (!native::check_fast_path_restrictions({self, source}, {}, false, true)) return false;
    move(self, source);
    return true;
  };
  if (done_by(run, self[0])) return count_writes(self);
  composite<at::_ops::_foreach_copy_>(self, source, non_blocking);
}

Tensors clone_each(at::TensorList self, std::optional<at::MemoryFormat> format) {
  check_foreach_api_restrictions(self);
  Tensors results;
  const auto run = [&] {
    const bool preserves =
        format.value_or(at::MemoryFormat::Preserve) == at::MemoryFormat::Preserve;
    if (!preserves || !can_use_fast_route(self)) return false;
    results = empty_like_each(self);
    move(results, self);
    return true;
  };
  if (done_by(run, self[0])) return results;
  return composite<at::_ops::_foreach_clone>(self, format);
}

void zero_each(at::TensorList self) {
  check_foreach_api_restrictions(self);
  const auto run = [&] {
    if (!can_use_fast_route(self)) return false;
    Views targets = flat_views(self);
    for (TensorView& view : targets) view.dtype = raw_dtype_of_size(size_of(view.dtype));
    const graft::Scalar zero = graft::Scalar::of(int64_t{0});
    const ListOperand source = ListOperand::number(zero);
    pointwise_list(stream_of(self[0]), op_row<"positive">(), targets[0].dtype, targets,
                   {&source, 1});
    return true;
  };
  if (done_by(run, self[0])) return count_writes(self);
  composite<at::_ops::_foreach_zero_>(self);
}

template <class Op, Name row, uint8_t types = kRealTypes>
void enlist(torch::Library& m) {
  implement<Op, &ListOperator<Op, row, types>::call>(m);
}

}  // namespace

// An operator and its form in place.
#define GRAFT_BOTH(name, overload, ...)                           \
  enlist<at::_ops::_foreach_##name##_##overload, __VA_ARGS__>(m); \
  enlist<at::_ops::_foreach_##name##__##overload, __VA_ARGS__>(m);
#define GRAFT_UNARY(name)                      \
  enlist<at::_ops::_foreach_##name, #name>(m); \
  enlist<at::_ops::_foreach_##name##_, #name>(m);
#define GRAFT_PACKED(name)                                                           \
  implement<at::_ops::_foreach_##name##_Tensor,                                      \
            &with_packed_numbers<at::_ops::_foreach_##name##_ScalarList, #name>>(m); \
  implement<at::_ops::_foreach_##name##__Tensor,                                     \
            &with_packed_numbers<at::_ops::_foreach_##name##__ScalarList, #name>>(m);
// With a number, a number for each tensor, another list.
#define GRAFT_BINARY(name, number_row, list_row) \
  GRAFT_BOTH(name, Scalar, number_row)           \
  GRAFT_BOTH(name, ScalarList, number_row)       \
  GRAFT_BOTH(name, List, list_row)

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  GRAFT_BINARY(add, "plain_add", "add")
  GRAFT_BINARY(sub, "plain_sub", "sub")
  GRAFT_BINARY(mul, "mul", "mul")
  GRAFT_BINARY(div, "div", "div")
  GRAFT_BINARY(clamp_min, "clamp_min", "maximum")
  GRAFT_BINARY(clamp_max, "clamp_max", "minimum")
  GRAFT_BINARY(maximum, "clamp_min", "maximum")
  GRAFT_BINARY(minimum, "clamp_max", "minimum")
  GRAFT_BOTH(add, Tensor, "add")
  GRAFT_BOTH(mul, Tensor, "mul")
  GRAFT_BOTH(div, Tensor, "div")
  // Integers have rules of their own for negative powers.
  GRAFT_BOTH(pow, Scalar, "pow_scalar", kFloatTypes)
  GRAFT_BOTH(pow, ScalarList, "pow_scalar", kFloatTypes)
  GRAFT_BOTH(pow, List, "pow", kFloatTypes)
  enlist<at::_ops::_foreach_pow_ScalarAndTensor, "pow", kFloatTypes>(m);
  GRAFT_BOTH(addcmul, Scalar, "addcmul")
  GRAFT_BOTH(addcmul, ScalarList, "addcmul")
  GRAFT_BOTH(addcdiv, Scalar, "addcdiv")
  GRAFT_BOTH(addcdiv, ScalarList, "addcdiv")
  GRAFT_PACKED(addcmul)
  GRAFT_PACKED(addcdiv)
  GRAFT_BOTH(lerp, Scalar, "lerp_scalar")
  GRAFT_BOTH(lerp, ScalarList, "lerp_scalar")
  GRAFT_BOTH(lerp, List, "lerp")
  implement<at::_ops::_foreach_copy_, &copy_each>(m);
  implement<at::_ops::_foreach_clone, &clone_each>(m);
  implement<at::_ops::_foreach_zero_, &zero_each>(m);
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  GRAFT_UNARY(abs)
  GRAFT_UNARY(acos)
  GRAFT_UNARY(asin)
  GRAFT_UNARY(atan)
  GRAFT_UNARY(ceil)
  GRAFT_UNARY(cos)
  GRAFT_UNARY(cosh)
  GRAFT_UNARY(erf)
  GRAFT_UNARY(erfc)
  GRAFT_UNARY(exp)
  GRAFT_UNARY(expm1)
  GRAFT_UNARY(floor)
  GRAFT_UNARY(frac)
  GRAFT_UNARY(lgamma)
  GRAFT_UNARY(log)
  GRAFT_UNARY(log10)
  GRAFT_UNARY(log1p)
  GRAFT_UNARY(log2)
  GRAFT_UNARY(neg)
  GRAFT_UNARY(reciprocal)
  GRAFT_UNARY(round)
  GRAFT_UNARY(rsqrt)
  GRAFT_UNARY(sigmoid)
  GRAFT_UNARY(sign)
  GRAFT_UNARY(sin)
  GRAFT_UNARY(sinh)
  GRAFT_UNARY(sqrt)
  GRAFT_UNARY(tan)
  GRAFT_UNARY(tanh)
  GRAFT_UNARY(trunc)
}

}  // namespace graft::binding
