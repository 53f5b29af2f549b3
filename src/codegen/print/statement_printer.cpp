// src/codegen/print/statement_printer.cpp: prints the statements of a kernel or function.
#include "codegen/print/statement_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "codegen/ir/expression.h"
#include "codegen/math/math.h"
#include "codegen/print/printer.h"
#include "codegen/print/tile.h"
#include "runtime/driver/dtype.h"

namespace graft::ir {
namespace {

constexpr const char* kSubGroups[] = {"place", "index", "size"};  // by SubGroup

// Prints the body of one kernel or function; every instruction becomes one statement.
class Body {
 public:
  Body(const Kernel& kernel, const Dialect& dialect, int indent)
      : kernel_(kernel), dialect_(dialect), indent_(indent) {}

  std::string text() {
    for (Id id = 0; id < kernel_.body.size(); ++id) {
      const Instruction& it = kernel_.body[id];
      if (it.opcode != Opcode::kVectorLoop) {
        statement(id, it);
        continue;
      }
      const Id loop = id;
      while (kernel_.body[id].opcode != Opcode::kEnd) ++id;
      if (has_bounded(loop)) {
        guarded_loop(loop, id);
      } else {
        vector_loop(loop, id, v(it.operands[0]), v(it.operands[1]));
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
    if (it.bits == kOwnFunction) return "";
    return std::isinf(largest_argument(function)) ? "" : dialect_.far_math(function);
  }

  bool has_bounded(Id loop) const {
    for (Id id = loop; kernel_.body[id].opcode != Opcode::kEnd; ++id) {
      if (!own_function(kernel_.body[id]).empty()) return true;
    }
    return false;
  }

  // A vector loop in blocks: the largest argument is found before the block is computed, because
  // what it reads may be overwritten.
  void guarded_loop(Id loop, Id after) {
    const Instruction& it = kernel_.body[loop];
    const std::string first = fmt::format("first{}", loop), last = fmt::format("last{}", loop);
    const std::string largest = fmt::format("largest{}", loop), end = v(it.operands[1]);
    const char* type = name_of(it.type);
    line(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += 1024) {{", type, first,
                     v(it.operands[0]), end));
    ++indent_;
    line(fmt::format("const {0} {1} = {2} - {3} < 1024 ? {2} : {3} + 1024;", type, last, end,
                     first));
    line(fmt::format("i32 {} = 0;", largest));
    text_ += dialect_.vector_maximum(largest);
    each(loop, after, first, last, [&](Id id) { scan(id, largest); });
    const float bound = static_cast<float>(kLargestAngle);
    line(fmt::format("if ({} <= {:#x}) {{", largest, std::bit_cast<uint32_t>(bound)));
    ++indent_;
    reach_ = Reach::kNear;
    vector_loop(loop, after, first, last);
    --indent_;
    line("} else {");
    ++indent_;
    reach_ = Reach::kFar;
    each(loop, after, first, last, [&](Id id) { statement(id, kernel_.body[id]); });
    reach_ = Reach::kUnknown;
    for (int close = 0; close < 2; ++close) --indent_, line("}");
  }

  // How often the loop runs where its bounds are constants, else 0.
  int64_t trips(Id loop) const {
    const Instruction &begin = kernel_.body[kernel_.body[loop].operands[0]],
                      &end = kernel_.body[kernel_.body[loop].operands[1]];
    const bool known = begin.opcode == Opcode::kConstant && end.opcode == Opcode::kConstant;
    return known ? static_cast<int64_t>(end.bits - begin.bits) : 0;
  }

  // About how many instructions an iteration takes.
  size_t weight(Id loop, Id after) const {
    constexpr size_t kFunction = 32;
    size_t total = 0;
    for (Id id = loop + 1; id < after; ++id) {
      const Opcode opcode = kernel_.body[id].opcode;
      if (opcode != Opcode::kConstant) total += opcode == Opcode::kMath ? kFunction : 1;
    }
    return total;
  }

  // The iterations from begin to end, whole tiles first where half elements lie side by side.
  void vector_loop(Id loop, Id after, const std::string& begin, const std::string& end) {
    const auto print = [&](Id id) { statement(id, kernel_.body[id]); };
    const std::vector<TileAccess> accesses = tile_accesses(kernel_, loop, after, dialect_);
    if (accesses.empty()) {
      text_ += dialect_.vector_loop(trips(loop), weight(loop, after));
      return each(loop, after, begin, end, print);
    }
    const std::string tile = fmt::format("tile{}", loop);
    const char* type = name_of(kernel_.body[loop].type);
    line(fmt::format("{} {} = {};", type, tile, begin));
    line(fmt::format("for (; {1} - {0} >= {2}; {0} += {2}) {{", tile, end, kTileElements));
    ++indent_;
    for (const TileAccess& access : accesses) {
      line(fmt::format("f32 {}[{}];", t(access.id), kTileElements));
      if (kernel_.body[access.id].opcode == Opcode::kLoad) convert(access, loop, tile);
    }
    tile_ = accesses;
    text_ += dialect_.vector_loop(kTileElements, weight(loop, after));
    each(loop, after, tile, fmt::format("{} + {}", tile, kTileElements), print, "!=");
    tile_.clear();
    for (const TileAccess& access : accesses) {
      if (kernel_.body[access.id].opcode == Opcode::kStore) convert(access, loop, tile);
    }
    --indent_;
    line("}");
    text_ += dialect_.vector_loop(0, weight(loop, after));
    each(loop, after, tile, end, print);
  }

  // compare: "!=" shows compilers how often the loop runs. REQUIRES then: begin is before end.
  void each(Id loop, Id after, const std::string& begin, const std::string& end,
            const std::function<void(Id id)>& body, const char* compare = "<") {
    line(fmt::format("for ({0} {1} = {2}; {1} {4} {3}; ++{1}) {{", name_of(kernel_.body[loop].type),
                     v(loop), begin, end, compare));
    ++indent_;
    loop_ = loop;
    for (Id id = loop + 1; id < after; ++id) body(id);
    loop_ = kNoId;
    --indent_;
    line("}");
  }

  // What comes before a bounded function, with its argument's magnitude.
  void scan(Id id, const std::string& largest) {
    const Instruction& it = kernel_.body[id];
    if (it.opcode == Opcode::kStore || it.opcode == Opcode::kLaneStore ||
        it.opcode == Opcode::kPrefetch) {
      return;
    }
    if (!own_function(it).empty()) {
      const std::string bits = dialect_.bitcast(Type::kI32, Type::kF32, v(it.operands[0]));
      line(fmt::format("const i32 m{} = {} & 0x7fffffff;", id, bits));
      line(fmt::format("{0} = m{1} > {0} ? m{1} : {0};", largest, id));
    }
    reach_ = Reach::kNear;
    statement(id, it);
  }

  // Converts a tile between memory and its array, before or after the loop over it.
  void convert(const TileAccess& access, Id loop, const std::string& first) {
    const Instruction& it = kernel_.body[access.id];
    const char* dtype = graft::name_of(kernel_.parameters[it.index].dtype);
    line("{");
    ++indent_;
    line(fmt::format("const {} {} = {};", name_of(kernel_.body[loop].type), v(loop), first));
    for (const Id id : access.position) statement(id, kernel_.body[id]);
    if (it.opcode == Opcode::kLoad) {
      line(fmt::format("graft_f32s_from_{}({}, {} + {});", dtype, t(access.id),
                       memory(it, it.operands[1]), v(it.operands[0])));
    } else {
      line(fmt::format("graft_{}s_from_f32({} + {}, {});", dtype, memory(it, it.operands[2]),
                       v(it.operands[0]), t(access.id)));
    }
    --indent_;
    line("}");
  }

  // Where the loop over a tile has the value of a load or store; empty for what has no tile.
  std::string lane(Id id) const {
    const auto is_it = [id](const TileAccess& access) { return access.id == id; };
    if (std::ranges::none_of(tile_, is_it)) return "";
    return fmt::format("{}[{} - tile{}]", t(id), v(loop_), loop_);
  }

  static std::string v(Id id) { return "v" + std::to_string(id); }
  static std::string t(Id id) { return "t" + std::to_string(id); }
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
        if (is_vector(type_of(c))) return line(vector_store(type_of(c), v(a), v(b), v(c)));
        return line(fmt::format("{}[{}] = {};", v(a), v(b), v(c)));
      case Opcode::kLoad:
        return line(fmt::format("const {} {} = {};", name_of(it.type), v(id),
                                lane(id).empty() ? expression(it) : lane(id)));
      case Opcode::kStore:
        if (!lane(id).empty()) return line(fmt::format("{} = {};", lane(id), v(b)));
        if (is_vector(type_of(b))) return line(vector_store(type_of(b), memory(it, c), v(a), v(b)));
        return line(fmt::format("{}[{}] = {};", memory(it, c), v(a),
                                stored(kernel_.parameters[it.index].dtype, v(b))));
      case Opcode::kPrefetch:
        return prefetch(it);
      case Opcode::kPick:
        return line(pick(id, it));
      case Opcode::kBarrier:
        return line(std::string(dialect_.barrier()));
      case Opcode::kReturn:
        return line(fmt::format("return {};", v(a)));
      case Opcode::kBreak:
        return line(fmt::format("if ({}) break;", v(a)));
      case Opcode::kLoop:
      case Opcode::kIf:
      case Opcode::kElse:
      case Opcode::kEnd:
        return block(id, it);
      default:
        return line(fmt::format("const {} {} = {};", name_of(it.type), v(id), expression(it)));
    }
  }

