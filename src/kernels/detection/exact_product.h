// src/kernels/detection/exact_product.h: products that are rounded before anything is added.
#pragma once

#include "codegen/ir/builder.h"

namespace graft {

// a * b. Compilers join a product and the sum behind it into one rounding; a position that is cut
// to an integer, or compared with a limit, would fall on the other side then.
inline ir::Value exact_product(ir::Value a, ir::Value b) { return fma(a, b, ir::like(a, 0)); }

}  // namespace graft
