// src/kernels/matmul/tiled_matmul.cpp: the generated matrix product in local memory, for GPU-like
// devices.
#include "kernels/matmul/tiled_matmul.h"

#include "kernels/matmul/kernel.h"
#include "kernels/matmul/tile_launch.h"
#include "kernels/matmul/tile_product.h"
#include "kernels/matmul/tuned_tiles.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

// What a kernel is made for.
struct TiledMatmul {
  graft_dtype output, left, right;
  Along left_along, right_along;
  bool adds;
  TileShape shape;

  std::string key() const {
    const auto letter = [](Along along) { return along == Along::kLines ? "l" : "d"; };
    return std::string("matmul_tiles_") + (adds ? "add_" : "") + letter(left_along) +
           letter(right_along) + "_" + shape.text() + "_" + name_of(output) + "_" + name_of(left) +
           "_" + name_of(right);
  }
};

class TiledWriter {
 public:
  explicit TiledWriter(const TiledMatmul& kernel)
      : kernel_(kernel),
        b_(kernel.key(), ir::Family::kGpuLike),
        type_(ir::compute_type(kernel.output)),
        output_(b_.write(kernel.output)),
        left_(b_.read(kernel.left)),
        right_(b_.read(kernel.right)),
        addend_(kernel.adds ? b_.read(kernel.output) : left_) {
    b_.indices({&m_, &n_, &k_, &relu_});
    b_.indices({a_, bs_, c_, from_}, 3);
    alpha_ = cast(type_, b_.scalar(scale_dtype(kernel.output)));
    beta_ = cast(type_, b_.scalar(scale_dtype(kernel.output)));
  }

  ir::Kernel write() {
    TileProduct product(b_, kernel_.shape, type_);
    const int64_t rows = kernel_.shape.rows, columns = kernel_.shape.columns;
    const Value down = (m_ + (rows - 1)) / rows, across = (n_ + (columns - 1)) / columns;
    const Value rest = product.group() / down, batch = rest / across;
    const Value row = product.group() % down * rows, column = rest % across * columns;
    const auto load = [&](const Address& factor, Value first, Value size, Value start, Value step,
                          Value deeper) {
      return [=, this](Value line, Value depth) {
        const Value at = first + cast(Type::kI64, line), k = cast(Type::kI64, depth);
        const Value inside = (at < size) & (k < k_);
        const Value offset = select(inside, start + at * step + k * deeper, 0);
        return select(inside, cast(type_, factor.load(offset)), 0);
      };
    };
    product.multiply(
        cast(Type::kI32, k_),
        {kernel_.left_along, load(left_, row, m_, batch * a_[0], a_[1], a_[2])},
        {kernel_.right_along, load(right_, column, n_, batch * bs_[0], bs_[2], bs_[1])});
    const Value to = batch * c_[0], from = batch * from_[0];
    product.each([&](Value i, Value j, Value sum) {
      const Value y = row + cast(Type::kI64, i), x = column + cast(Type::kI64, j);
      b_.if_((y < m_) & (x < n_), [&] {
        Value value = sum * alpha_;
        if (kernel_.adds) value = value + beta_ * addend_.load(from + y * from_[1] + x * from_[2]);
        const Value low = select(value < 0, 0, value);
        output_.store(to + y * c_[1] + x * c_[2], select(relu_ != 0, low, value));
      });
    });
    return b_.finish();
  }

 private:
  const TiledMatmul kernel_;
  Builder b_;
  const Type type_;
  Address output_, left_, right_, addend_;
  Value m_, n_, k_, relu_, alpha_, beta_;
  Value a_[3], bs_[3], c_[3], from_[3];
};

}  // namespace

bool tiled_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                  const TensorView& b, const MatmulEpilogue& epilogue) {
  const int last = output.rank - 1;
  const int64_t k = a.sizes[last];
  if (k == 0 || k > INT32_MAX / 2) return false;
  const auto shape = tile_for(stream.device(), TileUse::kMatmul, output.dtype,
                              output.sizes[last - 1], output.sizes[last]);
  if (!shape) return false;
  tiled_matmul(stream, output, a, b, epilogue, *shape);
  return true;
}

void tiled_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                  const TensorView& b, const MatmulEpilogue& epilogue, const TileShape& shape) {
  const int last = output.rank - 1;
  const int64_t m = output.sizes[last - 1], n = output.sizes[last], k = a.sizes[last];
  const int64_t batch = output.rank == 3 ? output.sizes[0] : 1;
  const bool adds = epilogue.beta != 0.0;
  const TiledMatmul kernel{output.dtype,
                           a.dtype,
                           b.dtype,
                           a.strides[last] == 1 ? Along::kDepth : Along::kLines,
                           b.strides[last] == 1 ? Along::kLines : Along::kDepth,
                           adds,
                           shape};
  Arguments arguments;
  arguments.write(output).read(a).read(b);
  if (adds) arguments.read(*epilogue.addend);
  arguments.indices({m, n, k, epilogue.relu ? 1 : 0});
  append_matrix_strides(arguments, {&a, &b, &output, adds ? epilogue.addend : &output});
  append_scale(arguments, output.dtype, epilogue.alpha);
  append_scale(arguments, output.dtype, epilogue.beta);
  const auto make = [&] { return TiledWriter(kernel).write(); };
  launch_kernel(stream, kernel.key(), batch * tiles_of(shape, m, n), arguments, make,
                shape.group());
}

}  // namespace graft
