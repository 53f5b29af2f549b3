// drivers/trace/call/log.cpp: the calls, as a file that chrome://tracing and Perfetto open.
#include "call/log.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace graft::trace {

std::string json_text(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') {
      out += '\\';
      out += letter;
    } else if (code < 0x20 || code > 0x7e) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
      out += escaped;
    } else {
      out += letter;
    }
  }
  return out;
}

std::string status_text(graft_status status) {
  switch (status) {
#define GRAFT_TRACE_NAME(name, value, text) \
  case GRAFT_##name:                        \
    return #name;
    GRAFT_STATUSES(GRAFT_TRACE_NAME)
#undef GRAFT_TRACE_NAME
  }
  return std::to_string(static_cast<int>(status));
}

std::string CallLog::open(const std::string& path, const std::string& driver) {
  std::string name = path;
  const size_t slash = name.rfind('/');
  size_t dot = name.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) dot = name.size();
  name.insert(dot, "." + driver + "." + std::to_string(getpid()));
  file_ = std::fopen(name.c_str(), "we");
  if (file_ == nullptr) return "cannot write '" + name + "': " + std::strerror(errno);
  std::fprintf(file_,
               "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": %d, \"tid\": 0, "
               "\"args\": {\"name\": \"driver %s\"}}",
               getpid(), json_text(driver).c_str());
  return "";
}

void CallLog::write(const char* category, const char* slot, int64_t begin_ns, int64_t took_ns,
                    graft_status status, const std::string& arguments) {
  thread_local const long thread = syscall(SYS_gettid);
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return;
  std::fprintf(file_,
               ",\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, "
               "\"pid\": %d, \"tid\": %ld, \"args\": {%s%s\"status\": \"%s\"}}",
               slot, *category == '\0' ? "graft.driver" : category, double(begin_ns) / 1e3,
               double(took_ns) / 1e3, getpid(), thread, arguments.c_str(),
               arguments.empty() ? "" : ", ", status_text(status).c_str());
}

void CallLog::close() {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return;
  std::fputs("\n]\n", file_);
  std::fclose(file_);
  file_ = nullptr;
}

}  // namespace graft::trace
