// src/codegen/print/printer.cpp: prints kernels as programs of a dialect.
#include "codegen/print/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "codegen/math/math.h"
#include "codegen/print/statement_printer.h"
#include "runtime/driver/dtype.h"

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

// The functions that kernels call, each once and before its first use.
class Functions {
 public:
  explicit Functions(const Dialect& dialect) : dialect_(dialect) {}

  void add_used_by(const Kernel& kernel) {
    for (const Parameter& parameter : kernel.parameters) {
      if (!is_half(parameter.dtype)) continue;
      const bool tiles = parameter.is_address && !dialect_.tile_functions(parameter.dtype).empty();
      const bool written = parameter.access & GRAFT_ACCESS_WRITE;
      const bool read = !parameter.is_address || parameter.access & GRAFT_ACCESS_READ;
      if (read || tiles) add(define_load(parameter.dtype));
      if (written || tiles) add(define_store(parameter.dtype));
      if (tiles) add_tiles(parameter.dtype);
    }
    for (const Instruction& it : kernel.body) {
      if (it.opcode != Opcode::kMath || it.bits == kOwnFunction) continue;
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

  void add_tiles(graft_dtype dtype) {
    if (names_.insert(graft::name_of(dtype)).second) text_ += dialect_.tile_functions(dtype);
  }

  std::string definition(const Kernel& function) const {
    std::string head = fmt::format("{}{} {}(", dialect_.function_qualifier(),
                                   name_of(function.result), function.name);
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      head += fmt::format("{}{} p{}", i == 0 ? "" : ", ",
                          storage_type(function.parameters[i].dtype), i);
    }
    return head + ") {\n" + print_body(function, dialect_, 1) + "}\n";
  }

  const Dialect& dialect_;
  std::set<std::string> names_;
  std::string text_;
};

// What the program's vectors need; throws where the dialect has none.
std::string_view vectors_of(const std::vector<Kernel>& kernels, const Dialect& dialect) {
  for (const Kernel& kernel : kernels) {
    const auto wide = [](const Instruction& it) { return is_vector(it.type); };
    if (std::ranges::none_of(kernel.body, wide)) continue;
    if (!dialect.vectors().empty()) return dialect.vectors();
    throw std::logic_error("kernel " + kernel.name + " has vectors, but dialect " + dialect.name() +
                           " lacks them");
  }
  return "";
}

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
    bodies += dialect.open_kernel(kernel) + print_body(kernel, dialect, indent);
    bodies += dialect.close_kernel();
  }
  return fmt::format("{}{}{}{}{}", dialect.head(), dialect.invariant_division(),
                     vectors_of(kernels, dialect), functions.text(), bodies);
}

std::string print(const Kernel& kernel, const Dialect& dialect) {
  return print(std::vector<Kernel>{kernel}, dialect);
}

}  // namespace graft::ir
