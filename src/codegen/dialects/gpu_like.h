// src/codegen/dialects/gpu_like.h: what the dialects of GPU-like devices share.
#pragma once

#include <string>

#include "codegen/math/math.h"
#include "codegen/print/dialect.h"
#include "codegen/print/printer.h"

namespace graft::ir {

// A kernel takes its parameters in order, scalars by their bits. Where a launch is always whole
// groups "u64 items" follows, the number of work-items of the grid, which a driver may round up.
// Kernels with a barrier are launched on whole groups, because the work-items beyond leave at once.
class GpuLike : public Dialect {
 public:
  explicit GpuLike(const char* name) : Dialect(name, Family::kGpuLike) {}

  std::string open_kernel(const Kernel& kernel) const override {
    std::string text = std::string(kernel_qualifier()) + "void " + kernel.name + "(", setup;
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const Parameter& parameter = kernel.parameters[i];
      const std::string p = "p" + std::to_string(i), bits = p + "_bits";
      const std::string stored = storage_type(parameter.dtype);
      if (parameter.is_address) {
        text += this->parameter(stored, i) + ", ";
        setup += bound(stored, i);
        continue;
      }
      text += stored + " " + bits + ", ";
      setup += std::string("  const ") + name_of(compute_type(parameter.dtype)) + " " + p + " = " +
               loaded(parameter.dtype, bits) + ";\n";
    }
    if (rounds_up()) {
      text += "u64 items, ";
      setup = "  if (item >= (i64)items) return;\n" + setup;
    }
    if (text.ends_with(", ")) text.resize(text.size() - 2);
    return text + ") {\n  const i64 item = " + std::string(grid_item()) + ";\n" + setup;
  }

  // The language's own where math.h has no definition, whose bounds its float32 need not keep.
  std::string math(Math function, Type type) const override {
    if (is_defined(function, type)) return "";
    if (function == Math::k_abs) return "fabs";
    return function == Math::k_round ? "rint" : name_of(function);
  }
  std::string far_math(Math function) const override { return name_of(function); }

 protected:
  // An address among the parameters, and the line that makes p<i> of it where it is not p<i> yet.
  virtual std::string parameter(const std::string& type, size_t i) const {
    return type + "* p" + std::to_string(i);
  }
  virtual std::string bound(const std::string& /*type*/, size_t /*i*/) const { return ""; }
  virtual bool rounds_up() const { return true; }
  virtual std::string_view kernel_qualifier() const = 0;
  virtual std::string_view grid_item() const = 0;  // index of the work-item, any type
};

}  // namespace graft::ir
