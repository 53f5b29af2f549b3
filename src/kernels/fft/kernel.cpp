// src/kernels/fft/kernel.cpp: the kernel behind fft.h: transforms of lines that fit a work-item.
#include "kernels/fft/kernel.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "kernels/fft/butterfly.h"
#include "kernels/launch/work_split.h"
#include "runtime/driver/dtype.h"

namespace graft {
namespace {

using namespace ir;

constexpr int64_t kBlock = 16;  // numbers that are moved from one line before the next

// The kernel's view of one FftSide.
struct Side {
  Side(Builder& b, const Address& memory) : memory(memory) {
    for (Value& stride : strides) stride = b.index();
    step = b.index(), part = b.index(), count = b.index(), plane = b.index();
  }

  Address memory;
  Value strides[3], step, part, count, plane;
};

class FftWriter {
 public:
  FftWriter(const FftKernel& kernel, const std::string& key)
      : width_(kernel.width()),
        plane_((kernel.longest() + 1) * width_),
        b_(key),
        out_(b_, b_.write(kernel.part)),
        in_(b_, b_.read(kernel.part)),
        roots_(b_.read(kernel.part)),
        factors_(b_.read(kernel.part)),
        scale_(b_.scalar(kernel.part)) {
    b_.indices({&groups_, &per_item_, &blocks_, &run_, &middle_size_, &inner_size_, &length_,
                &radices_, &stages_, &root_step_, &middle_, &factored_});
  }

  ir::Kernel build() {
    scratch_.emplace(b_, scale_.type(), static_cast<uint32_t>(4 * plane_));
    starts_.emplace(b_, Type::kI64, static_cast<uint32_t>(2 * width_));
    each_line(b_, groups_, per_item_, [&](Value group) { transform(group); });
    return b_.finish();
  }

 private:
  Value zero() { return b_.i64(0); }
  Value row(Value base, Value i) const { return base + i * width_; }
  Value root(Value index) const { return index * 2; }

  void transform(Value group) {
    const Value column = group % blocks_ * width_;
    const Value first = group / blocks_ * run_ + column;
    lanes_ = ir::minimum(run_ - column, b_.i64(width_));
    find_starts(first);
    from_.emplace(zero());
    to_.emplace(b_.i64(2 * plane_));
    load();
    b_.if_(middle_ == static_cast<int64_t>(FftMiddle::kPack), [&] { pack(); });
    b_.if_(middle_ == static_cast<int64_t>(FftMiddle::kHalveMean), [&] { halve_mean(); });
    run_stages();
    b_.if_(middle_ == static_cast<int64_t>(FftMiddle::kUnpack), [&] { unpack(); });
    b_.if_(factored_ != 0, [&] { multiply(column); });
    store();
  }

  void find_starts(Value first) {
    b_.loop(zero(), b_.i64(width_), [&](Value lane) {
      const Value line = first + ir::minimum(lane, lanes_ - 1);
      const Value inner = line % inner_size_, rest = line / inner_size_;
      const Value middle = rest % middle_size_, outer = rest / middle_size_;
      int64_t side = 0;
      for (const Side* s : {&in_, &out_}) {
        starts_->store(lane + side++ * width_,
                       outer * s->strides[0] + middle * s->strides[1] + inner * s->strides[2]);
      }
    });
  }

  // Calls dense(part, distance between lanes) where the lines lie side by side, else apart().
  template <class Dense, class Apart>
  void by_layout(const Side& side, Dense dense, Apart apart) {
    const Value in_run = run_ == inner_size_, stride = side.strides[2];
    b_.if_(
        in_run & (stride == 2) & (side.part == 1), [&] { dense(b_.i64(1), int64_t{2}); },
        [&] {
          b_.if_(
              in_run & (stride == 1), [&] { dense(side.part, int64_t{1}); }, apart);
        });
  }

