// src/codegen/cache/source_dump.cpp: the kernels of a process as text, for people and for other
// compilers.
#include "codegen/cache/source_dump.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "codegen/print/printer.h"

namespace graft {

namespace {

bool write(const std::filesystem::path& folder, const std::string& key, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::ofstream file(folder / (key + ".c"));
  file << text;
  return static_cast<bool>(file.flush());
}

// Groups and vectors are not in every dialect.
bool has_all(const ir::Dialect& dialect, const ir::Kernel& kernel) {
  const bool groups = kernel.family == ir::Family::kGpuLike;
  if (groups && dialect.family() == ir::Family::kCpuLike) return false;
  const auto wide = [](const ir::Instruction& it) { return ir::is_vector(it.type); };
  return !dialect.vectors().empty() || std::ranges::none_of(kernel.body, wide);
}

}  // namespace

void dump_sources(const std::string& key, const ir::Kernel& kernel) {
  static const char* folder = std::getenv("GRAFT_DUMP_KERNELS");
  if (folder == nullptr || *folder == '\0') return;
  ir::Kernel named = kernel;
  named.name = key;
  for (const ir::Dialect* dialect : ir::all_dialects()) {
    if (!has_all(*dialect, kernel)) continue;
    const auto place = std::filesystem::path(folder) / dialect->name();
    static std::atomic<bool> reported{false};
    if (write(place, key, ir::print(named, *dialect)) || reported.exchange(true)) continue;
    std::fprintf(stderr, "graft: GRAFT_DUMP_KERNELS: cannot write kernels under %s\n",
                 place.c_str());
  }
}

}  // namespace graft
