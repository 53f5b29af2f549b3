// src/codegen/ir/verifier.cpp: checks that a kernel is legal before it is printed.
#include "codegen/ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace graft::ir {

namespace {

// Sets of types.
constexpr uint8_t kBools = 1, kIntegers = 2, kFloats = 4, kAny = kBools | kIntegers | kFloats;
constexpr uint8_t kBits = kBools | kIntegers, kNumbers = kIntegers | kFloats;
constexpr uint8_t kFloatVectors = 8, kIntegerVectors = 16;
constexpr uint8_t kVectors = kFloatVectors | kIntegerVectors;

// How the types of an instruction and its operands go together.
enum class Rule : uint8_t {
  kLeaf,       // no operand; a result
  kSame,       // all operands have the result's type
  kCompares,   // two operands of one type; the result is bool
  kSelects,    // bool, then two of the result's type
  kConverts,   // any operand
  kSpreads,    // one operand, the vector's element
  kPicks,      // an i64; the parameters are addresses alike
  kIndexes,    // first operand is an i32 or i64 position; the result or value is what is stored
  kNames,      // first operand names a variable or an array of the same type
  kLoops,      // three operands of an integer type
  kTests,      // one bool
  kExchanges,  // the result's type, of 4 bytes or 8, and an i32
  kMark        // nothing to check
};

struct Legal {
  Opcode opcode;
  Rule rule;
  uint8_t types;  // of the result; of the operands where it compares
  bool gpu_like_only = false;
};

// The legal language. An opcode that is not here is not legal.
constexpr Legal kLegal[] = {
    {Opcode::kConstant, Rule::kLeaf, kAny},
    {Opcode::kItem, Rule::kLeaf, kIntegers},
    {Opcode::kScalar, Rule::kLeaf, kAny},
    {Opcode::kAdd, Rule::kSame, kNumbers | kVectors},
    {Opcode::kSub, Rule::kSame, kNumbers | kVectors},
    {Opcode::kMul, Rule::kSame, kNumbers | kFloatVectors},
    {Opcode::kDiv, Rule::kSame, kNumbers},
    {Opcode::kRem, Rule::kSame, kIntegers},
    {Opcode::kAnd, Rule::kSame, kBits | kIntegerVectors},
    {Opcode::kOr, Rule::kSame, kBits | kIntegerVectors},
    {Opcode::kXor, Rule::kSame, kBits | kIntegerVectors},
    {Opcode::kShl, Rule::kSame, kIntegers},
    {Opcode::kShr, Rule::kSame, kIntegers | kIntegerVectors},
    {Opcode::kEq, Rule::kCompares, kAny},
    {Opcode::kNe, Rule::kCompares, kAny},
    {Opcode::kLt, Rule::kCompares, kAny},
    {Opcode::kLe, Rule::kCompares, kAny},
    {Opcode::kNeg, Rule::kSame, kNumbers},
    {Opcode::kNot, Rule::kSame, kBits},
    {Opcode::kSelect, Rule::kSelects, kAny},
    {Opcode::kCast, Rule::kConverts, kAny},
    {Opcode::kBitcast, Rule::kConverts, kNumbers},
    {Opcode::kMath, Rule::kSame, kNumbers},
    {Opcode::kPick, Rule::kPicks, kAny},
    {Opcode::kLoad, Rule::kIndexes, kAny | kVectors},
    {Opcode::kStore, Rule::kIndexes, kAny | kVectors},
    {Opcode::kPrefetch, Rule::kIndexes, kAny},
    {Opcode::kVariable, Rule::kSame, kAny | kVectors},
    {Opcode::kGet, Rule::kNames, kAny | kVectors},
    {Opcode::kSet, Rule::kNames, kAny | kVectors},
    {Opcode::kLanes, Rule::kLeaf, kAny},
    {Opcode::kLaneLoad, Rule::kNames, kAny},
    {Opcode::kLaneStore, Rule::kNames, kAny | kVectors},
    {Opcode::kLoop, Rule::kLoops, kIntegers},
    {Opcode::kVectorLoop, Rule::kLoops, kIntegers},
    {Opcode::kBreak, Rule::kTests, kBools},
    {Opcode::kIf, Rule::kTests, kBools},
    {Opcode::kElse, Rule::kMark, 0},
    {Opcode::kEnd, Rule::kMark, 0},
    {Opcode::kReturn, Rule::kMark, 0},
    {Opcode::kLocalItem, Rule::kLeaf, kIntegers, true},
    {Opcode::kLocalMemory, Rule::kLeaf, kAny, true},
    {Opcode::kBarrier, Rule::kMark, 0, true},
    {Opcode::kSubGroup, Rule::kLeaf, kIntegers, true},
    {Opcode::kShuffle, Rule::kExchanges, kNumbers, true},
    {Opcode::kSplat, Rule::kSpreads, kVectors},
    {Opcode::kPairDot, Rule::kSame, kIntegerVectors},
};

uint8_t set_of(Type type) {
  if (type == Type::kBool) return kBools;
  if (is_integer(type)) return kIntegers;
  if (is_vector(type)) return element_of(type) == Type::kI32 ? kIntegerVectors : kFloatVectors;
  return is_float(type) ? kFloats : 0;
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel), visible_(kernel.body.size(), false) {}

