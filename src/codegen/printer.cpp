// src/codegen/printer.cpp: prints kernels as programs of a dialect.
#include "codegen/printer.h"

#include <fmt/format.h>

#include <functional>
#include <set>
#include <stdexcept>

#include "codegen/expression.h"
#include "codegen/math.h"
#include "runtime/dtype.h"

namespace graft::ir {

const char* storage_type(graft_dtype dtype) {
  if (dtype == GRAFT_BOOL) return "u8";
  return is_half(dtype) ? "u16" : name_of(compute_type(dtype));
}

std::string loaded(graft_dtype dtype, const std::string& element) {
  if (dtype == GRAFT_BOOL) return element + " != 0";
  if (!is_half(dtype)) return element;
  return fmt::format("graft_f32_from_{}({})", graft::name_of(dtype), element);
}

std::string stored(graft_dtype dtype, const std::string& value) {
  if (!is_half(dtype)) return value;
  return fmt::format("graft_{}_from_f32({})", graft::name_of(dtype), value);
}

namespace {

// Prints the body of one kernel or function; every instruction becomes one statement.
class Body {
 public:
  Body(const Kernel& kernel, const Dialect& dialect, int indent)
      : kernel_(kernel), dialect_(dialect), indent_(indent) {}

  std::string text() {
    for (Id id = 0; id < kernel_.body.size(); ++id) {
      const bool guarded = kernel_.body[id].opcode == Opcode::kVectorLoop && has_bounded(id);
      if (guarded) {
        id = guarded_loop(id);
      } else {
        statement(id, kernel_.body[id]);
      }
    }
    return std::move(text_);
  }

 private:
  // How functions that hold for bounded arguments only are called: by their definition where the
  // argument is known to be in reach, by the language's own function beyond.
  enum class Reach { kUnknown, kNear, kFar };

  std::string own_function(const Instruction& it) const {
    if (it.opcode != Opcode::kMath || it.type != Type::kF32) return "";
    const Math function = static_cast<Math>(it.index);
    return std::isinf(largest_argument(function)) ? "" : dialect_.far_math(function);
  }

  bool has_bounded(Id loop) const {
    for (Id id = loop; kernel_.body[id].opcode != Opcode::kEnd; ++id) {
      if (!own_function(kernel_.body[id]).empty()) return true;
    }
    return false;
  }

  // A vector loop in blocks: the largest argument is found before the block is computed, because
  // what it reads may be overwritten. Gives the loop's end.
  Id guarded_loop(Id loop) {
    const Instruction& it = kernel_.body[loop];
    const std::string first = fmt::format("first{}", loop), last = fmt::format("last{}", loop);
    const std::string largest = fmt::format("largest{}", loop), end = v(it.operands[1]);
    Id after = loop;
    while (kernel_.body[after].opcode != Opcode::kEnd) ++after;
    const char* type = name_of(it.type);
    line(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += 1024) {{", type, first,
                     v(it.operands[0]), end));
    ++indent_;
    line(fmt::format("const {0} {1} = {2} - {3} < 1024 ? {2} : {3} + 1024;", type, last, end,
                     first));
    line(fmt::format("i32 {} = 0;", largest));
    text_ += dialect_.vector_maximum(largest);
    const auto copy = [&](const std::function<void(Id id)>& each) {
      line(fmt::format("for ({0} {1} = {2}; {1} < {3}; ++{1}) {{", type, v(loop), first, last));
      ++indent_;
      for (Id id = loop + 1; id < after; ++id) each(id);
      --indent_;
      line("}");
    };
    copy([&](Id id) { scan(id, largest); });
    const float bound = static_cast<float>(kLargestAngle);
    line(fmt::format("if ({} <= {:#x}) {{", largest, std::bit_cast<uint32_t>(bound)));
    ++indent_;
    text_ += dialect_.vector_loop();
    reach_ = Reach::kNear;
    copy([&](Id id) { statement(id, kernel_.body[id]); });
    --indent_;
    line("} else {");
    ++indent_;
    reach_ = Reach::kFar;
    copy([&](Id id) { statement(id, kernel_.body[id]); });
    reach_ = Reach::kUnknown;
    for (int close = 0; close < 2; ++close) --indent_, line("}");
    return after;
  }

  // What comes before a bounded function, with its argument's magnitude.
  void scan(Id id, const std::string& largest) {
    const Instruction& it = kernel_.body[id];
    if (it.opcode == Opcode::kStore || it.opcode == Opcode::kLaneStore) return;
    if (!own_function(it).empty()) {
      const std::string bits = dialect_.bitcast(Type::kI32, Type::kF32, v(it.operands[0]));
      line(fmt::format("const i32 m{} = {} & 0x7fffffff;", id, bits));
      line(fmt::format("{0} = m{1} > {0} ? m{1} : {0};", largest, id));
    }
    reach_ = Reach::kNear;
    statement(id, it);
  }

