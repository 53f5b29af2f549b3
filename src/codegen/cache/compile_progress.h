// src/codegen/cache/compile_progress.h: tells a user who waits that kernels are being compiled.
#pragma once

#include <string>

namespace graft {

// One compilation for a device, from construction to destruction. Once compilations have gone on
// for more than two seconds, with no pause as long between them, standard error shows
// "graft: compiling kernels for <device>: 12 done, 3 waiting", every two seconds at most. Only
// where it is a terminal or GRAFT_PROGRESS=1; GRAFT_PROGRESS=0 never. Any thread; several devices
// share the numbers, the line names the latest.
class CompileProgress {
 public:
  explicit CompileProgress(const std::string& device);
  ~CompileProgress();
  CompileProgress(const CompileProgress&) = delete;
  CompileProgress& operator=(const CompileProgress&) = delete;

 private:
  const std::string device_;
};

}  // namespace graft
