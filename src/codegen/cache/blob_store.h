// src/codegen/cache/blob_store.h: compiled programs on disk, shared by processes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace graft {

// A folder of files. What cannot be read or written is as if it were not there: the caller compiles
// again, and the process prints one warning. Thread-safe, and safe with other processes on the same
// folder: a file is written under another name and renamed, its checksum finds damage.
class BlobStore {
 public:
  // Makes the folder (mode 0700) when it is first needed. It must belong to this user and to nobody
  // else's access; otherwise the store stays empty. An empty folder name or a limit of 0 keeps
  // nothing. Above limit bytes the files that were used least recently go.
  BlobStore(std::string folder, uint64_t limit);

  // Whether what is written may be read again.
  bool keeps();

  // The bytes under a name (a hash: letters and digits); nothing when missing or damaged. A
  // damaged file is removed.
  std::optional<std::string> read(const std::string& name);

  void write(const std::string& name, std::string_view bytes);

 private:
  bool ready();
  bool open_folder();
  void warn(const std::string& what);
  bool write_file(const std::string& path, std::string_view bytes);
  uint64_t bytes_of_folder() const;
  void evict();

  const std::string folder_;
  const uint64_t limit_;
  std::mutex mutex_;
  bool asked_ = false;  // guarded by mutex_, as are the next ones
  bool usable_ = false;
  bool warned_ = false;
  std::optional<uint64_t> bytes_;  // in the folder, as far as this process knows, once it wrote
};

// The store of the process: $GRAFT_CACHE_DIR, else $XDG_CACHE_HOME/graft, else ~/.cache/graft, of
// at most $GRAFT_CACHE_LIMIT bytes (256 MiB; 0: no store).
BlobStore& blob_store();

}  // namespace graft