  static std::string v(Id id) { return "v" + std::to_string(id); }
  Type type_of(Id id) const { return kernel_.body[id].type; }

  void line(const std::string& statement) {
    text_.append(static_cast<size_t>(indent_) * 2, ' ').append(statement).append("\n");
  }

  void statement(Id id, const Instruction& it) {
    const Id a = it.operands[0], b = it.operands[1], c = it.operands[2];
    switch (it.opcode) {
      case Opcode::kVariable:
        return line(fmt::format("{} {} = {};", name_of(it.type), v(id), v(a)));
      case Opcode::kSet:
        return line(fmt::format("{} = {};", v(a), v(b)));
      case Opcode::kLanes:
        return line(fmt::format("{} {}[{}];", name_of(it.type), v(id), it.bits));
      case Opcode::kLocalMemory:
        return line(
            fmt::format("{}{} {}[{}];", dialect_.local_memory(), name_of(it.type), v(id), it.bits));
      case Opcode::kLaneStore:
        return line(fmt::format("{}[{}] = {};", v(a), v(b), v(c)));
      case Opcode::kStore:
        return line(fmt::format("{}[{}] = {};", memory(it, c), v(a),
                                stored(kernel_.parameters[it.index].dtype, v(b))));
      case Opcode::kPick:
        return line(pick(id, it));
      case Opcode::kBarrier:
        return line(std::string(dialect_.barrier()));
      case Opcode::kReturn:
        return line(fmt::format("return {};", v(a)));
      case Opcode::kBreak:
        return line(fmt::format("if ({}) break;", v(a)));
      case Opcode::kLoop:
      case Opcode::kVectorLoop:
      case Opcode::kIf:
      case Opcode::kElse:
      case Opcode::kEnd:
        return block(id, it);
      default:
        return line(fmt::format("const {} {} = {};", name_of(it.type), v(id), expression(it)));
    }
  }

  void block(Id id, const Instruction& it) {
    const Id a = it.operands[0], b = it.operands[1], c = it.operands[2];
    if (it.opcode == Opcode::kElse || it.opcode == Opcode::kEnd) --indent_;
    if (it.opcode == Opcode::kEnd) return line("}");
    if (it.opcode == Opcode::kVectorLoop) text_ += dialect_.vector_loop();
    if (it.opcode == Opcode::kElse) {
      line("} else {");
    } else if (it.opcode == Opcode::kIf) {
      line(fmt::format("if ({}) {{", v(a)));
    } else {
      line(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", name_of(it.type), v(id),
                       v(a), v(b), v(c)));
    }
    ++indent_;
  }

  std::string expression(const Instruction& it) const {
    const std::string a = v(it.operands[0]), b = v(it.operands[1]), c = v(it.operands[2]);
    switch (it.opcode) {
      case Opcode::kConstant:
        return constant_text(it.type, it.bits);
      case Opcode::kItem:
        return "item";
      case Opcode::kLocalItem:
        return std::string(dialect_.local_item());
      case Opcode::kScalar:
        return "p" + std::to_string(it.index);
      case Opcode::kDiv:
      case Opcode::kRem:
        return division(it.opcode, it.type, a, b);
      case Opcode::kNeg:
        if (!is_integer(it.type)) return "-" + a;
        return fmt::format("({})(0 - ({}){})", name_of(it.type), unsigned_of(it.type), a);
      case Opcode::kNot:
        return it.type == Type::kBool ? "!" + a : fmt::format("({})~{}", name_of(it.type), a);
      case Opcode::kSelect:
        return fmt::format("{} ? {} : {}", a, b, c);
      case Opcode::kCast:
        return cast_text(it.type, type_of(it.operands[0]), a);
      case Opcode::kBitcast:
        return dialect_.bitcast(it.type, type_of(it.operands[0]), a);
      case Opcode::kMath:
        return call(it);
      case Opcode::kLoad:
        return loaded(kernel_.parameters[it.index].dtype,
                      fmt::format("{}[{}]", memory(it, it.operands[1]), a));
      case Opcode::kGet:
        return v(it.operands[0]);
      case Opcode::kLaneLoad:
        return fmt::format("{}[{}]", a, b);
      case Opcode::kShr:
        return fmt::format("({})({} >> {})", name_of(it.type), a, b);
      case Opcode::kEq:
      case Opcode::kNe:
      case Opcode::kLt:
      case Opcode::kLe:
        return fmt::format("{} {} {}", a, symbol(it.opcode), b);
      default:
        return arithmetic(it.opcode, it.type, a, b);
    }
  }

