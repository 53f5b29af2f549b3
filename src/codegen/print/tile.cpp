// src/codegen/print/tile.cpp: finds the accesses of a loop that lie side by side.
#include "codegen/print/tile.h"

#include <algorithm>

namespace graft::ir {
namespace {

// How a value changes from one iteration of the loop to the next.
enum class Step : uint8_t { kNone, kOne, kOther };

class Positions {
 public:
  Positions(const Kernel& kernel, Id loop) : kernel_(kernel), loop_(loop) {}

  Step step_of(Id id) const {
    if (id == loop_) return Step::kOne;
    if (id < loop_) return Step::kNone;
    const Instruction& it = kernel_.body[id];
    switch (it.opcode) {
      case Opcode::kConstant:
      case Opcode::kScalar:
      case Opcode::kItem:
        return Step::kNone;
      case Opcode::kAdd: {
        const Step a = step_of(it.operands[0]), b = step_of(it.operands[1]);
        if (a == Step::kNone) return b;
        return b == Step::kNone ? a : Step::kOther;
      }
      case Opcode::kSub:
        return step_of(it.operands[1]) == Step::kNone ? step_of(it.operands[0]) : Step::kOther;
      case Opcode::kMul:
        return step_of(it.operands[0]) == Step::kNone && step_of(it.operands[1]) == Step::kNone
                   ? Step::kNone
                   : Step::kOther;
      case Opcode::kPick:
        return step_of(it.operands[0]);
      case Opcode::kCast:
        return it.type == Type::kI64 ? step_of(it.operands[0]) : Step::kOther;
      default:
        return Step::kOther;
    }
  }

  // The instructions of the loop's body that a value is computed from, itself included.
  void collect(Id id, std::vector<Id>& into) const {
    if (id == kNoId || id <= loop_) return;
    if (std::find(into.begin(), into.end(), id) != into.end()) return;
    for (const Id operand : kernel_.body[id].operands) collect(operand, into);
    into.push_back(id);
  }

 private:
  const Kernel& kernel_;
  const Id loop_;
};

}  // namespace

std::vector<TileAccess> tile_accesses(const Kernel& kernel, Id loop, Id after,
                                      const Dialect& dialect) {
  const Positions positions(kernel, loop);
  std::vector<TileAccess> accesses;
  for (Id id = loop + 1; id < after; ++id) {
    const Instruction& it = kernel.body[id];
    if (it.opcode != Opcode::kLoad && it.opcode != Opcode::kStore) continue;
    if (dialect.tile_functions(kernel.parameters[it.index].dtype).empty()) continue;
    const Id picked = it.operands[it.opcode == Opcode::kLoad ? 1 : 2];
    if (positions.step_of(it.operands[0]) != Step::kOne) continue;
    if (picked != kNoId && positions.step_of(picked) != Step::kNone) continue;
    TileAccess access{id, {}};
    positions.collect(it.operands[0], access.position);
    positions.collect(picked, access.position);
    accesses.push_back(std::move(access));
  }
  return accesses;
}

}  // namespace graft::ir
