/* tests/drivers/extended.c: tiny.c with every extension; slot number n of a table returns status
 * 1000 + n.
 *
 * With BY_LIST the tables have as many slots as the header's lists, without it as many as before
 * there were lists (0.4): what such a driver's binary holds. */
#define graft_driver_query tiny_query
#include "tiny.c"
#undef graft_driver_query

typedef graft_status (*any_slot)(void);

#define NUMBERS(ROW) \
  ROW(0)             \
  ROW(1)             \
  ROW(2)             \
  ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(10) ROW(11) ROW(12) ROW(13) ROW(14) ROW(15)
#define DEFINE(n) \
  static graft_status slot_##n(void) { return (graft_status)(1000 + n); }
NUMBERS(DEFINE)
#undef DEFINE

struct words {
  uint32_t slot_count;
  uint32_t unused;
  any_slot slots[16];
};

#define NAME(n) slot_##n,
#define ALL_SLOTS \
  { NUMBERS(NAME) }
#ifdef BY_LIST
#include "graft/extensions.h"
#define COUNT(number, SLOTS) GRAFT_COUNT_SLOTS(SLOTS)
#else
#define COUNT(number, SLOTS) number
#endif
static const struct words kBlas = {COUNT(3, GRAFT_BLAS_SLOTS), 0, ALL_SLOTS};
static const struct words kDnn = {COUNT(3, GRAFT_DNN_SLOTS), 0, ALL_SLOTS};
static const struct words kProfiler = {COUNT(2, GRAFT_PROFILER_SLOTS), 0, ALL_SLOTS};
static const struct words kPrograms = {COUNT(2, GRAFT_PROGRAMS_SLOTS), 0, ALL_SLOTS};
static const struct words kGraphs = {COUNT(3, GRAFT_GRAPHS_SLOTS), 0, ALL_SLOTS};
static const struct words kCollectives = {COUNT(13, GRAFT_COLLECTIVES_SLOTS), 0, ALL_SLOTS};
static const struct words kGraphCompiler = {COUNT(6, GRAFT_GRAPH_COMPILER_SLOTS), 0, ALL_SLOTS};
static const struct words kOps = {COUNT(4, GRAFT_OPS_SLOTS), 0, ALL_SLOTS};

static graft_status extension(const char* name, uint32_t version, const void** out_table) {
  const struct words* found = strcmp(name, "graft.blas") == 0             ? &kBlas
                              : strcmp(name, "graft.dnn") == 0            ? &kDnn
                              : strcmp(name, "graft.profiler") == 0       ? &kProfiler
                              : strcmp(name, "graft.programs") == 0       ? &kPrograms
                              : strcmp(name, "graft.graphs") == 0         ? &kGraphs
                              : strcmp(name, "graft.collectives") == 0    ? &kCollectives
                              : strcmp(name, "graft.graph_compiler") == 0 ? &kGraphCompiler
                              : strcmp(name, "graft.ops") == 0            ? &kOps
                                                                          : NULL;
  if (found == NULL || version != 1) return GRAFT_NOT_FOUND;
  *out_table = found;
  return GRAFT_OK;
}

graft_status graft_driver_query(graft_driver_table* table) {
  graft_driver_table mine = kTable;
  mine.extension = extension;
  return graft_driver_fill(table, &mine);
}