  // body(lane, first row, end row) for blocks of rows, each line's part of a block after the other.
  template <class Body>
  void each_block(Value rows, Body body) {
    b_.loop(
        zero(), rows,
        [&](Value row) {
          const Value end = ir::minimum(row + kBlock, rows);
          b_.loop(zero(), lanes_, [&](Value lane) { body(lane, row, end); });
        },
        b_.i64(kBlock));
  }

  void load() {
    const Value real = in_.plane * plane_, imaginary = plane_ - real;
    const auto dense = [&](Value part, int64_t distance) {
      b_.loop(zero(), in_.count, [&](Value i) {
        const Value at = starts_->load(zero()) + i * in_.step;
        const Value to_real = row(real, i), to_imaginary = row(imaginary, i);
        b_.vector_loop(zero(), lanes_, [&](Value lane) {
          const Value element = at + lane * distance;
          scratch_->store(to_real + lane, in_.memory.load(element));
          scratch_->store(to_imaginary + lane, in_.memory.load(element + part));
        });
      });
    };
    const auto apart = [&] {
      each_block(in_.count, [&](Value lane, Value begin, Value end) {
        const Value start = starts_->load(lane);
        b_.loop(begin, end, [&](Value i) {
          const Value element = start + i * in_.step;
          scratch_->store(row(real, i) + lane, in_.memory.load(element));
          scratch_->store(row(imaginary, i) + lane, in_.memory.load(element + in_.part));
        });
      });
    };
    by_layout(in_, dense, apart);
    b_.if_(in_.part == 0, [&] { clear(imaginary, zero(), in_.count); });
    for (const Value plane : {real, imaginary}) clear(plane, in_.count, length_);
  }

  void clear(Value plane, Value begin, Value end) {
    b_.loop(begin, end, [&](Value i) {
      const Value at = row(plane, i);
      b_.vector_loop(zero(), b_.i64(width_),
                     [&](Value lane) { scratch_->store(at + lane, like(scale_, 0)); });
    });
  }

  void store() {
    const Value real = from_->get() + out_.plane * plane_;
    const Value imaginary = from_->get() + (1 - out_.plane) * plane_;
    const Value complex = out_.part != 0;
    const auto dense = [&](Value part, int64_t distance) {
      b_.loop(zero(), out_.count, [&](Value i) {
        const Value at = starts_->load(b_.i64(width_)) + i * out_.step;
        const Value from_real = row(real, i), from_imaginary = row(imaginary, i);
        if (distance == 2) {
          return b_.vector_loop(zero(), lanes_, [&](Value lane) {
            out_.memory.store(at + lane * 2, scratch_->load(from_real + lane) * scale_);
            out_.memory.store(at + lane * 2 + part, scratch_->load(from_imaginary + lane) * scale_);
          });
        }
        b_.vector_loop(zero(), lanes_, [&](Value lane) {
          out_.memory.store(at + lane, scratch_->load(from_real + lane) * scale_);
        });
        b_.if_(complex, [&] {
          b_.vector_loop(zero(), lanes_, [&](Value lane) {
            out_.memory.store(at + lane + part, scratch_->load(from_imaginary + lane) * scale_);
          });
        });
      });
    };
    const auto apart = [&] {
      each_block(out_.count, [&](Value lane, Value begin, Value end) {
        const Value start = starts_->load(lane + width_);
        const auto move = [&](Value plane, Value first) {
          b_.loop(begin, end, [&](Value i) {
            out_.memory.store(first + i * out_.step, scratch_->load(row(plane, i) + lane) * scale_);
          });
        };
        move(real, start);
        b_.if_(complex, [&] { move(imaginary, start + out_.part); });
      });
    };
    by_layout(out_, dense, apart);
  }

  ComplexValue number(Value at) const { return {scratch_->load(at), scratch_->load(at + plane_)}; }
  void put(Value at, ComplexValue number) const {
    scratch_->store(at, number.re);
    scratch_->store(at + plane_, number.im);
  }
  static ComplexValue loaded(const Address& table, Value at) {
    return {table.load(at), table.load(at + 1)};
  }

  void exchange() {
    const Value before = from_->get();
    *from_ = to_->get();
    *to_ = before;
  }

