// include/graft/driver_blob.h: the header that program_compile of a driver in C++ writes before its
// compiler's output, so that program_load finds damage; optional, inline only.
//
//   graft::write_blob("graftcl1", binary, identity, blob);               // program_compile
//   status = graft::read_blob("graftcl1", bytes, identity, &binary);     // program_load
//
// The magic names the driver and the layout. identity names all that a blob depends on, best by the
// text of toolchain_fingerprint: read_blob then refuses a blob of another compiler, driver or
// processor, which the key of Graft's cache alone would not.
//
// The header does not protect against a forged blob, whose code runs with the user's rights.
// All functions are thread-safe and report failures as slots do (driver_slot.h).
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_DRIVER_BLOB_H_
#define GRAFT_DRIVER_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "graft/driver_slot.h"

// Two drivers of one process must not share this code: each may be built with another release of
// the header.
#pragma GCC visibility push(hidden)

namespace graft {

// FNV-1a: equal for equal bytes; finds damage, not forgery.
inline uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  }
  return hash;
}

// Precedes the binary. Its numbers have the machine's byte order: blobs stay on one machine.
struct BlobHeader {
  char magic[8];      // without a zero byte at its end
  uint64_t identity;  // checksum of its text
  uint64_t bytes;     // of the binary
  uint64_t checksum;  // of the binary
};

// Writes binary as a blob for identity, in two calls of the sink. magic: 8 characters. blob:
// program_compile's sink. binary may be empty, but read_blob refuses an empty binary.
inline void write_blob(const char (&magic)[9], std::string_view binary, std::string_view identity,
                       graft_sink blob) {
  BlobHeader header = {{}, checksum(identity), binary.size(), checksum(binary)};
  std::memcpy(header.magic, magic, sizeof header.magic);
  blob.write(blob.context, &header, sizeof header);
  blob.write(blob.context, binary.data(), binary.size());
}

// Finds the binary in a blob; INVALID_ARGUMENT, with a message, if the blob is damaged or has
// another identity. *out_binary points into blob.
inline graft_status read_blob(const char (&magic)[9], std::string_view blob,
                              std::string_view identity, std::string_view* out_binary) {
  BlobHeader header = {};
  if (blob.size() > sizeof header) std::memcpy(&header, blob.data(), sizeof header);
  if (std::memcmp(header.magic, magic, sizeof header.magic) != 0 ||
      header.bytes != blob.size() - sizeof header) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_load: the blob is cut or another driver's; compile the program again");
  }
  if (header.identity != checksum(identity)) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_load: the blob was compiled for another device, driver or memory than " +
                    std::string(identity));
  }
  const std::string_view binary = blob.substr(sizeof header);
  if (checksum(binary) != header.checksum) {
    return fail(GRAFT_INVALID_ARGUMENT,
                "program_load: the blob is damaged; compile the program again");
  }
  *out_binary = binary;
  return GRAFT_OK;
}

}  // namespace graft

#pragma GCC visibility pop

#endif  // GRAFT_DRIVER_BLOB_H_
