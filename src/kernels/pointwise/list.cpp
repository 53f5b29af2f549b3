// src/kernels/pointwise/list.cpp: runs rows of the op table over lists of tensors.
#include "kernels/pointwise/list.h"

#include <fmt/format.h>

#include <string_view>

#include "codegen/cache/program_cache.h"
#include "kernels/launch/list_launch.h"
#include "kernels/pointwise/kernel.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/pointwise/row_call.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;
using Kind = ListOperand::Kind;

// Of the kinds, in keys.
constexpr std::string_view kLetters = "teonl";

bool is_list(Kind kind) { return kind != Kind::kElement && kind != Kind::kNumber; }

// What a kernel is specialised on.
struct ListKernel {
  struct Input {
    Kind kind;
    graft_dtype dtype;  // of numbers: what is computed in
  };

  const Op* op;
  graft_dtype compute;
  graft_dtype output;
  std::vector<Input> inputs;  // the row's inputs, then its scalars
  int slots = kGroupSlots;
  bool lanes = false;

  std::string key() const;
  ir::Kernel build() const;
};

// An input in the kernel: one of the three is set.
struct Declared {
  GroupList list;
  Address element;
  std::vector<Value> numbers;
};

Declared declare(Builder& b, const ListKernel::Input& input, int slots) {
  Declared declared;
  switch (input.kind) {
    case Kind::kTensors:
    case Kind::kElements:
      declared.list = GroupList(b, input.dtype, GRAFT_ACCESS_READ, slots);
      break;
    case Kind::kElement:
      declared.element = b.read(input.dtype);
      break;
    case Kind::kNumber:
      declared.numbers.push_back(b.scalar(input.dtype));
      break;
    case Kind::kNumbers:
      for (int slot = 0; slot < slots; ++slot) {
        declared.numbers.push_back(b.scalar(input.dtype));
      }
      break;
  }
  return declared;
}

Value number_of(const std::vector<Value>& numbers, Value slot) {
  Value number = numbers[0];
  for (size_t i = 1; i < numbers.size(); ++i) {
    number = select(slot == static_cast<int64_t>(i), numbers[i], number);
  }
  return number;
}

std::string ListKernel::key() const {
  std::string key = fmt::format("list_{}_{}_{}", op->name, name_of(compute), name_of(output));
  for (const Input& input : inputs) {
    key += fmt::format("_{}{}", name_of(input.dtype), kLetters[static_cast<size_t>(input.kind)]);
  }
  if (slots != kGroupSlots) key += fmt::format("_by_{}", slots);
  return lanes ? key + "_lanes" : key;
}

ir::Kernel ListKernel::build() const {
  Builder b(key());
  b.keep_float64();  // formulas take it for their accuracy
  const ir::Type type = ir::compute_type(compute);
  const GroupList outputs(b, output, GRAFT_ACCESS_WRITE, slots);
  std::vector<Declared> declared;
  for (const Input& input : inputs) declared.push_back(declare(b, input, slots));
  const GroupShare share(b, slots, lanes);
  const Address out = outputs.at(share.slot);
  std::vector<Address> tensors(inputs.size());
  std::vector<Value> values(inputs.size());
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].kind == Kind::kTensors) {
      tensors[k] = declared[k].list.at(share.slot);
    } else if (inputs[k].kind == Kind::kElement) {
      values[k] = cast(type, declared[k].element.load(b.i64(0)));
    } else if (inputs[k].kind == Kind::kElements) {
      values[k] = cast(type, declared[k].list.at(share.slot).load(b.i64(0)));
    } else {
      values[k] = number_of(declared[k].numbers, share.slot);
    }
  }
  share.each(b, [&](Value i) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (inputs[k].kind == Kind::kTensors) values[k] = cast(type, tensors[k].load(i));
    }
    const In all(values);
    out.store(i, op->formula(all.first(op->inputs), all.subspan(op->inputs))[0]);
  });
  return b.finish();
}

