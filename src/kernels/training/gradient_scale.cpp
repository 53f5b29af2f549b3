// src/kernels/training/gradient_scale.cpp: what automatic mixed precision does to gradients and its
// scale.
#include "kernels/training/gradient_scale.h"

#include "codegen/cache/program_cache.h"
#include "kernels/launch/list_launch.h"
#include "kernels/operation/offer.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

using namespace ir;

Value finite(Value x) { return !(is_nan(x) | is_inf(x)); }

ir::Kernel unscale_kernel(const std::string& key, graft_dtype dtype) {
  Builder b(key);
  const Type type = ir::compute_type(dtype);
  const GroupList gradients(b, dtype, GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE);
  const Address found = b.update(GRAFT_FLOAT32), inverse = b.read(GRAFT_FLOAT32);
  const GroupShare share(b);
  const Address gradient = gradients.at(share.slot);
  const Value factor = cast(type, inverse.load(b.i64(0)));
  const Value bad = ir::reduce(
      b.constant(Type::kI32, 0), share.begin, share.end,
      [&](Value i) { return cast(Type::kI32, !finite(gradient.load(i))); },
      [](Value x, Value y) { return x | y; });
  b.if_(bad != 0, [&] { found.store(b.i64(0), b.f32(1)); });
  b.vector_loop(share.begin, share.end, [&](Value i) {
    const Value x = gradient.load(i);
    gradient.store(i, select(factor == 1, x, x * factor));
  });
  return b.finish();
}

ir::Kernel update_kernel(const std::string& key) {
  Builder b(key);
  const Address scale = b.update(GRAFT_FLOAT32), tracker = b.update(GRAFT_INT32);
  const Address found = b.read(GRAFT_FLOAT32);
  const Value growth = b.scalar(GRAFT_FLOAT64), backoff = b.scalar(GRAFT_FLOAT64);
  const Value interval = b.index(), zero = b.i64(0);
  const Value now = scale.load(zero), successes = tracker.load(zero) + 1;
  const auto times = [&](Value factor) { return cast(Type::kF32, cast(Type::kF64, now) * factor); };
  const Value failed = found.load(zero) != 0, full = cast(Type::kI64, successes) == interval;
  const Value larger = times(growth);
  const Value kept = select(full & finite(larger), larger, now);
  scale.store(zero, select(failed, times(backoff), kept));
  tracker.store(zero, select(failed | full, 0, successes));
  return b.finish();
}

std::string unscale_key(graft_dtype dtype) {
  return std::string("unscale_gradients_") + name_of(dtype);
}

const PackEntry kPacked([](const PackEntry::Sink& add) {
  const std::string key = unscale_key(GRAFT_FLOAT32);
  add(key, [key] { return unscale_kernel(key, GRAFT_FLOAT32); });
  add("update_scale", [] { return update_kernel("update_scale"); });
});

}  // namespace

void unscale_gradients(Stream& stream, std::span<const TensorView> gradients,
                       const TensorView& found_inf, const TensorView& inverse_scale) {
  for (const TensorView& gradient : gradients) {
    if (!is_floating(gradient.dtype)) {
      throw Error(GRAFT_UNSUPPORTED, std::string("unscale gradients: no kernel for ") +
                                         name_of(gradient.dtype) + "; give floating gradients");
    }
  }
  const auto call = [&](size_t i, VendorCall& to) {
    to.write(gradients[i]).write(found_inf).read(inverse_scale);
  };
  if (offer_list(stream, Operation::unscale_gradient, gradients.size(), call)) return;
  each_group(
      gradients.size(), [&](size_t i) { return gradients[i].count(); },
      [&](size_t i) { return gradients[i].dtype; },
      [&](const TensorGroup& group) {
        Arguments arguments;
        for (int member : group.members()) arguments.update(gradients[static_cast<size_t>(member)]);
        arguments.update(found_inf).read(inverse_scale);
        const int64_t items = group.append(arguments);
        const graft_dtype dtype = gradients[static_cast<size_t>(group.members()[0])].dtype;
        const std::string key = unscale_key(dtype);
        launch_built(stream, key, items, arguments, unscale_kernel, dtype);
      });
}

void update_scale(Stream& stream, const TensorView& scale, const TensorView& tracker,
                  const TensorView& found_inf, double growth, double backoff,
                  int64_t growth_interval) {
  if (offer(stream, Operation::update_scale, writes(scale, tracker), reads(found_inf),
            integers(growth_interval), numbers(growth, backoff)))
    return;
  Arguments arguments;
  arguments.update(scale).update(tracker).read(found_inf);
  arguments.scalar(Scalar::of(growth), 8).scalar(Scalar::of(backoff), 8).index(growth_interval);
  const std::string key = "update_scale";
  launch_kernel(stream, key, 1, arguments, [&] { return update_kernel(key); });
}

}  // namespace graft
