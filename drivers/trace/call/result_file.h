// drivers/trace/call/result_file.h: what the host got from the device, as a file by which two runs
// of a program are compared (tests/drivers/check/twice/twice.h reads it).
#ifndef GRAFT_DRIVERS_TRACE_CALL_RESULT_FILE_H_
#define GRAFT_DRIVERS_TRACE_CALL_RESULT_FILE_H_

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

namespace graft::trace {

// A hash of bytes of this process's memory, to tell values apart: no check against a forger.
// 0: the memory is not there any more. Reads it by /proc/self/mem, which tells instead of crashing.
uint64_t hash_of_memory(uint64_t address, uint64_t bytes);

// One file of a process and driver, a line for each result. Thread-safe.
class ResultFile {
 public:
  ~ResultFile();

  // The file is named path.DRIVER.RANK.PROCESS; RANK is the variable RANK, or 0. Returns "" or the
  // reason why the file cannot be written.
  std::string open(const std::string& path, const std::string& driver);
  bool is_open() const { return file_ != nullptr; }

  // "KEY BYTES HASH COMMAND". key: a word, of the stream or group; command: its number there.
  void write(const std::string& key, uint64_t bytes, uint64_t hash, uint64_t command);
  // A slot has failed: "failure 0 SLOT:STATUS 0".
  void write_failure(const std::string& slot, const std::string& status);

 private:
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
};

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_RESULT_FILE_H_