void check(const Op& op, graft_dtype compute, size_t outputs,
           std::span<const ListOperand> operands) {
  const size_t wanted = static_cast<size_t>(op.inputs) + op.scalars;
  if (operands.size() != wanted) {
    throw Error(GRAFT_INVALID_ARGUMENT, fmt::format("{} takes {} inputs and scalars, not {}",
                                                    op.name, wanted, operands.size()));
  }
  size_t arguments = 3 * kGroupSlots;  // outputs, and what GroupShare declares
  for (const ListOperand& operand : operands) {
    const size_t given = std::max(operand.views.size(), operand.numbers.size());
    const bool list = is_list(operand.kind);
    if (given != (list ? outputs : 1)) {
      throw Error(GRAFT_INVALID_ARGUMENT,
                  fmt::format("{} over a list of {} got a list of {}; give one element for each",
                              op.name, outputs, given));
    }
    arguments += list ? kGroupSlots : 1;
  }
  if (!computes_in(op, compute) || is_complex(compute) || op.conditions != 0 || op.outputs != 1 ||
      arguments > Arguments::kCapacity) {
    throw Error(GRAFT_UNSUPPORTED,
                fmt::format("{} has no kernel over lists of {}", op.name, name_of(compute)));
  }
}

int slots_of(const OpenDevice& device, std::span<const ListOperand> operands) {
  ParameterCounts each{1, 0}, shared;
  for (const ListOperand& operand : operands) {
    ParameterCounts& counts = is_list(operand.kind) ? each : shared;
    ++(operand.views.empty() ? counts.numbers : counts.addresses);
  }
  return group_slots(device, each, shared);
}

void append(Arguments& arguments, const ListOperand& operand, graft_dtype compute,
            const TensorGroup& group) {
  const auto number = [&](size_t i) {
    arguments.scalar(operand.numbers[i].to(compute), size_of(compute));
  };
  switch (operand.kind) {
    case Kind::kTensors:
    case Kind::kElements:
      for (int member : group.members()) arguments.read(operand.views[static_cast<size_t>(member)]);
      break;
    case Kind::kElement:
      arguments.read(operand.views[0]);
      break;
    case Kind::kNumber:
      number(0);
      break;
    case Kind::kNumbers:
      for (int member : group.members()) number(static_cast<size_t>(member));
      break;
  }
}

ListKernel kernel_of(const Op& op, graft_dtype compute, std::span<const TensorView> outputs,
                     std::span<const ListOperand> operands, size_t member, int slots, bool lanes) {
  ListKernel kernel{&op, compute, outputs[member].dtype, {}, slots, lanes};
  for (const ListOperand& operand : operands) {
    const graft_dtype dtype =
        operand.views.empty() ? compute : operand.views[is_list(operand.kind) ? member : 0].dtype;
    kernel.inputs.push_back({operand.kind, dtype});
  }
  return kernel;
}

// The operand of one member; a row's scalar in memory is none for vendors.
Operand operand_of(const ListOperand& operand, size_t i, const TensorView& output) {
  if (operand.views.empty()) {
    return operand.numbers[operand.kind == Kind::kNumbers ? i : 0];
  }
  if (operand.kind == Kind::kTensors) return operand.views[i];
  TensorView repeated = output;
  const TensorView& element = operand.views[operand.kind == Kind::kElements ? i : 0];
  repeated.address = element.address, repeated.dtype = element.dtype, repeated.strides[0] = 0;
  return repeated;
}

bool offer_rows(Stream& stream, const Op& op, graft_dtype compute,
                std::span<const TensorView> outputs, std::span<const ListOperand> operands) {
  if (!offers(stream, op)) return false;
  for (const ListOperand& scalar : operands.subspan(op.inputs)) {
    if (!scalar.views.empty()) return false;
  }
  return offer_list(stream, op, outputs.size(), [&](size_t i, VendorCall& to) {
    std::vector<Operand> inputs;
    std::vector<Scalar> scalars;
    for (size_t k = 0; k < operands.size(); ++k) {
      const Operand operand = operand_of(operands[k], i, outputs[i]);
      k < op.inputs ? inputs.push_back(operand) : scalars.push_back(operand.scalar);
    }
    describe_row(to, compute, {&outputs[i], 1}, inputs, scalars);
  });
}

