// src/kernels/sort/key.cpp: elements as unsigned keys that sort as PyTorch sorts the elements.
#include "kernels/sort/key.h"

#include "kernels/tensor/raw_dtype.h"
#include "runtime/driver/error.h"

namespace graft {

using namespace ir;

graft_dtype key_storage(graft_dtype dtype) {
  return dtype == GRAFT_BOOL ? GRAFT_BOOL : raw_dtype(dtype);
}

Type key_type(graft_dtype dtype) { return size_of(dtype) == 8 ? Type::kU64 : Type::kU32; }

uint32_t key_bits(graft_dtype dtype) { return size_of(dtype) * 8; }

void require_order(graft_dtype dtype, const char* what) {
  if (!is_complex(dtype)) return;
  throw Error(GRAFT_UNSUPPORTED, std::string(what) + ": " + name_of(dtype) +
                                     " has no order; compare real or imaginary parts");
}

namespace {

// The bits of infinity, above which are those of NaN.
uint64_t infinity_bits(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_FLOAT16:
      return 0x7c00;
    case GRAFT_BFLOAT16:
      return 0x7f80;
    case GRAFT_FLOAT32:
      return 0x7f800000;
    default:
      return 0x7ff0000000000000;
  }
}

}  // namespace

Value sort_key(Value element, graft_dtype dtype, bool descending) {
  const Type type = key_type(dtype);
  const uint32_t bits = key_bits(dtype);
  const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  ir::Builder& b = element.builder();
  const auto number = [&](uint64_t value) { return b.constant(type, value); };
  Value key = cast(type, element);
  if (is_floating(dtype)) {
    const Value magnitude = key & number(all >> 1);
    const Value negative = (key & number(sign)) != number(0);
    const Value ordered = select(negative, key ^ number(all), key ^ number(sign));
    const Value zero_or_ordered = select(magnitude == number(0), number(sign), ordered);
    key = select(magnitude > number(infinity_bits(dtype)), number(all), zero_or_ordered);
    if (bits < 32) key = key & number(all);
  } else if (is_signed(dtype)) {
    key = (key & number(all)) ^ number(sign);
  }
  return descending ? key ^ number(all) : key;
}

SortEntries::SortEntries(ir::Builder& b, graft_dtype dtype, bool wide)
    : words_(b.update(GRAFT_INT64)), type_(key_type(dtype)), wide_(wide) {}

bool SortEntries::is_wide(graft_dtype dtype, int64_t count) {
  return size_of(dtype) == 8 || count > UINT32_MAX;
}

SortEntries::Entry SortEntries::load(Value at) const {
  if (wide_) {
    const Value key = bitcast(Type::kU64, words_.load(at * 2));
    return {cast(type_, key), words_.load(at * 2 + 1)};
  }
  const Value word = bitcast(Type::kU64, words_.load(at));
  const Value shift = words_.builder->constant(Type::kU64, 32);
  return {cast(type_, word >> shift), cast(Type::kI64, cast(Type::kU32, word))};
}

void SortEntries::store(Value at, const Entry& entry) const {
  const Value key = cast(Type::kU64, entry.key);
  if (wide_) {
    words_.store(at * 2, bitcast(Type::kI64, key));
    words_.store(at * 2 + 1, entry.position);
    return;
  }
  const Value shift = words_.builder->constant(Type::kU64, 32);
  const Value word = (key << shift) | bitcast(Type::kU64, entry.position);
  words_.store(at, bitcast(Type::kI64, word));
}

}  // namespace graft
