// drivers/host/onednn/matmul.cpp: plans of matrix products.
#include "matmul.h"

#include <string_view>

#include "tensor.h"

namespace graft::host {
namespace {

using dnnl::memory;
using Slot = LibraryPlan::Slot;

// Whether the last two dimensions are a matrix with one dense dimension, as a BLAS takes it.
bool is_matrix(const graft_tensor& t) {
  const int64_t* size = t.sizes + t.rank - 2;
  const int64_t* stride = t.strides + t.rank - 2;
  bool rows = (stride[1] == 1 || size[1] == 1) && (stride[0] >= size[1] || size[0] == 1);
  bool columns = (stride[0] == 1 || size[0] == 1) && (stride[1] >= size[0] || size[1] == 1);
  return rows || columns;
}

bool is_row_major(const graft_tensor& t) {
  const int64_t* size = t.sizes + t.rank - 2;
  const int64_t* stride = t.strides + t.rank - 2;
  return stride[1] == 1 && (stride[0] >= size[1] || size[0] == 1);
}

// A dimension of size 1 may carry any stride; oneDNN wants a plausible one.
graft_tensor with_plain_strides(graft_tensor t) {
  int64_t* size = t.sizes + t.rank - 2;
  int64_t* stride = t.strides + t.rank - 2;
  if (size[1] == 1 && size[0] == 1) {
    stride[0] = stride[1] = 1;
  } else if (size[1] == 1) {
    if (stride[0] == 1) stride[1] = size[0];
    if (stride[0] != 1) stride[1] = 1;
  } else if (size[0] == 1) {
    if (stride[1] == 1) stride[0] = size[1];
    if (stride[1] != 1) stride[0] = 1;
  }
  if (t.rank == 3 && t.sizes[0] == 1) t.strides[0] = size[0] * size[1];
  // A batch that is one matrix for all.
  if (t.rank == 3 && t.strides[0] == 0) {
    t.sizes[0] = 1;
    t.strides[0] = size[0] * size[1];
  }
  return t;
}

graft_tensor transposed(graft_tensor t) {
  std::swap(t.sizes[t.rank - 2], t.sizes[t.rank - 1]);
  std::swap(t.strides[t.rank - 2], t.strides[t.rank - 1]);
  return t;
}

// The operand's slot; a layout that no BLAS takes is copied to a dense one first.
Slot input(LibraryPlan& plan, uint32_t index, const graft_tensor& t) {
  Slot given = plan.tensor(index, laid_out(t));
  if (is_matrix(t)) return given;
  Slot copied = plan.scratch(dense(t));
  plan.reorder(given, copied);
  return copied;
}

// Of oneDNN's two float32 products the packing one ("gemm") wins on vectors and on large matrices
// whose second factor is row-major, by up to 2x; its first choice ("brg") wins elsewhere.
bool wants_gemm(const graft_tensor& a, const graft_tensor& b, const graft_tensor& c) {
  if (a.dtype != GRAFT_FLOAT32 || b.dtype != GRAFT_FLOAT32 || c.dtype != GRAFT_FLOAT32)
    return false;
  int64_t rows = c.sizes[c.rank - 2], columns = c.sizes[c.rank - 1];
  int64_t batches = c.rank == 3 ? c.sizes[0] : 1, products = rows * columns * a.sizes[a.rank - 1];
  if (batches == 1 && (rows == 1 || columns == 1)) return true;
  return is_row_major(b) && products >= (batches == 1 ? int64_t{1} << 23 : int64_t{1} << 26);
}

using Description = dnnl::matmul::primitive_desc;

// The library's own choice, or its packing implementation where that is wanted and offered.
template <class Make>
Description choose(bool gemm, Make make) {
  Description chosen = make();
  if (!gemm) return chosen;
  Description other = make();
  do {
    if (std::string_view(other.impl_info_str()).starts_with("gemm")) return other;
  } while (other.next_impl());
  return chosen;
}

void check(const graft_matmul& m) {
  bool ranks = m.a.rank == m.b.rank && m.b.rank == m.c.rank && (m.c.rank == 2 || m.c.rank == 3);
  if (!ranks || m.epilogue_count > GRAFT_MAX_EPILOGUES) throw Unsupported{"these ranks"};
  check_bytes(m.a, m.b);
}

}  // namespace

std::unique_ptr<LibraryPlan> plan_matmul(const graft_matmul& m) { return plan_product(m, false); }

std::unique_ptr<LibraryPlan> plan_product(const graft_matmul& m, bool reads_addend) {
  check(m);
  auto plan = std::make_unique<LibraryPlan>();
  graft_tensor a = with_plain_strides(m.a), b = with_plain_strides(m.b);
  graft_tensor c = with_plain_strides(m.c);
  uint32_t a_index = 0, b_index = 1;
  // A column-major result is the row-major result of the transposed product.
  if (!is_row_major(c) && is_row_major(transposed(c)) && m.epilogue_count == 0) {
    c = transposed(c);
    std::swap(a, b);
    a = transposed(a);
    b = transposed(b);
    std::swap(a_index, b_index);
  }
  Slot from_a = input(*plan, a_index, a), from_b = input(*plan, b_index, b);
  Slot given_c = plan->tensor(2, laid_out(c));
  Slot to_c = is_row_major(c) ? given_c : plan->scratch(dense(c));
  Epilogues epilogues = translate({m.epilogues, m.epilogue_count}, c,
                                  {c.rank - 1, c.rank, reads_addend}, m.math_mode);

  memory::desc none;
  Description description = choose(wants_gemm(a, b, c), [&] {
    return Description(engine(), plan->desc(from_a), plan->desc(from_b),
                       epilogues.bias.value_or(none), plan->desc(to_c), epilogues.attributes);
  });
  std::vector<std::pair<int, Slot>> arguments = {
      {DNNL_ARG_SRC, from_a}, {DNNL_ARG_WEIGHTS, from_b}, {DNNL_ARG_DST, to_c}};
  if (epilogues.bias) arguments.emplace_back(DNNL_ARG_BIAS, plan->operand(0, *epilogues.bias));
  for (const auto& binary : epilogues.binaries) {
    arguments.emplace_back(binary.argument, plan->operand(binary.operand, binary.desc));
  }
  if (epilogues.sum) {
    graft_tensor added = c;
    added.dtype = m.epilogues[*epilogues.sum].dtype;
    plan->reorder(plan->operand(*epilogues.sum, laid_out(added)), to_c);
  }
  arguments.emplace_back(DNNL_ARG_SCRATCHPAD, plan->scratch(description.scratchpad_desc()));
  plan->add(dnnl::matmul(description), std::move(arguments));
  if (to_c != given_c) plan->reorder(to_c, given_c);
  return plan;
}

}  // namespace graft::host
