// tests/drivers/extension_bugs.h: bugs of planted_bugs.cpp that stand in the table of an extension.
#pragma once

#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "graft/driver.h"
#include "graft/extensions.h"

namespace {

graft_driver_table base;  // the host driver's

// A call of the slot extension.
struct Asked {
  const char* name;
  uint32_t version;
  const void** out_table;
};

// Gives the table of this name changed; base_table: takes it as it was.
template <class Table>
graft_status changed(Table* base_table, const char* name, const Asked& asked,
                     void (*change)(Table&)) {
  static Table mine;
  const graft_status status = base.extension(asked.name, asked.version, asked.out_table);
  if (status != GRAFT_OK || std::strcmp(asked.name, name) != 0) return status;
  *base_table = mine = *static_cast<const Table*>(*asked.out_table);
  change(mine);
  *asked.out_table = &mine;
  return GRAFT_OK;
}

graft_collectives_table base_collectives;

// Reduces as the host driver does, but for sums.
graft_status no_sum(graft_stream stream, graft_group group, graft_address send,
                    graft_address receive, uint64_t count, uint32_t dtype, uint32_t reduction,
                    uint32_t tag) {
  if (reduction == GRAFT_REDUCE_SUM) reduction = GRAFT_REDUCE_MAX;
  return base_collectives.all_reduce(stream, group, send, receive, count, dtype, reduction, tag);
}

graft_status greatest_sum(const char* name, uint32_t version, const void** out_table) {
  return changed(
      &base_collectives, "graft.collectives", {name, version, out_table},
      +[](graft_collectives_table& mine) { mine.all_reduce = no_sum; });
}

graft_graphs_table base_graphs;

// Every launch takes the addresses of the first one.
graft_status launch_there(graft_stream stream, graft_graph graph, const graft_address* bases,
                          uint32_t base_count) {
  static std::vector<graft_address> first(bases, bases + base_count);
  return base_graphs.graph_launch(stream, graph, first.data(), base_count);
}

graft_status first_bases(const char* name, uint32_t version, const void** out_table) {
  return changed(
      &base_graphs, "graft.graphs", {name, version, out_table},
      +[](graft_graphs_table& mine) { mine.graph_launch = launch_there; });
}

// The table ends before its last slot.
graft_status short_graphs(const char* name, uint32_t version, const void** out_table) {
  return changed(
      &base_graphs, "graft.graphs", {name, version, out_table},
      +[](graft_graphs_table& mine) { --mine.slot_count; });
}

graft_blas_table base_blas;

// Lets twice as much through as the minimum should.
graft_status plan_higher(graft_device device, const graft_matmul* matmul,
                         graft_plan_needs* out_needs, graft_plan* out_plan) {
  graft_matmul higher = *matmul;
  for (uint32_t i = 0; i < higher.epilogue_count; ++i) {
    if (higher.epilogues[i].kind == GRAFT_EPILOGUE_MINIMUM) higher.epilogues[i].value *= 2;
  }
  return base_blas.matmul_plan(device, &higher, out_needs, out_plan);
}

graft_status blas_ceiling(const char* name, uint32_t version, const void** out_table) {
  return changed(
      &base_blas, "graft.blas", {name, version, out_table},
      +[](graft_blas_table& mine) { mine.matmul_plan = plan_higher; });
}

std::multimap<graft_plan, std::pair<graft_stream, graft_address>> executions;

graft_status execute_noted(graft_stream stream, graft_plan plan, const graft_execution* execution) {
  executions.emplace(plan, std::pair(stream, execution->tensors[2]));
  return base_blas.plan_execute(stream, plan, execution);
}

// Clears what its executions computed.
graft_status end_with_results(graft_plan plan) {
  const uint32_t zero = 0;
  const auto [first, last] = executions.equal_range(plan);
  for (auto one = first; one != last; ++one) {
    const auto [stream, result] = one->second;
    base.fill(stream, result, 64, &zero, sizeof zero, 0);
  }
  executions.erase(plan);
  return base_blas.plan_destroy(plan);
}

graft_status blas_lost_plan(const char* name, uint32_t version, const void** out_table) {
  return changed(
      &base_blas, "graft.blas", {name, version, out_table}, +[](graft_blas_table& mine) {
        mine.plan_execute = execute_noted;
        mine.plan_destroy = end_with_results;
      });
}

// A table of graft.ops with one operator, plain_add on float32, that adds one too much where asked.
template <int too_much>
struct Adder {
  static graft_status known(graft_device, const char* name) {
    if (too_much == 0) return GRAFT_OK;
    return std::strcmp(name, "plain_add") == 0 ? GRAFT_OK : GRAFT_UNSUPPORTED;
  }

  static graft_status plan(graft_device, const graft_operation* operation, graft_plan_needs*,
                           graft_plan* out_plan) {
    if (std::strcmp(operation->name, "plain_add") != 0) return GRAFT_UNSUPPORTED;
    uint64_t count = 1;
    for (uint32_t d = 0; d < operation->tensors[0].rank; ++d) {
      count *= static_cast<uint64_t>(operation->tensors[0].sizes[d]);
    }
    *out_plan = reinterpret_cast<graft_plan>(new uint64_t(count));
    return GRAFT_OK;
  }

  static graft_status execute(graft_stream stream, graft_plan plan, const graft_launch* launch) {
    const graft_status status = base.stream_synchronize(stream);
    float* memory[3];
    for (int i = 0; i < 3; ++i) memory[i] = reinterpret_cast<float*>(launch->arguments[i].value);
    for (uint64_t i = 0; i < *reinterpret_cast<const uint64_t*>(plan); ++i) {
      memory[0][i] = memory[1][i] + memory[2][i] + static_cast<float>(too_much);
    }
    return status;
  }

  static graft_status destroy(graft_plan plan) {
    delete reinterpret_cast<uint64_t*>(plan);
    return GRAFT_OK;
  }

  static graft_status extension(const char* name, uint32_t version, const void** out_table) {
    static const graft_ops_table mine = {GRAFT_EXTENSION_PRELUDE(GRAFT_OPS_SLOTS), known, plan,
                                         execute, destroy};
    if (std::strcmp(name, "graft.ops") != 0 || version != 1) {
      return base.extension(name, version, out_table);
    }
    *out_table = &mine;
    return GRAFT_OK;
  }
};

graft_status ops_wrong_sum(const char* name, uint32_t version, const void** out_table) {
  return Adder<1>::extension(name, version, out_table);
}

graft_status ops_any_name(const char* name, uint32_t version, const void** out_table) {
  return Adder<0>::extension(name, version, out_table);
}

}  // namespace
