// src/torch/ops/nonzero.cpp: the positions of elements that are not zero.
#include <ATen/ops/empty.h>

#include "kernels/sort/compaction.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/resize.h"

namespace graft::binding {
namespace {

// The tensor's elements one after the other, in a dtype that kernels compare with 0.
at::Tensor marks_of(const at::Tensor& self) {
  return (self.is_complex() ? self.ne(0) : self.resolve_neg()).contiguous();
}

// Writes the first limit positions into out, [limit or more, rank].
void write_positions(Compaction& found, const at::Tensor& self, const at::Tensor& out,
                     int64_t limit) {
  found.positions(view_of(out), static_cast<int>(self.dim()), self.sizes().data(), limit);
}

// How many there are. Waits for the device, which alone knows.
int64_t counted(Compaction& found, const at::Tensor& self) {
  const at::Tensor count = at::empty({}, self.options().dtype(at::kLong));
  found.count(view_of(count));
  return count.item<int64_t>();
}

void check_positions_dtype(const char* name, const at::Tensor& out) {
  TORCH_CHECK(out.scalar_type() == at::kLong, name, ": Expected out tensor to have scalar type ",
              at::kLong, " but got scalar type ", out.scalar_type());
}

}  // namespace

at::Tensor& GRAFT_OPERATOR(nonzero_out)(const at::Tensor& self, at::Tensor& out) {
  check_positions_dtype("nonzero", out);
  require_separate(out, {&self});
  const at::Tensor marks = marks_of(self);
  Compaction found(stream_of(self), view_of(marks));
  const int64_t rows = counted(found, self);
  native::resize_output(out, {rows, self.dim()});
  write_positions(found, self, out, rows);
  return out;
}

// The coordinates of one dimension lie side by side, as the CPU's and CUDA's do: PyTorch's sparse
// kernels rely on it.
at::Tensor GRAFT_OPERATOR(nonzero)(const at::Tensor& self) {
  const at::Tensor marks = marks_of(self);
  Compaction found(stream_of(self), view_of(marks));
  const int64_t rows = counted(found, self);
  const at::Tensor out = at::empty({self.dim(), rows}, self.options().dtype(at::kLong)).t();
  write_positions(found, self, out, rows);
  return out;
}

at::Tensor& GRAFT_OPERATOR(nonzero_static_out)(const at::Tensor& self, int64_t size,
                                               int64_t fill_value, at::Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  check_positions_dtype("nonzero_static", out);
  require_separate(out, {&self});
  native::resize_output(out, {size, self.dim()});
  out.fill_(fill_value);
  const at::Tensor marks = marks_of(self);
  Compaction found(stream_of(self), view_of(marks));
  write_positions(found, self, out, size);
  return out;
}

at::Tensor GRAFT_OPERATOR(nonzero_static)(const at::Tensor& self, int64_t size,
                                          int64_t fill_value) {
  at::Tensor out = at::empty({0}, self.options().dtype(at::kLong));
  return GRAFT_OPERATOR(nonzero_static_out)(self, size, fill_value, out);
}

}  // namespace graft::binding