  void prefetch(const Instruction& it) {
    if (dialect_.prefetch().empty()) return;
    const std::string pointer = memory(it, it.operands[1]);
    line(fmt::format("{}({} + {});", dialect_.prefetch(), pointer, v(it.operands[0])));
  }

  void block(Id id, const Instruction& it) {
    const Id a = it.operands[0], b = it.operands[1], c = it.operands[2];
    if (it.opcode == Opcode::kElse || it.opcode == Opcode::kEnd) --indent_;
    if (it.opcode == Opcode::kEnd) return line("}");
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
      case Opcode::kSubGroup:
        return std::string("graft_sub_group_") + kSubGroups[it.bits];
      case Opcode::kShuffle:
        return fmt::format("graft_shuffle({}, {})", a, b);
      case Opcode::kScalar:
        return "p" + std::to_string(it.index);
      case Opcode::kDiv:
      case Opcode::kRem:
        if (!divides_by_invariant(it)) return division(it.opcode, it.type, a, b);
        return fmt::format("graft_{}_i64({}, {})",
                           it.opcode == Opcode::kDiv ? "quotient" : "remainder", a, b);
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
      case Opcode::kPairDot:
        return fmt::format("graft_pair_dot_{}({}, {}, {})", name_of(it.type), a, b, c);
      case Opcode::kSplat:
        return fmt::format("graft_splat_{}({})", name_of(it.type), a);
      case Opcode::kLoad:
        if (is_vector(it.type)) {
          return fmt::format("graft_load_{}({} + {})", name_of(it.type), memory(it, it.operands[1]),
                             a);
        }
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

  bool divides_by_invariant(const Instruction& it) const {
    const Id divisor = it.operands[1];
    return loop_ != kNoId && divisor < loop_ && it.type == Type::kI64 &&
           kernel_.body[divisor].opcode != Opcode::kConstant &&
           !dialect_.invariant_division().empty();
  }

  static std::string memory(const Instruction& it, Id picked) {
    return picked == kNoId ? "p" + std::to_string(it.index) : v(picked);
  }

  static std::string vector_store(Type type, const std::string& array, const std::string& position,
                                  const std::string& vector) {
    return fmt::format("graft_store_{}({} + {}, {});", name_of(type), array, position, vector);
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
    if (it.bits == kOwnFunction) name = dialect_.far_math(function);
    if (name.empty()) name = fmt::format("graft_{}_{}", name_of(function), name_of(it.type));
    std::string text = name + "(";
    for (int i = 0; i < arity_of(function); ++i) text += (i == 0 ? "" : ", ") + v(it.operands[i]);
    return text + ")";
  }

  const Kernel& kernel_;
  const Dialect& dialect_;
  int indent_;
  Reach reach_ = Reach::kUnknown;
  std::vector<TileAccess> tile_;
  Id loop_ = kNoId;  // the vector loop that is open
  std::string text_;
};

}  // namespace

std::string print_body(const Kernel& kernel, const Dialect& dialect, int indent) {
  return Body(kernel, dialect, indent).text();
}

}  // namespace graft::ir
