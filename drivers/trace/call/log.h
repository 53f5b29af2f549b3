// drivers/trace/call/log.h: the calls, as a file that chrome://tracing and Perfetto open.
#ifndef GRAFT_DRIVERS_TRACE_CALL_LOG_H_
#define GRAFT_DRIVERS_TRACE_CALL_LOG_H_

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "graft/driver.h"

namespace graft::trace {

// One file of a process, a JSON array of complete events. Thread-safe.
class CallLog {
 public:
  // The process's number goes into the file's name, before its ending. Returns "" or the reason why
  // the file cannot be written.
  std::string open(const std::string& path, const std::string& driver);

  bool is_open() const { return file_ != nullptr; }

  // A call of slot that began at and took nanoseconds of the steady clock. arguments: a JSON
  // object's members.
  void write(const char* category, const char* slot, int64_t begin_ns, int64_t took_ns,
             graft_status status, const std::string& arguments);

  // Ends the array.
  void close();

 private:
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
};

// text with JSON's escapes.
std::string json_text(const std::string& text);

// "OK", or the number of a status that driver.h does not have.
std::string status_text(graft_status status);

}  // namespace graft::trace

#endif  // GRAFT_DRIVERS_TRACE_CALL_LOG_H_
