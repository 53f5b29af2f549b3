// src/codegen/cache/carried_blobs.cpp: compiled programs that a file brings along, beside those on
// disk.
#include "codegen/cache/carried_blobs.h"

#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace graft {
namespace {

// Never destroyed: kernels may be asked for while the process ends.
struct Blobs {
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::map<std::string, std::string, std::greater<>>> carried;
  std::map<std::string, std::string> noted;
  bool notes = false;
  std::string processor;  // of what is noted
};

Blobs& blobs() {
  static auto* const all = new Blobs();
  return *all;
}

}  // namespace

void carry_blobs(std::vector<CarriedBlob> given) {
  const std::lock_guard lock(blobs().mutex);
  for (CarriedBlob& one : given) {
    auto& of_hash = blobs().carried[std::move(one.hash)];
    of_hash.insert_or_assign(std::move(one.processor), std::move(one.bytes));
  }
}

std::vector<CarriedBlob> carried_blobs(const std::string& hash) {
  const std::lock_guard lock(blobs().mutex);
  std::vector<CarriedBlob> found;
  const auto carried = blobs().carried.find(hash);
  if (carried == blobs().carried.end()) return found;
  for (const auto& [processor, bytes] : carried->second) {
    if (blobs().notes && processor != blobs().processor) continue;
    found.insert(processor.empty() ? found.begin() : found.end(), {hash, bytes, processor});
  }
  return found;
}

std::vector<CarriedBlob> carried_levels() {
  const std::lock_guard lock(blobs().mutex);
  std::map<std::string, CarriedBlob> levels;
  for (const auto& [hash, of_hash] : blobs().carried) {
    for (const auto& [processor, bytes] : of_hash) {
      if (!processor.empty()) levels.try_emplace(processor, CarriedBlob{hash, bytes, processor});
    }
  }
  std::vector<CarriedBlob> found;
  for (auto& [processor, blob] : levels) found.push_back(std::move(blob));
  return found;
}

void begin_noting_blobs(const std::string& processor) {
  const std::lock_guard lock(blobs().mutex);
  blobs().notes = true;
  blobs().processor = processor;
}

void note_blob(const std::string& hash, const std::string& bytes) {
  const std::lock_guard lock(blobs().mutex);
  if (blobs().notes) blobs().noted.insert_or_assign(hash, bytes);
}

std::vector<CarriedBlob> noted_blobs() {
  const std::lock_guard lock(blobs().mutex);
  std::vector<CarriedBlob> all;
  for (const auto& [hash, bytes] : blobs().noted) {
    all.push_back({hash, bytes, blobs().processor});
  }
  return all;
}

}  // namespace graft
