// src/runtime/stream/recording.h: commands that streams took while they recorded, to be run again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/stream/command_list.h"

namespace graft {

class OpenDevice;
class Stream;

// Where a generator's random numbers stand: the key and the next block of Philox.
struct RandomState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// A generator whose numbers recorded kernels draw. Any thread.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  // The state, which then moves on by blocks.
  virtual RandomState advance(uint64_t blocks) = 0;
};

// What one recording draws from one source.
struct RecordedDraws {
  std::shared_ptr<RandomSource> source;
  uint64_t blocks = 0;              // that one replay moves the source on by
  std::optional<RandomState> last;  // where the last replay began; by a lock of recording.cpp
};

// An offset of Philox that counts from wherever its source stands when the recording runs. The bits
// below say which draws of the process, and how many blocks after their begin.
struct RecordedOffset {
  static constexpr uint64_t kFlag = uint64_t{1} << 63;
  static constexpr int kSourceShift = 48;
  static constexpr uint64_t kBlocks = (uint64_t{1} << kSourceShift) - 1;
};

// What a recorded offset stood for in the last replay, for work outside of the recording that
// repeats its numbers. Throws Error INVALID_ARGUMENT before the first replay and when the recording
// is gone. Any thread.
GRAFT_EXPORT RandomState replayed_state(uint64_t offset);

// A list of commands in the order of their calls, whichever streams took them: a replay gives them
// all to one stream in that order, which every order between those streams allows. Made by
// Stream::begin_recording. Append before the end, by the streams that record; replay after it.
// Thread-safe.
class GRAFT_EXPORT Recording {
 public:
  // pool: the allocator's pool that the commands' memory comes from. Whoever makes the recording
  // lets it keep the pool, as Device::make_recording does.
  Recording(OpenDevice& device, uint64_t pool) : device_(device), pool_(pool) {}
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  OpenDevice& device() const { return device_; }
  uint64_t pool() const { return pool_; }
  size_t size() const;
  bool ended() const;

  // The state of a launch's generator may be a place that draw gave: each replay sets it anew.
  void add(Command command);
  void add(const CommandList::Check& check);

  // An offset for a kernel that draws blocks from source, which the recording keeps alive. Another
  // recording that uses it repeats the numbers of this one's last replay.
  uint64_t draw(const std::shared_ptr<RandomSource>& source, uint64_t blocks);

  // The next draw from source begins at offset: one that draw returned or would have returned
  // (draw of no blocks asks for it), also in another recording, whose numbers are then repeated;
  // or one without the flag, whose numbers are the same in each replay. A replay moves the source
  // on by the draws before the last place of this recording. Throws Error INVALID_ARGUMENT for a
  // place in a recording that is gone.
  void rewind(const std::shared_ptr<RandomSource>& source, uint64_t offset);

  // Holds what the commands use for as long as the recording lives.
  void keep(std::shared_ptr<const void> owner);

  // Called by the stream that begins to add commands. Throws Error INVALID_ARGUMENT after the end.
  void join(Stream& stream);

  // Takes no more commands; gives the streams that joined.
  std::vector<Stream*> end();

  // After the end: gives the device commands that follow each other as one, where its driver has
  // graphs.
  void make_graphs();

  // Queues the commands with fresh random numbers: Stream::replay. REQUIRES: ended, and the stream
  // is of the recording's device, or of that which has its place after a reset (throws Error then).
  void replay(Stream& stream);

  // A line per command: its kind, its op and its figures. For reading, in no stable form.
  std::string text();

 private:
  struct Source {
    uint64_t first;  // the offset of its first block here
    uint64_t next;   // where the next draw begins
    std::shared_ptr<RecordedDraws> draws;
    // Stands at offset from now on. Only places of this recording count as drawn.
    void move_to(uint64_t offset);
  };
  // The arguments of a launch that a generator's state takes.
  struct Patch {
    graft_argument* state;  // LaunchArguments::state
    std::shared_ptr<RecordedDraws> draws;
    uint64_t blocks;
  };

  // REQUIRES: mutex_ is held.
  Source& known(const std::shared_ptr<RandomSource>& source);
  void patch_random();

  OpenDevice& device_;
  const uint64_t pool_;
  mutable std::mutex mutex_;  // guards what follows
  bool ended_ = false;
  std::vector<Stream*> streams_;      // that record
  std::vector<Stream*> replayed_on_;  // whose commands may still use the memory
  CommandList commands_;
  std::vector<Source> sources_;
  std::vector<Patch> patches_;
  std::vector<std::shared_ptr<const void>> kept_;
};

}  // namespace graft