  void run_stages() {
    const Variable done(b_.i64(1));  // product of the radices so far
    b_.loop(zero(), stages_, [&](Value stage) {
      const Value radix = (radices_ >> (stage * 8)) & 255;
      choose(radix, done, 2);
      exchange();
      done = done * radix;
    });
  }

  void choose(Value radix, Value done, int tried) {
    if (tried > 8) return general_stage(radix, done);
    if (!has_butterfly(tried)) return choose(radix, done, tried + 1);
    b_.if_(
        radix == tried, [&] { stage(static_cast<size_t>(tried), done); },
        [&] { choose(radix, done, tried + 1); });
  }

  void stage(size_t radix, Value done) {
    const auto r = static_cast<int64_t>(radix);
    const Value apart = length_ / r * width_, aside = done * width_;
    b_.loop(zero(), length_ / (done * r), [&](Value p) {
      std::vector<ComplexValue> twiddles(radix);
      for (size_t k = 1; k < radix; ++k) {
        twiddles[k] = loaded(roots_, root(p * done * root_step_ * static_cast<int64_t>(k)));
      }
      b_.loop(zero(), done, [&](Value q) {
        const Value source = row(from_->get(), p * done + q);
        const Value target = row(to_->get(), p * done * r + q);
        b_.vector_loop(zero(), b_.i64(width_), [&](Value lane) {
          std::vector<ComplexValue> x(radix);
          for (size_t j = 0; j < radix; ++j) {
            x[j] = number(source + apart * static_cast<int64_t>(j) + lane);
          }
          const std::vector<ComplexValue> y = butterfly(x);
          for (size_t k = 0; k < radix; ++k) {
            put(target + aside * static_cast<int64_t>(k) + lane,
                k == 0 ? y[k] : y[k] * twiddles[k]);
          }
        });
      });
    });
  }

  // A prime without a butterfly: its sums as they stand.
  void general_stage(Value radix, Value done) {
    const Value share = length_ / radix;
    b_.loop(zero(), share / done, [&](Value p) {
      b_.loop(zero(), radix * done, [&](Value target) {
        const Value k = target / done, q = target % done;
        const Value to = row(to_->get(), p * done * radix + target);
        b_.loop(zero(), radix, [&](Value j) {
          const Value power = k * (j * share + p * done) % length_;
          const ComplexValue weight = loaded(roots_, root(power * root_step_));
          const Value at = row(from_->get(), p * done + q + j * share);
          const Value first = j == 0;
          b_.vector_loop(zero(), b_.i64(width_), [&](Value lane) {
            const ComplexValue sum = number(to + lane), term = number(at + lane) * weight;
            put(to + lane, {select(first, term.re, sum.re + term.re),
                            select(first, term.im, sum.im + term.im)});
          });
        });
      });
    });
  }

  // Z[k] of the transform of pairs (x[2m], x[2m+1]) gives X[k] of x, and the other way round: with
  // E and O the spectra of the even and odd ones, Z = E + i O and X = E + w^k O. Cooley, Lewis and
  // Welch, Journal of Sound and Vibration 12 (1970) 315.
  void unpack() {
    b_.loop(zero(), length_ + 1, [&](Value k) {
      const ComplexValue w = loaded(roots_, root(k));
      const Value at = row(from_->get(), k % length_);
      const Value mirrored = row(from_->get(), (length_ - k) % length_);
      const Value to = row(to_->get(), k);
      b_.vector_loop(zero(), b_.i64(width_), [&](Value lane) {
        const ComplexValue a = number(at + lane), b = number(mirrored + lane);
        const ComplexValue even = {(a.re + b.re) * 0.5, (a.im - b.im) * 0.5};
        const ComplexValue odd = {(a.im + b.im) * 0.5, (b.re - a.re) * 0.5};
        put(to + lane, even + odd * w);
      });
    });
    exchange();
  }

