// drivers/host/memory/range.h: hands out pieces of a range of numbers, best fit first.
#ifndef GRAFT_DRIVERS_HOST_MEMORY_RANGE_H_
#define GRAFT_DRIVERS_HOST_MEMORY_RANGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace graft::host {

// Not thread-safe. Every piece begins at, and is, a multiple of the granule.
class Range {
 public:
  // REQUIRES: begin and end are multiples of granule.
  Range(uint64_t begin, uint64_t end, uint64_t granule);

  // Begin of a free piece of at least bytes; false when none is left.
  bool take(uint64_t bytes, uint64_t* out_begin);

  // Gives a taken piece back; bytes as at take.
  void give(uint64_t begin, uint64_t bytes);

  // Bytes rounded up to the granule.
  uint64_t round(uint64_t bytes) const { return (bytes + granule_ - 1) / granule_ * granule_; }

 private:
  void insert(uint64_t begin, uint64_t bytes);
  void erase(std::map<uint64_t, uint64_t>::iterator piece);

  uint64_t granule_;
  std::map<uint64_t, uint64_t> by_begin_;             // begin -> bytes
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_;  // (bytes, begin)
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_MEMORY_RANGE_H_
