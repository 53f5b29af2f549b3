// tests/drivers/check/twice/results.h: what the trace layer wrote by its setting results, compared.
#ifndef GRAFT_TESTS_DRIVERS_CHECK_TWICE_RESULTS_H_
#define GRAFT_TESTS_DRIVERS_CHECK_TWICE_RESULTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace graft::check {

// One result: bytes that the host got, and behind which command of which stream or group.
struct ResultRow {
  std::string
      source;  // "stream2"; of a collective "group123.0", with a hash of its id and the rank
  uint64_t bytes = 0;
  std::string hash;
  uint64_t command = 0;
};

// Of one run of a program, by driver and rank ("acme.0"); a rank's processes are one.
using RunResults = std::map<std::string, std::vector<ResultRow>>;

// Reads each file of folder. A line that is cut, as by a process that died, ends its file.
RunResults read_results(const std::string& folder);

uint64_t count_of(const RunResults& run);

// "" or which result of run no serial run has, for a person. Threads and polling may change the
// order of results and how many there are of a size: for a size with as many as before, each hash
// must come as often; otherwise each must have come at all.
std::string difference(const RunResults& serial, const RunResults& run);

// "" or the first failure of a slot that no serial run has: "acme.0: stream_synchronize:TIMEOUT".
std::string new_failure(const RunResults& serial, const RunResults& run);

// "" or which collective gave two ranks of its group unlike bytes.
std::string unlike_ranks(const RunResults& run);

}  // namespace graft::check

#endif  // GRAFT_TESTS_DRIVERS_CHECK_TWICE_RESULTS_H_
