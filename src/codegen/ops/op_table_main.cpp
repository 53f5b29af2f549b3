// src/codegen/ops/op_table_main.cpp: the program graft-op-table: prints the op table as JSON.
#include <cstdio>
#include <cstring>

#include "codegen/ops/op_table.h"

int main(int count, char** arguments) {
  if (count != 2 || std::strcmp(arguments[1], "--json") != 0) {
    std::fprintf(stderr, "usage: %s --json\nPrints the rows of the op table.\n", arguments[0]);
    return 2;
  }
  std::puts(graft::op_table_json().c_str());
}