  // The spectrum is read conjugated, so that the transform runs forwards.
  void pack() {
    for (const Value end : {zero(), length_}) {
      clear(from_->get() + plane_, end, end + 1);
    }
    b_.loop(zero(), length_, [&](Value k) {
      const ComplexValue w = loaded(roots_, root(k));
      const Value at = row(from_->get(), k), mirrored = row(from_->get(), length_ - k);
      const Value to = row(to_->get(), k);
      b_.vector_loop(zero(), b_.i64(width_), [&](Value lane) {
        const ComplexValue a = number(at + lane), b = number(mirrored + lane);
        const ComplexValue even = {a.re + b.re, b.im - a.im};
        const ComplexValue odd = ComplexValue{a.re - b.re, -a.im - b.im} * w;
        put(to + lane, {even.re - odd.im, even.im + odd.re});
      });
    });
    exchange();
  }

  void halve_mean() {
    for (const int64_t plane : {int64_t{0}, plane_}) {
      const Value at = from_->get() + plane;
      b_.vector_loop(zero(), b_.i64(width_), [&](Value lane) {
        scratch_->store(at + lane, scratch_->load(at + lane) * 0.5);
      });
    }
  }

  void multiply(Value column) {
    b_.loop(zero(), length_, [&](Value k) {
      const Value at = row(from_->get(), k), table = (k * inner_size_ + column) * 2;
      b_.vector_loop(zero(), lanes_, [&](Value lane) {
        put(at + lane, number(at + lane) * loaded(factors_, table + lane * 2));
      });
    });
  }

  const int64_t width_, plane_;
  Builder b_;
  Side out_, in_;
  Address roots_, factors_;
  Value scale_, groups_, per_item_, blocks_, run_, middle_size_, inner_size_;
  Value length_, radices_, stages_, root_step_, middle_, factored_, lanes_;
  std::optional<Lanes> scratch_, starts_;
  std::optional<Variable> from_, to_;
};

const PackEntry kPacked([](const PackEntry::Sink& add) {
  for (const graft_dtype part : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    PackEntry::put(add, FftKernel{part});
  }
});

void append_side(Arguments& arguments, const FftSide& side, uint32_t access) {
  arguments.address(side.address, side.bytes, access);
  for (const int64_t stride : side.strides) arguments.index(stride);
  arguments.indices({side.step, side.part, side.count, side.plane});
}

}  // namespace

std::string FftKernel::key() const {
  return fmt::format("fft_{}_{}", single ? "line" : "lines", name_of(part));
}

ir::Kernel FftKernel::build() const { return FftWriter(*this, key()).build(); }

void FftKernel::append(Arguments& arguments, const FftLaunch& launch, uint64_t& grid) const {
  const int64_t inner = launch.sizes[2], lines = launch.sizes[0] * launch.sizes[1] * inner;
  const bool along = inner >= width() && (launch.in.strides[2] <= 2 || launch.out.strides[2] <= 2);
  const int64_t run = along || launch.factors != 0 ? inner : lines;
  const int64_t blocks = (run + width() - 1) / width();
  const int64_t elements = single ? kItemElements : width() * launch.length * 4;
  const WorkSplit split = split_work(lines / run * blocks, elements);
  append_side(arguments, launch.out, GRAFT_ACCESS_WRITE);
  append_side(arguments, launch.in, GRAFT_ACCESS_READ);
  const uint64_t number = 2 * size_of(part);
  const auto roots = static_cast<uint64_t>(launch.length * launch.root_step) * number;
  const auto factors = static_cast<uint64_t>(launch.length * inner) * number;
  arguments.address(launch.roots, roots, GRAFT_ACCESS_READ);
  arguments.address(launch.factors == 0 ? launch.roots : launch.factors,
                    launch.factors == 0 ? roots : factors, GRAFT_ACCESS_READ);
  arguments.scalar(Scalar::of(part, launch.scale), size_of(part));
  arguments.indices({split.lines, split.per_item, blocks, run, launch.sizes[1], inner,
                     launch.length, launch.radices, launch.stages, launch.root_step,
                     static_cast<int64_t>(launch.middle), launch.factors != 0 ? 1 : 0});
  grid = static_cast<uint64_t>(split.grid);
}

}  // namespace graft
