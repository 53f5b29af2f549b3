// include/graft/driver_blob.h: what program_compile of a driver written in C++ writes around its
// compiler's output, so that program_load finds damage; optional, all of it inline.
//
//   graft::write_blob("graftcl1", binary, identity, blob);               // program_compile
//   status = graft::read_blob("graftcl1", bytes, identity, &binary);     // program_load
//
// The magic says whose blobs they are and in which layout; identity is what a blob depends on, best
// the text of toolchain_fingerprint: a blob of another compiler, driver or processor is then
// refused when it is loaded, and not only left out by the key of Graft's cache.
//
// Nothing here protects from a blob that somebody made on purpose: its code runs as the user's.
// All of it is thread-safe. Failures are reported as slots report them (driver_slot.h).
#ifndef GRAFT_DRIVER_BLOB_H_
#define GRAFT_DRIVER_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "graft/driver_slot.h"

// Two drivers of one process must not share the code: each may be built with another release of
// this header.
#pragma GCC visibility push(hidden)

namespace graft {

// FNV-1a: of the same bytes always the same; finds damage, is no protection.
inline uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

// What stands before the binary. The numbers are the machine's own: blobs do not travel.
struct BlobHeader {
  char magic[8];      // without a zero byte at its end
  uint64_t identity;  // checksum of its text
  uint64_t bytes;     // of the binary
  uint64_t checksum;  // of the binary
};

// Writes binary as a blob for what is called identity, in two pieces. magic: 8 characters. blob:
// the sink of program_compile. binary may be empty, but read_blob refuses such a blob.
inline void write_blob(const char (&magic)[9], std::string_view binary, std::string_view identity,
                       graft_sink blob) {
  BlobHeader header = {{}, checksum(identity), binary.size(), checksum(binary)};
  std::memcpy(header.magic, magic, sizeof header.magic);
  blob.write(blob.context, &header, sizeof header);
  blob.write(blob.context, binary.data(), binary.size());
}

// Finds the binary in a blob; INVALID_ARGUMENT, with a message, if it is damaged or was compiled
// for something else. *out_binary points into blob.
inline graft_status read_blob(const char (&magic)[9], std::string_view blob,
                              std::string_view identity, std::string_view* out_binary) {
  BlobHeader header = {};
  if (blob.size() > sizeof header) std::memcpy(&header, blob.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof header.magic) != 0 ||
      header.bytes != blob.size() - sizeof header) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: not a whole blob of this driver");
  }
  if (header.identity != checksum(identity)) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_load: the blob was compiled for another device, driver or memory than " +
                    std::string(identity));
  }
  const std::string_view binary = blob.substr(sizeof header);
  if (checksum(binary) != header.checksum) {
    return fail(GRAFT_INVALID_ARGUMENT, "program_load: the blob is damaged");
  }
  *out_binary = binary;
  return GRAFT_OK;
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_BLOB_H_
