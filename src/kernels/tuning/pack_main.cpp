// src/kernels/tuning/pack_main.cpp: the program graft-pack-generator: prints the sources of the
// kernel pack.
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/cache/program_cache.h"
#include "codegen/print/printer.h"

namespace {

struct Entry {
  std::string key;
  graft::ir::Kernel kernel;
};

std::vector<Entry> entries() {
  std::vector<Entry> all;
  std::set<std::string> keys;
  for (const auto& enumerate : graft::PackEntry::all()) {
    enumerate([&](const std::string& key, const std::function<graft::ir::Kernel()>& make) {
      if (keys.insert(key).second) all.push_back({key, make()});
    });
  }
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
  return all;
}

// A file that already holds the text keeps its time, so that nothing is compiled for it again.
bool write(const std::string& path, const std::string& text) {
  std::stringstream present;
  present << std::ifstream(path).rdbuf();
  if (present.str() == text) return true;
  std::ofstream file(path);
  file << text;
  return bool(file.flush());
}

}  // namespace

// Writes pack_0.c ... pack_<parts - 1>.c into a folder; each holds its share of the kernels under
// the names by which they are looked up. The key alone decides the file: a new kernel changes one.
int main(int count, char** arguments) {
  if (count != 3 || std::atoi(arguments[2]) < 1) {
    std::fprintf(stderr, "usage: %s folder parts\nWrites the kernel pack as C.\n", arguments[0]);
    return 2;
  }
  const graft::ir::Dialect& dialect = *graft::ir::find_dialect("c");
  const size_t parts = static_cast<size_t>(std::atoi(arguments[2]));
  std::vector<std::vector<graft::ir::Kernel>> shares(parts);
  size_t kernels = 0;
  for (Entry& entry : entries()) {
    entry.kernel.name = graft::make_program(entry.key, entry.kernel, dialect).name;
    const size_t part = XXH3_64bits(entry.key.data(), entry.key.size()) % parts;
    shares[part].push_back(std::move(entry.kernel));
    ++kernels;
  }
  for (size_t part = 0; part < parts; ++part) {
    const std::string path = std::string(arguments[1]) + "/pack_" + std::to_string(part) + ".c";
    if (!write(path, graft::ir::print(shares[part], dialect))) {
      std::fprintf(stderr, "cannot write %s\n", path.c_str());
      return 1;
    }
  }
  std::printf("%zu kernels\n", kernels);
}
