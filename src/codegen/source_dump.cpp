// src/codegen/source_dump.cpp: the kernels of a process as text, for people and for other
// compilers.
#include "codegen/source_dump.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/printer.h"

namespace graft {

namespace {

bool write(const std::filesystem::path& folder, const std::string& key, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(folder / (key + ".c"));
  file << text;
  return static_cast<bool>(file.flush());
}

}  // namespace

void dump_sources(const std::string& key, const ir::Kernel& kernel) {
  static const char* folder = std::getenv("GRAFT_DUMP_KERNELS");
  if (folder == nullptr || *folder == '\0') return;
  ir::Kernel named = kernel;
  named.name = key;
  for (const ir::Dialect* dialect : ir::all_dialects()) {
    const auto place = std::filesystem::path(folder) / dialect->name();
    static std::atomic<bool> reported{false};
    if (write(place, key, ir::print(named, *dialect)) || reported.exchange(true)) continue;
    std::fprintf(stderr, "graft: GRAFT_DUMP_KERNELS: cannot write kernels under %s\n",
                 place.c_str());
  }
}

}  // namespace graft
