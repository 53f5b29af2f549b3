// tests/drivers/check/twice/results.cpp: the files that the trace layer's setting results writes.
#include "check/twice/results.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace graft::check {
namespace {

constexpr const char* kStream = "stream";
constexpr const char* kGroup = "group";
constexpr const char* kFailure = "failure";

std::string describe(const std::string& whose, const ResultRow& row) {
  if (row.source == kFailure) return whose + ": " + row.hash;
  std::string source = row.source;
  source.insert(std::string(row.source.starts_with(kGroup) ? kGroup : kStream).size(), " ");
  return whose + ": " + std::to_string(row.bytes) + " bytes behind command " +
         std::to_string(row.command) + " of " + source;
}

// How often each hash comes, of results of one size.
using Hashes = std::map<std::string, uint64_t>;
std::map<uint64_t, Hashes> by_size(const std::vector<ResultRow>& rows) {
  std::map<uint64_t, Hashes> sizes;
  for (const ResultRow& row : rows) {
    if (row.source.starts_with(kStream)) ++sizes[row.bytes][row.hash];
  }
  return sizes;
}

uint64_t total(const Hashes& hashes) {
  uint64_t sum = 0;
  for (const auto& [hash, count] : hashes) sum += count;
  return sum;
}

}  // namespace

RunResults read_results(const std::string& folder) {
  RunResults run;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    // PREFIX.DRIVER.RANK.PROCESS
    const std::string name = entry.path().filename();
    const size_t first = name.find('.'), last = name.rfind('.');
    if (first == std::string::npos || last <= first) continue;
    std::vector<ResultRow>& rows = run[name.substr(first + 1, last - first - 1)];
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      ResultRow row;
      if (!(words >> row.source >> row.bytes >> row.hash >> row.command)) break;
      rows.push_back(row);
    }
  }
  return run;
}

uint64_t count_of(const RunResults& run) {
  uint64_t count = 0;
  for (const auto& [whose, rows] : run) {
    for (const ResultRow& row : rows) count += row.source == kFailure ? 0 : 1;
  }
  return count;
}

std::string new_failure(const RunResults& serial, const RunResults& run) {
  std::set<std::string> known;
  for (const auto& [whose, rows] : serial) {
    for (const ResultRow& row : rows) known.insert(row.source == kFailure ? row.hash : "");
  }
  for (const auto& [whose, rows] : run) {
    for (const ResultRow& row : rows) {
      if (row.source == kFailure && !known.contains(row.hash)) return describe(whose, row);
    }
  }
  return "";
}

std::string difference(const RunResults& serial, const RunResults& run) {
  for (const auto& [whose, rows] : run) {
    const auto before = serial.find(whose);
    if (before == serial.end()) continue;
    const auto expected = by_size(before->second), found = by_size(rows);
    std::map<uint64_t, Hashes> seen;
    for (const ResultRow& row : rows) {
      const auto size = expected.find(row.bytes);
      if (!row.source.starts_with(kStream) || size == expected.end()) continue;
      const Hashes& known = size->second;
      const auto hash = known.find(row.hash);
      const uint64_t count = ++seen[row.bytes][row.hash];
      const bool as_many = total(known) == total(found.at(row.bytes));
      if (hash == known.end() || (as_many && count > hash->second)) return describe(whose, row);
    }
  }
  return "";
}

std::string unlike_ranks(const RunResults& run) {
  // The same collective of one group, by its id and its number there.
  std::map<std::pair<std::string, uint64_t>, std::string> known;
  for (const auto& [whose, rows] : run) {
    std::map<std::string, uint64_t> numbers;
    for (const ResultRow& row : rows) {
      if (!row.source.starts_with(kGroup)) continue;
      const std::string group = row.source.substr(0, row.source.find('.'));
      const uint64_t number = ++numbers[row.source];
      const std::string value = std::to_string(row.bytes) + " " + row.hash;
      const auto [place, fresh] = known.try_emplace({group, number}, value);
      if (!fresh && place->second != value) return describe(whose, row);
    }
  }
  return "";
}

}  // namespace graft::check
