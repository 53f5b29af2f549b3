// tests/vendor/graph_chip/moves.cpp: copies, fills, and elements by index.
#include <algorithm>

#include "call.h"

namespace chip {

namespace {

void fill(const Tensor& to, double value) {
  each(to.sizes, [&](const Sizes& i) { to.set(to.at(i), value); });
}

void copy(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  each(out.sizes, [&](const Sizes& i) { out.set(out.at(i), in.get(in.at(i))); });
}

// The same elements in other sizes.
void reshape(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  std::vector<int64_t> places;
  each(in.sizes, [&](const Sizes& i) { places.push_back(in.at(i)); });
  size_t next = 0;
  each(out.sizes, [&](const Sizes& i) { out.set(out.at(i), in.get(places[next++])); });
}

void zeros(const Call& call) { fill(call.result(), 0); }
void ones(const Call& call) { fill(call.result(), 1); }
void full(const Call& call) { fill(call.result(), call.number(1, "fill_value", 0)); }
void scalar(const Call& call) { fill(call.result(), call.number(0, "s", 0)); }

void arange(const Call& call) {
  const bool two =
      call.node().op == "aten.arange.start_step" || call.node().op == "aten.arange.start";
  const double begin = two ? call.number(0, "start", 0) : 0, step = call.number(2, "step", 1);
  const Tensor& out = call.result();
  for (int64_t i = 0; i < out.sizes[0]; ++i) {
    out.set(i * out.strides[0], begin + static_cast<double>(i) * (two ? step : 1));
  }
}

void cat(const Call& call) {
  const Tensor& out = call.result();
  const int64_t given = call.integer(1, "dim", 0);
  const auto d = static_cast<size_t>(given < 0 ? given + out.rank() : given);
  int64_t begin = 0;
  for (const Tensor* in : call.tensors(0)) {
    if (in->sizes.size() == 1 && in->sizes[0] == 0) continue;
    each(in->sizes,
         [&](const Sizes& i) { out.set(out.at(i) + begin * out.strides[d], in->get(in->at(i))); });
    begin += in->sizes[d];
  }
}

void embedding(const Call& call) {
  const Tensor &table = call[0], &rows = call[1], &out = call.result();
  each(out.sizes, [&](const Sizes& i) {
    const Sizes at(i.begin(), i.end() - 1);
    const auto row = static_cast<int64_t>(rows.get(rows.at(at)));
    out.set(out.at(i), table.get(row * table.strides[0] + i.back() * table.strides[1]));
  });
}

// (gradient, rows, count, padding row)
void embedding_backward(const Call& call) {
  const Tensor &grad = call[0], &rows = call[1], &out = call.result();
  const int64_t padding = call.integer(3, "padding_idx", -1);
  fill(out, 0);
  each(grad.sizes, [&](const Sizes& i) {
    const Sizes at(i.begin(), i.end() - 1);
    const auto row = static_cast<int64_t>(rows.get(rows.at(at)));
    if (row == padding) return;
    const int64_t to = row * out.strides[0] + i.back() * out.strides[1];
    out.set(to, out.get(to) + grad.get(grad.at(i)));
  });
}

// Elements by indices of the first dimensions.
void index(const Call& call) {
  const Tensor &in = call[0], &out = call.result();
  const std::vector<const Tensor*> indices = call.tensors(1);
  const size_t rest = in.sizes.size() - indices.size();
  each(out.sizes, [&](const Sizes& i) {
    const Sizes at(i.begin(), i.end() - static_cast<ptrdiff_t>(rest));
    int64_t from = 0;
    for (size_t d = 0; d < in.sizes.size(); ++d) {
      auto k = d < indices.size() ? static_cast<int64_t>(indices[d]->get(indices[d]->at(at)))
                                  : i[at.size() + d - indices.size()];
      from += (k < 0 ? k + in.sizes[d] : k) * in.strides[d];
    }
    out.set(out.at(i), in.get(from));
  });
}

// (gradient, sizes, dim, start, end, step)
void slice_backward(const Call& call) {
  const Tensor &grad = call[0], &out = call.result();
  int64_t dim = call.integer(2, "dim", 0), begin = call.integer(3, "start", 0);
  if (dim < 0) dim += out.rank();
  const auto d = static_cast<size_t>(dim);
  if (begin < 0) begin = std::max<int64_t>(begin + out.sizes[d], 0);
  const int64_t step = call.integer(5, "step", 1);
  fill(out, 0);
  each(grad.sizes, [&](const Sizes& i) {
    Sizes to = i;
    to[d] = begin + i[d] * step;
    out.set(out.at(to), grad.get(grad.at(i)));
  });
}

}  // namespace

void add_moves(Kernels* kernels) {
  kernels->insert({{"aten.clone.default", copy},
                   {"aten._to_copy.default", copy},
                   {"aten.expand.default", copy},
                   {"aten._unsafe_view.default", reshape},
                   {"aten.view.default", reshape},
                   {"aten.reshape.default", reshape},
                   {"aten.zeros.default", zeros},
                   {"aten.zeros_like.default", zeros},
                   {"aten.new_zeros.default", zeros},
                   {"aten.ones.default", ones},
                   {"aten.ones_like.default", ones},
                   {"aten.new_ones.default", ones},
                   {"aten.full.default", full},
                   {"aten.full_like.default", full},
                   {"aten.scalar_tensor.default", scalar},
                   {"aten.arange.default", arange},
                   {"aten.arange.start", arange},
                   {"aten.arange.start_step", arange},
                   {"aten.cat.default", cat},
                   {"aten.embedding.default", embedding},
                   {"aten.embedding_dense_backward.default", embedding_backward},
                   {"aten.index.Tensor", index},
                   {"aten.slice_backward.default", slice_backward}});
}

const Kernels& all_kernels() {
  static const Kernels kernels = [] {
    Kernels all;
    add_pointwise(&all), add_reductions(&all), add_products(&all), add_convolutions(&all);
    add_moves(&all);
    return all;
  }();
  return kernels;
}

}  // namespace chip