  void run() {
    for (at_ = 0; at_ < kernel_.body.size(); ++at_) check(kernel_.body[at_]);
    if (!blocks_.empty()) reject("a loop or an if is not closed");
    const bool returns = !kernel_.body.empty() && kernel_.body.back().opcode == Opcode::kReturn;
    if (returns != (kernel_.result != Type::kVoid)) reject("a function ends in its one return");
    for (const Parameter& parameter : kernel_.parameters) {
      if (kernel_.result != Type::kVoid && parameter.is_address) reject("functions take scalars");
    }
  }

 private:
  struct Block {
    Opcode opcode;
    size_t first;  // its first instruction
  };

  [[noreturn]] void reject(const std::string& rule) const {
    const char* text = at_ < kernel_.body.size() ? name_of(kernel_.body[at_].opcode) : "end";
    throw std::logic_error(
        fmt::format("kernel {}: instruction {} ({}): {}", kernel_.name, at_, text, rule));
  }
  void require(bool condition, const char* rule) const {
    if (!condition) reject(rule);
  }

  void check(const Instruction& it) {
    const Legal* legal = std::ranges::find(kLegal, it.opcode, &Legal::opcode);
    require(legal != std::end(kLegal), "unknown instruction");
    require(!legal->gpu_like_only || kernel_.family == Family::kGpuLike,
            "barriers, local memory and sub-groups belong to the GPU-like family");
    int operands = operands_of(it.opcode);
    if (it.opcode == Opcode::kMath) operands = arity_of(static_cast<Math>(it.index));
    for (int i = 0; i < operands; ++i) {
      require(it.operands[i] < at_, "an operand is missing or comes later");
      require(visible_[it.operands[i]], "an operand's block is already closed");
    }
    types(it, *legal, operands);
    nesting(it);
    visible_[at_] = true;
  }

  Type operand(const Instruction& it, int i) const { return kernel_.body[it.operands[i]].type; }

  void types(const Instruction& it, const Legal& legal, int operands) const {
    const Type type = legal.rule == Rule::kCompares || legal.rule == Rule::kTests ? operand(it, 0)
                      : it.opcode == Opcode::kStore                               ? operand(it, 1)
                      : it.opcode == Opcode::kSet                                 ? operand(it, 1)
                      : it.opcode == Opcode::kLaneStore                           ? operand(it, 2)
                                                                                  : it.type;
    if (legal.rule != Rule::kMark) {
      require((set_of(type) & legal.types) != 0, "not defined for this type");
    }
    switch (legal.rule) {
      case Rule::kSame:
      case Rule::kCompares:
      case Rule::kLoops:
        for (int i = 0; i < operands; ++i)
          require(operand(it, i) == type, "the operands' types differ");
        break;
      case Rule::kSelects:
        require(operand(it, 0) == Type::kBool, "the condition is not a bool");
        require(operand(it, 1) == type && operand(it, 2) == type, "the operands' types differ");
        break;
      case Rule::kExchanges:
        require(operand(it, 0) == type && operand(it, 1) == Type::kI32,
                "the operands' types differ");
        require(bytes_of(type) >= 4, "not defined for this type");
        break;
      case Rule::kSpreads:
        require(operand(it, 0) == element_of(type), "the operand is not the vector's element");
        break;
      case Rule::kPicks:
        alike(it);
        break;
      case Rule::kIndexes:
        memory(it, type);
        break;
      case Rule::kNames:
        names(it, type);
        break;
      default:
        break;
    }
    if (it.opcode == Opcode::kBitcast) {
      require(bytes_of(operand(it, 0)) == bytes_of(it.type), "sizes differ");
    }
  }