// The rows that torch.optim, clipping of gradients and copies run over lists; a letter for every
// operand, as in the key.
struct Packed {
  const char* row;
  const char* operands;
};
constexpr Packed kFloatRows[] = {
    {"plain_add", "tn"},  {"plain_add", "tl"}, {"add", "ttn"},      {"add", "ten"},
    {"plain_sub", "tn"},  {"sub", "ttn"},      {"mul", "tn"},       {"mul", "tl"},
    {"mul", "tt"},        {"mul", "te"},       {"div", "tn"},       {"div", "tl"},
    {"div", "tt"},        {"div", "te"},       {"maximum", "tt"},   {"minimum", "tt"},
    {"clamp_min", "tn"},  {"clamp_max", "tn"}, {"lerp", "ttt"},     {"lerp_scalar", "ttn"},
    {"addcmul", "tttn"},  {"addcdiv", "tttn"}, {"addcdiv", "tttl"}, {"pow", "nt"},
    {"pow_scalar", "tn"}, {"neg", "t"},        {"abs", "t"},        {"sqrt", "t"},
    {"rsqrt", "t"},       {"reciprocal", "t"}, {"sign", "t"},       {"mul", "to"},
    {"div", "to"},        {"addcmul", "tton"},
};

ListKernel packed(const Packed& entry, graft_dtype dtype) {
  ListKernel kernel{find_op(entry.row), dtype, dtype, {}, kGroupSlots};
  for (const char* letter = entry.operands; *letter != 0; ++letter) {
    kernel.inputs.push_back({static_cast<Kind>(kLetters.find(*letter)), dtype});
  }
  return kernel;
}

const PackEntry kPacked([](const PackEntry::Sink& sink) {
  const auto add = [&](const Packed& entry, graft_dtype dtype) {
    const ListKernel kernel = packed(entry, dtype);
    PackEntry::put(sink, kernel);
  };
  for (const Packed& entry : kFloatRows) add(entry, GRAFT_FLOAT32);
  for (graft_dtype bits : {GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    add({"positive", "t"}, bits);
    add({"positive", "n"}, bits);
  }
});

}  // namespace

void pointwise_list(Stream& stream, const Op& op, graft_dtype compute,
                    std::span<const TensorView> outputs, std::span<const ListOperand> operands) {
  check(op, compute, outputs.size(), operands);
  if (offer_rows(stream, op, compute, outputs, operands)) return;
  const graft_dtype working = scalar_dtype(compute);
  const auto dtypes_of = [&](size_t i) {
    uint64_t code = outputs[i].dtype;
    for (const ListOperand& operand : operands) {
      const bool varies = !operand.views.empty() && is_list(operand.kind);
      if (varies) code = code << 4 | operand.views[i].dtype;
    }
    return code;
  };
  each_group(
      outputs.size(), [&](size_t i) { return outputs[i].count(); }, dtypes_of,
      [&](const TensorGroup& group) {
        Arguments arguments;
        for (int member : group.members()) arguments.write(outputs[static_cast<size_t>(member)]);
        for (const ListOperand& operand : operands) append(arguments, operand, working, group);
        const bool lanes = is_gpu_like(stream.device());
        const int64_t items = group.append(arguments, lanes);
        const ListKernel kernel =
            kernel_of(op, working, outputs, operands, static_cast<size_t>(group.members()[0]),
                      group.slots(), lanes);
        launch_kernel(stream, kernel, items, arguments);
      },
      slots_of(stream.device(), operands));
}

}  // namespace graft
