// src/kernels/matmul/vendor_products.cpp: products that vendors may have kernels for.
#include "kernels/matmul/vendor_products.h"

#include "kernels/operation/offer.h"

namespace graft {

bool knows_grouped_matmul(Stream& stream) { return offers(stream, Operation::grouped_matmul); }

bool grouped_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const TensorView& b, const TensorView* offsets) {
  return offer(stream, Operation::grouped_matmul,
               [&](VendorCall& to) { to.write(output).read(a).read(b).read(offsets); });
}

}  // namespace graft