  static std::string memory(const Instruction& it, Id picked) {
    return picked == kNoId ? "p" + std::to_string(it.index) : v(picked);
  }

  std::string pick(Id id, const Instruction& it) const {
    std::string text = fmt::format("{}{}* const {} = ", dialect_.address_space(),
                                   storage_type(kernel_.parameters[it.index].dtype), v(id));
    for (uint64_t i = 0; i + 1 < it.bits; ++i) {
      text += fmt::format("{} == {} ? p{} : ", v(it.operands[0]), i, it.index + i);
    }
    return text + fmt::format("p{};", it.index + it.bits - 1);
  }

  std::string call(const Instruction& it) const {
    const Math function = static_cast<Math>(it.index);
    if (is_integer(it.type) && function == Math::k_abs) {
      const std::string a = v(it.operands[0]);
      return fmt::format("{0} < 0 ? ({1})(0 - ({2}){0}) : {0}", a, name_of(it.type),
                         unsigned_of(it.type));
    }
    std::string name = is_integer(it.type) ? "" : dialect_.math(function, it.type);
    const std::string own = own_function(it);
    if (!own.empty() && reach_ != Reach::kNear) name = own;
    if (name.empty()) name = fmt::format("graft_{}_{}", name_of(function), name_of(it.type));
    std::string text = name + "(";
    for (int i = 0; i < arity_of(function); ++i) text += (i == 0 ? "" : ", ") + v(it.operands[i]);
    return text + ")";
  }

  const Kernel& kernel_;
  const Dialect& dialect_;
  int indent_;
  Reach reach_ = Reach::kUnknown;
  std::string text_;
};

// The functions that kernels call, each once and before its first use.
class Functions {
 public:
  explicit Functions(const Dialect& dialect) : dialect_(dialect) {}

  void add_used_by(const Kernel& kernel) {
    for (const Parameter& parameter : kernel.parameters) {
      if (!is_half(parameter.dtype)) continue;
      if (!parameter.is_address || parameter.access & GRAFT_ACCESS_READ) {
        add(define_load(parameter.dtype));
      }
      if (parameter.access & GRAFT_ACCESS_WRITE) add_store(parameter.dtype);
    }
    for (const Instruction& it : kernel.body) {
      if (it.opcode != Opcode::kMath) continue;
      const Math function = static_cast<Math>(it.index);
      const bool printed =
          is_float(it.type) ? dialect_.math(function, it.type).empty() : function != Math::k_abs;
      if (printed) add(define(function, it.type));
    }
  }

  const std::string& text() const { return text_; }

 private:
  void add(const Kernel& function) {
    if (!names_.insert(function.name).second) return;
    add_used_by(function);
    text_ += definition(function);
  }

  void add_store(graft_dtype dtype) {
    const Kernel function = define_store(dtype);
    if (!names_.insert(function.name).second) return;
    text_ += dialect_.store_function(dtype, definition(function));
  }

  std::string definition(const Kernel& function) const {
    std::string head = fmt::format("{}{} {}(", dialect_.function_qualifier(),
                                   name_of(function.result), function.name);
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      head += fmt::format("{}{} p{}", i == 0 ? "" : ", ",
                          storage_type(function.parameters[i].dtype), i);
    }
    return head + ") {\n" + Body(function, dialect_, 1).text() + "}\n";
  }

  const Dialect& dialect_;
  std::set<std::string> names_;
  std::string text_;
};

}  // namespace

std::string print(const std::vector<Kernel>& kernels, const Dialect& dialect) {
  Functions functions(dialect);
  std::string bodies;
  for (const Kernel& kernel : kernels) {
    // The other way round it runs: a thread does the tile of a work-item.
    if (kernel.family == Family::kGpuLike && dialect.family() == Family::kCpuLike) {
      throw std::logic_error("kernel " + kernel.name +
                             " is of another device family than dialect " + dialect.name());
    }
    functions.add_used_by(kernel);
    const int indent = dialect.family() == Family::kCpuLike ? 2 : 1;
    bodies += dialect.open_kernel(kernel) + Body(kernel, dialect, indent).text();
    bodies += dialect.close_kernel();
  }
  return std::string(dialect.head()) + functions.text() + bodies;
}

std::string print(const Kernel& kernel, const Dialect& dialect) {
  return print(std::vector<Kernel>{kernel}, dialect);
}

}  // namespace graft::ir
