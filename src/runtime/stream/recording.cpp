// src/runtime/stream/recording.cpp: commands that streams took while they recorded, to be run
// again.
#include "runtime/stream/recording.h"

#include <algorithm>
#include <optional>

#include "runtime/driver/error.h"
#include "runtime/driver/open_device.h"
#include "runtime/stream/stream.h"

namespace graft {
namespace {

// The draws of every recording, by the number in their offsets.
struct AllDraws {
  std::mutex mutex;  // guards what follows, and RecordedDraws::last
  std::vector<std::weak_ptr<RecordedDraws>> by_number;
  static constexpr size_t kMost = RecordedOffset::kFlag >> RecordedOffset::kSourceShift;

  uint64_t add(const std::shared_ptr<RecordedDraws>& draws) {
    const std::lock_guard lock(mutex);
    const auto unused =
        std::ranges::find_if(by_number, [](const auto& one) { return one.expired(); });
    const auto number = static_cast<uint64_t>(unused - by_number.begin());
    if (unused != by_number.end()) {
      *unused = draws;
    } else if (number < kMost) {
      by_number.push_back(draws);
    } else {
      throw Error(GRAFT_UNSUPPORTED, "Too many live graphs use random numbers (limit " +
                                         std::to_string(kMost) + "). Reset unused graphs.");
    }
    return number;
  }
  std::shared_ptr<RecordedDraws> get(uint64_t number) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<RecordedDraws> found;
    if (number < by_number.size()) found = by_number[number].lock();
    if (found != nullptr) return found;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "The graph that drew the random numbers is gone, and this backward pass needs "
                "them: keep the graph while you use what it captured.");
  }
  RandomState last(const RecordedDraws& draws) {
    const std::lock_guard lock(mutex);
    if (draws.last) return *draws.last;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "The graph that draws the random numbers was not replayed, and this backward pass "
                "needs them: replay the graph first.");
  }
};

AllDraws& all_draws() {
  static auto* draws = new AllDraws;
  return *draws;
}

uint64_t source_number(uint64_t offset) {
  return (offset & ~RecordedOffset::kFlag) >> RecordedOffset::kSourceShift;
}

}  // namespace

Recording::~Recording() {
  for (Stream* stream : replayed_on_) stream->settle();
}

size_t Recording::size() const {
  const std::lock_guard lock(mutex_);
  return commands_.size();
}

bool Recording::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void Recording::join(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (ended_) throw Error(GRAFT_INVALID_ARGUMENT, "The capture has ended: begin another capture.");
  streams_.push_back(&stream);
}

std::vector<Stream*> Recording::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  return std::exchange(streams_, {});
}

void Recording::add(Command command) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<RecordedDraws> draws;
  uint64_t offset = 0;
  if (LaunchCommand* launch = launch_of(command); launch != nullptr && !launch->fixed()) {
    offset = launch->launch.arguments[launch->state + 2].value;
    if ((offset & RecordedOffset::kFlag) != 0) {
      draws = all_draws().get(source_number(offset));
    } else {
      launch->state = LaunchArguments::kDrawsNothing;
    }
  }
  Command& added = commands_.add(std::move(command));
  if (draws == nullptr) return;
  const LaunchCommand& launch = *launch_of(added);
  patches_.push_back(
      {&launch.kept[launch.state], std::move(draws), offset & RecordedOffset::kBlocks});
}

void Recording::add(const CommandList::Check& check) {
  const std::lock_guard lock(mutex_);
  commands_.add(check);
}

void Recording::keep(std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(owner));
}

void Recording::Source::move_to(uint64_t offset) {
  next = offset;
  const bool here = (offset & ~RecordedOffset::kBlocks) == first;
  if (here) draws->blocks = offset & RecordedOffset::kBlocks;
}

Recording::Source& Recording::known(const std::shared_ptr<RandomSource>& source) {
  const auto found = std::ranges::find_if(
      sources_, [&](const Source& known) { return known.draws->source == source; });
  if (found != sources_.end()) return *found;
  auto draws = std::make_shared<RecordedDraws>(RecordedDraws{source, 0, std::nullopt});
  const uint64_t number = all_draws().add(draws);
  const uint64_t first = RecordedOffset::kFlag | number << RecordedOffset::kSourceShift;
  return sources_.emplace_back(Source{first, first, std::move(draws)});
}

uint64_t Recording::draw(const std::shared_ptr<RandomSource>& source, uint64_t blocks) {
  const std::lock_guard lock(mutex_);
  Source& from = known(source);
  const uint64_t begin = from.next;
  from.move_to(begin + blocks);
  return begin;
}

void Recording::rewind(const std::shared_ptr<RandomSource>& source, uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if ((offset & RecordedOffset::kFlag) != 0) all_draws().get(source_number(offset));
  known(source).move_to(offset);
}

RandomState replayed_state(uint64_t offset) {
  RandomState state = all_draws().last(*all_draws().get(source_number(offset)));
  state.offset += offset & RecordedOffset::kBlocks;
  return state;
}

void Recording::patch_random() {
  for (const Source& source : sources_) {
    const RandomState begin = source.draws->source->advance(source.draws->blocks);
    const std::lock_guard lock(all_draws().mutex);
    source.draws->last = begin;
  }
  for (const Patch& patch : patches_) {
    const RandomState now = all_draws().last(*patch.draws);
    patch.state[0].value = now.seed & 0xffffffffu;
    patch.state[1].value = now.seed >> 32;
    patch.state[2].value = now.offset + patch.blocks;
  }
}

void Recording::make_graphs() {
  const std::lock_guard lock(mutex_);
  commands_.make_graphs(device_);
}

void Recording::replay(Stream& stream) {
  if (&stream.device() != &device_) device_.refuse_unusable();  // it was reset
  stream.replay(commands_, [this, &stream] {
    std::unique_lock lock(mutex_);
    if (std::ranges::find(replayed_on_, &stream) == replayed_on_.end()) {
      replayed_on_.push_back(&stream);
    }
    patch_random();
    return lock;
  });
}

std::string Recording::text() {
  const std::lock_guard lock(mutex_);
  return commands_.text();
}

}  // namespace graft
