// include/graft/driver_blob.h: what program_compile of a driver written in C++ writes around its
// compiler's output, so that program_load finds damage; optional, all of it inline.
//
//   graft::write_blob("graftcl1", binary, identity, blob);               // program_compile
//   status = graft::read_blob("graftcl1", bytes, identity, &binary);     // program_load
//
// The magic says whose blobs they are and in which layout; identity is what a blob depends on, best
// the text of toolchain_fingerprint.
#ifndef GRAFT_DRIVER_BLOB_H_
#define GRAFT_DRIVER_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "graft/driver_slot.h"

#pragma GCC visibility push(hidden)

namespace graft {

// FNV-1a: of the same bytes always the same; finds damage, is no protection.
inline uint64_t checksum(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3u;
  return hash;
}

struct BlobHeader {
  char magic[8];
  uint64_t identity;  // checksum of its text
  uint64_t bytes;     // of the binary
  uint64_t checksum;  // of the binary
};

// Writes binary as a blob for what is called identity. magic: 8 characters.
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
