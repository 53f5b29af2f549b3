// tests/drivers/trace/variants.cpp: chooses the variant that GRAFT_VARIANT names.
//
// GRAFT_LIMITED_DRIVER is the path of the driver that it stands in front of; a build defines
// GRAFT_BASE_DRIVER for when it is not set. The trace layer must find each bug, by the rule in its
// row, and nothing in a driver that is unusual and right.
#include <cstdlib>
#include <cstring>

#include "tests/drivers/base_driver.h"
#include "tests/drivers/trace/variant.h"

namespace graft::driver_test {

graft_driver_table base;

static const Variant* variant_at(uint32_t place) {
  for (const auto rows : {unusual_handles(), unusual_commands(), faulty_variants(),
                          faulty_answers(), faulty_order()}) {
    if (place < rows.size()) return &rows[place];
    place -= static_cast<uint32_t>(rows.size());
  }
  return nullptr;
}

static const Variant* chosen() {
  const char* const name = std::getenv("GRAFT_VARIANT");
  const Variant* row = variant_at(0);
  for (uint32_t i = 1; row != nullptr; row = variant_at(i++)) {
    if (name != nullptr && std::strcmp(row->name, name) == 0) return row;
  }
  return nullptr;
}

}  // namespace graft::driver_test

// The place-th variant's name, null behind the last, and the rule that must find it.
extern "C" GRAFT_DRIVER_EXPORT const char* graft_variant(uint32_t place, const char** out_rule) {
  const graft::driver_test::Variant* const row = graft::driver_test::variant_at(place);
  if (row == nullptr) return nullptr;
  *out_rule = row->rule;
  return row->name;
}

extern "C" graft_status graft_driver_query(graft_driver_table* table) {
  using graft::driver_test::base;
  const char* path = std::getenv("GRAFT_LIMITED_DRIVER");
#ifdef GRAFT_BASE_DRIVER
  if (path == nullptr) path = GRAFT_BASE_DRIVER;
#endif
  const auto* const variant = graft::driver_test::chosen();
  if (path == nullptr || variant == nullptr) return GRAFT_INVALID_ARGUMENT;
  if (const graft_status status = load_base(path, &base); status != GRAFT_OK) return status;
  static graft_driver_table mine;
  mine = base;
  mine.name = variant->name;
  variant->apply(mine);
  return graft_driver_fill(table, &mine);
}
