// src/codegen/math/special.cpp: error functions.
// Polynomials: tools/fit_polynomials.py.
#include "codegen/math/formulas.h"

namespace graft::ir {

// 1 - 2^log2(1 - erf(t)): the difference is taken before the sum, so that small results stay exact.
Value formula_erf(Value x) {
  const Value magnitude = abs(x);
  const Value exponent =
      magnitude *
      polynomial(magnitude, {-1.6279070306240033, -0.9184480993529591, -0.14826866672831518,
                             0.027579333085638393, 0.0003849826239822135, -0.002642873548759484,
                             0.001121466099296924, -0.000274343176894149, 4.21474118798952e-05,
                             -3.7767483595194184e-06, 1.5081489079693673e-07});
  // From there on the result rounds to 1.
  return copysign(select(magnitude > 3.95, 1.0, -exp2m1_bounded(exponent)), x);
}

Value upper_tail(Value t) {
  const Value exponent =
      polynomial(t, {-0.99999997280901483, -1.1511054864437837, -0.45921276337323483,
                     -0.052455773614062001, 0.0069490193504921364, 1.9687857803231985e-5,
                     -0.00030374716142517097, 8.9803038489606005e-5, -1.5063265114551807e-5,
                     1.5751518493643631e-6, -9.5695846179461525e-8, 2.5865073816390626e-9});
  return exp2_bounded(exponent);
}

Value formula_erfc(Value x) {
  const Value wide = cast(Type::kF64, abs(x));
  const Value bounded = select(wide > 10.5, 10.5, wide);
  const Value t = (bounded - 2) / (bounded + 2);
  const Value scaled =
      polynomial(t, {0.25539567629842547, -0.4271858475226241, 0.24165819590915542,
                     -0.078978574706547271, 0.0037328565235946136, 0.0069973524653886819,
                     -0.00084688151215933345, -0.00098115302396913382, 4.2873539694682597e-5,
                     0.00017135578205384348, 2.7399419871012906e-5, -2.2498617665045086e-5,
                     -1.0806502505533155e-5, -1.3206940770003205e-6});
  const Value tail = exp_wide(-bounded * bounded) * scaled;
  return cast(Type::kF32, select(x < 0, 2 - tail, tail));
}

}  // namespace graft::ir
