// tests/drivers/check/extension_cases.cpp: the tables of extensions, as Graft takes them.
#include <string>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::TableFacts;
using graft::check::Session;

namespace {

void check_table(Session& session, const TableFacts& facts) {
  const void* table = session.find_extension(facts);
  const std::string fault = graft::fault_of(facts, table);
  Session::require(fault.empty(), fault);
  const void* other = nullptr;
  session.expect(session.table.extension(facts.name, facts.version + 1000, &other), GRAFT_NOT_FOUND,
                 std::string("extension ") + facts.name + " of another version");
  Session::require(other == nullptr, "a failed extension wrote its out_ parameter");
}

}  // namespace

#define GRAFT_TABLE_CASE(name, version, SLOTS)                                                 \
  DRIVER_CASE(name##_table, "graft." #name ": the table has every required slot", "extension", \
              kLoaded) {                                                                       \
    check_table(session, graft::table_facts<graft_##name##_table>);                            \
  }
GRAFT_EXTENSIONS(GRAFT_TABLE_CASE)
