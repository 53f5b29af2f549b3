// drivers/trace/tables.h: numbers for all tables and slots, made from the lists of the headers.
#ifndef GRAFT_DRIVERS_TRACE_TABLES_H_
#define GRAFT_DRIVERS_TRACE_TABLES_H_

#include <cstddef>
#include <string>
#include <tuple>

#include "graft/driver_table.h"

namespace graft::trace {

// One of each table, the driver's first.
#define GRAFT_TRACE_TYPE(name, version, SLOTS) , graft_##name##_table
using AllTables = std::tuple<graft_driver_table GRAFT_EXTENSIONS(GRAFT_TRACE_TYPE)>;
#undef GRAFT_TRACE_TYPE

template <class Table, size_t index = 0>
constexpr size_t table_number() {
  if constexpr (std::is_same_v<Table, std::tuple_element_t<index, AllTables>>) {
    return index;
  } else {
    return table_number<Table, index + 1>();
  }
}

// A slot's id: its table's number and its place there.
constexpr size_t kSlotsOfTable = GRAFT_MAX_EXTENSION_SLOTS;
constexpr size_t kSlotIds = std::tuple_size_v<AllTables> * kSlotsOfTable;

// "copy", "blas.plan_execute".
std::string slot_name(const TableFacts& table, size_t index);

// Calls f(facts, number) for each table.
template <class Function>
void each_table(const Function& f) {
  size_t number = 0;
  f(table_facts<graft_driver_table>, number++);
#define GRAFT_TRACE_EACH(name, version, SLOTS) f(table_facts<graft_##name##_table>, number++);
  GRAFT_EXTENSIONS(GRAFT_TRACE_EACH)
#undef GRAFT_TRACE_EACH
}

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_TABLES_H_
