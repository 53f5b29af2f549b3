// drivers/host/memory/range.cpp: hands out pieces of a range of numbers, best fit first.
#include "range.h"

#include <iterator>

namespace graft::host {

Range::Range(uint64_t begin, uint64_t end, uint64_t granule) : granule_(granule) {
  insert(begin, end - begin);
}

bool Range::take(uint64_t bytes, uint64_t* out_begin) {
  uint64_t wanted = round(bytes);
  if (wanted < bytes) return false;
  auto fit = by_bytes_.lower_bound({wanted, 0});
  if (fit == by_bytes_.end()) return false;
  auto [found, begin] = *fit;
  erase(by_begin_.find(begin));
  if (found > wanted) insert(begin + wanted, found - wanted);
  *out_begin = begin;
  return true;
}

void Range::give(uint64_t begin, uint64_t bytes) {
  uint64_t size = round(bytes);
  auto next = by_begin_.lower_bound(begin);
  if (next != by_begin_.begin()) {
    auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      size += previous->second;
      erase(previous);
    }
  }
  if (next != by_begin_.end() && begin + size == next->first) {
    size += next->second;
    erase(next);
  }
  insert(begin, size);
}

void Range::insert(uint64_t begin, uint64_t bytes) {
  by_begin_.emplace(begin, bytes);
  by_bytes_.emplace(bytes, begin);
}

void Range::erase(std::map<uint64_t, uint64_t>::iterator piece) {
  by_bytes_.erase({piece->second, piece->first});
  by_begin_.erase(piece);
}

}  // namespace graft::host
