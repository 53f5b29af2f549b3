// src/compiler/run/memory.h: memory of one run, which goes back however the run ends.
#pragma once

#include <utility>
#include <vector>

#include "compiler/nodes/execution_host.h"

namespace graft::compiler {

// One piece, which the host gives when it is made (and may refuse by throwing) and takes back when
// it dies, in the stream's order both. bytes may be 0: the address is 0 then.
class Arena {
 public:
  Arena(ExecutionHost& host, Stream& stream, uint64_t bytes)
      : address(bytes == 0 ? 0 : host.allocate(bytes, stream)), host_(host), stream_(stream) {}
  ~Arena() {
    if (address != 0) host_.release(address, stream_);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const graft_address address;

 private:
  ExecutionHost& host_;
  Stream& stream_;
};

// Pieces that come and go in between, by number; those that are left go when it dies. addresses:
// one for each number, 0 while it has no memory; borrowed, so that calls allocate nothing.
class PassingBuffers {
 public:
  PassingBuffers(ExecutionHost& host, Stream& stream, std::vector<graft_address>* addresses)
      : addresses_(*addresses), host_(host), stream_(stream) {}
  ~PassingBuffers() {
    for (size_t i = 0; i < addresses_.size(); ++i) end(i);
  }
  PassingBuffers(const PassingBuffers&) = delete;
  PassingBuffers& operator=(const PassingBuffers&) = delete;

  // Throws what the host throws. REQUIRES: the buffer has no memory.
  graft_address begin(size_t buffer, uint64_t bytes) {
    return addresses_[buffer] = bytes == 0 ? 0 : host_.allocate(bytes, stream_);
  }
  // Nothing happens to a buffer without memory.
  void end(size_t buffer) {
    const graft_address address = std::exchange(addresses_[buffer], 0);
    if (address != 0) host_.release(address, stream_);
  }

 private:
  std::vector<graft_address>& addresses_;
  ExecutionHost& host_;
  Stream& stream_;
};

}  // namespace graft::compiler
