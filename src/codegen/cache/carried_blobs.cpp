// src/codegen/cache/carried_blobs.cpp: compiled programs that a file brings along, beside those on
// disk.
#include "codegen/cache/carried_blobs.h"

#include <map>
#include <mutex>
#include <utility>

namespace graft {
namespace {

// Never destroyed: kernels may be asked for while the process ends.
struct Blobs {
  std::mutex mutex;
  std::map<std::string, std::string> carried, noted;  // guarded by mutex, as is the next
  bool notes = false;
};

Blobs& blobs() {
  static auto* const all = new Blobs();
  return *all;
}

}  // namespace

void carry_blobs(std::vector<CarriedBlob> given) {
  const std::lock_guard lock(blobs().mutex);
  for (CarriedBlob& one : given) {
    blobs().carried.insert_or_assign(std::move(one.hash), std::move(one.bytes));
  }
}

std::optional<std::string> carried_blob(const std::string& hash) {
  const std::lock_guard lock(blobs().mutex);
  const auto found = blobs().carried.find(hash);
  if (found == blobs().carried.end()) return std::nullopt;
  return found->second;
}

void begin_noting_blobs() {
  const std::lock_guard lock(blobs().mutex);
  blobs().notes = true;
}

void note_blob(const std::string& hash, const std::string& bytes) {
  const std::lock_guard lock(blobs().mutex);
  if (blobs().notes) blobs().noted.insert_or_assign(hash, bytes);
}

std::vector<CarriedBlob> noted_blobs() {
  const std::lock_guard lock(blobs().mutex);
  std::vector<CarriedBlob> all;
  for (const auto& [hash, bytes] : blobs().noted) all.push_back({hash, bytes});
  return all;
}

}  // namespace graft