  void memory(const Instruction& it, Type type) const {
    require(it.index < kernel_.parameters.size(), "the parameter does not exist");
    const Parameter& parameter = kernel_.parameters[it.index];
    const uint32_t access = it.opcode == Opcode::kStore ? GRAFT_ACCESS_WRITE : GRAFT_ACCESS_READ;
    require(parameter.is_address && (parameter.access & access) != 0,
            "the parameter was not declared for this access");
    require(compute_type(parameter.dtype) == element_of(type),
            "the value is not of the parameter's type");
    require(!is_vector(type) || parameter.dtype == GRAFT_FLOAT32 || parameter.dtype == GRAFT_INT32,
            "vectors are of float32 and int32 only");
    require(operand(it, 0) == Type::kI64 || operand(it, 0) == Type::kI32,
            "positions are i64 or i32");
    const Id picked = it.operands[operands_of(it.opcode)];
    if (picked == kNoId) return;
    require(picked < at_ && visible_[picked], "the pick comes later or its block is closed");
    const Instruction& pick = kernel_.body[picked];
    require(pick.opcode == Opcode::kPick && pick.index == it.index, "not a pick of this parameter");
  }

  void alike(const Instruction& it) const {
    require(it.bits > 0 && it.index + it.bits <= kernel_.parameters.size(),
            "the parameters do not exist");
    const Parameter& first = kernel_.parameters[it.index];
    for (uint64_t i = 0; i < it.bits; ++i) {
      const Parameter& parameter = kernel_.parameters[it.index + i];
      require(parameter.is_address && parameter.dtype == first.dtype &&
                  parameter.access == first.access,
              "picked parameters are addresses of one dtype and access");
    }
    require(operand(it, 0) == Type::kI64, "the position is not an i64");
    require(compute_type(first.dtype) == it.type, "the type is not the parameters'");
  }

  void names(const Instruction& it, Type type) const {
    const Instruction& named = kernel_.body[it.operands[0]];
    const bool variable = it.opcode == Opcode::kGet || it.opcode == Opcode::kSet;
    const bool right = variable
                           ? named.opcode == Opcode::kVariable
                           : named.opcode == Opcode::kLanes || named.opcode == Opcode::kLocalMemory;
    const Type held = it.opcode == Opcode::kLaneStore ? element_of(type) : type;
    require(right && named.type == held, "not a variable or array of this type");
  }

  void nesting(const Instruction& it) {
    const bool loop = it.opcode == Opcode::kLoop || it.opcode == Opcode::kVectorLoop;
    const bool inside = !blocks_.empty() && blocks_.back().opcode == Opcode::kVectorLoop;
    if (loop || it.opcode == Opcode::kIf) {
      require(!inside, "a vector loop holds no loop and no if");
      blocks_.push_back({it.opcode, at_});
    } else if (it.opcode == Opcode::kBreak) {
      require(!blocks_.empty() && blocks_.back().opcode == Opcode::kLoop, "no loop to leave");
    } else if (it.opcode == Opcode::kElse) {
      require(!blocks_.empty() && blocks_.back().opcode == Opcode::kIf, "no if to belong to");
      leave();
      blocks_.push_back({Opcode::kElse, at_});
    } else if (it.opcode == Opcode::kEnd) {
      require(!blocks_.empty(), "no loop and no if to close");
      leave();
    }
  }

  void leave() {
    for (size_t i = blocks_.back().first; i < at_; ++i) visible_[i] = false;
    blocks_.pop_back();
  }

  const Kernel& kernel_;
  std::vector<bool> visible_;
  std::vector<Block> blocks_;
  size_t at_ = 0;
};

}  // namespace

void verify(const Kernel& kernel) { Verifier(kernel).run(); }

}  // namespace graft::ir
