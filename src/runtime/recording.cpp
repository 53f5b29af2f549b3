// src/runtime/recording.cpp: commands that streams took while they recorded, to be run again.
#include "runtime/recording.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/device.h"
#include "runtime/error.h"
#include "runtime/op_tag.h"
#include "runtime/write_epochs.h"

namespace graft {
namespace {

template <class... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <class... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

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
      throw Error(GRAFT_UNSUPPORTED, "More graphs draw random numbers than can be told apart.");
    }
    return number;
  }
  std::shared_ptr<RecordedDraws> get(uint64_t number) {
    const std::lock_guard lock(mutex);
    std::shared_ptr<RecordedDraws> found;
    if (number < by_number.size()) found = by_number[number].lock();
    if (found != nullptr) return found;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "The graph whose random numbers are to be repeated is gone: keep it as long as "
                "what was captured with it is used.");
  }
  RandomState last(const RecordedDraws& draws) {
    const std::lock_guard lock(mutex);
    if (draws.last) return *draws.last;
    throw Error(GRAFT_INVALID_ARGUMENT,
                "The graph whose random numbers are to be repeated was not replayed yet: replay it "
                "first.");
  }
};

AllDraws& all_draws() {
  static auto* draws = new AllDraws;
  return *draws;
}

uint64_t source_number(uint64_t offset) {
  return (offset & ~RecordedOffset::kFlag) >> RecordedOffset::kSourceShift;
}

const char* kind_text(uint32_t kind) {
  if (kind == GRAFT_HOST_TO_DEVICE) return "from the host";
  return kind == GRAFT_DEVICE_TO_HOST ? "to the host" : "on the device";
}

}  // namespace

Recording::Recording(Device& device, uint64_t pool) : device_(device), pool_(pool) {
  device.allocator().retain_pool(pool);
}

Recording::~Recording() {
  for (Stream* stream : replayed_on_) stream->settle();
  device_.allocator().release_pool(pool_);
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
  if (ended_) throw Error(GRAFT_INVALID_ARGUMENT, "The capture has ended: begin another one.");
  streams_.push_back(&stream);
}

std::vector<Stream*> Recording::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  return std::exchange(streams_, {});
}

void Recording::add_copy(uint64_t to, uint64_t from, uint64_t bytes, uint32_t kind, uint32_t tag) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(Copy{to, from, bytes, kind, tag});
  ++counts_.copies;
  counts_.copied_bytes += bytes;
}

void Recording::add_fill(graft_address to, uint64_t bytes, const void* pattern,
                         uint32_t pattern_bytes, uint32_t tag) {
  const std::lock_guard lock(mutex_);
  Fill fill{to, bytes, {}, pattern_bytes, tag};
  std::memcpy(fill.pattern.data(), pattern, std::min<size_t>(pattern_bytes, fill.pattern.size()));
  commands_.emplace_back(fill);
  ++counts_.fills;
  counts_.filled_bytes += bytes;
}

void Recording::add_launch(graft_kernel kernel, const graft_launch& launch) {
  const std::lock_guard lock(mutex_);
  const size_t first = arguments_.size();
  for (uint32_t i = 0; i < launch.argument_count; ++i) {
    graft_argument argument = launch.arguments[i];
    const uint32_t mark = std::exchange(argument.unused, 0);
    if (mark != 0) {
      patches_.push_back({arguments_.size(), static_cast<RandomPart>(mark & 3),
                          all_draws().get(mark >> 2), argument.value & RecordedOffset::kBlocks});
    }
    arguments_.push_back(argument);
  }
  commands_.emplace_back(Launch{kernel, launch, first});
  ++counts_.launches;
}

void Recording::add_call(std::string_view slot, uint32_t tag,
                         std::function<graft_status(graft_stream)> call) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(Call{std::string(slot), tag, std::move(call)});
  ++counts_.launches;
}

void Recording::add_check(Check check, void* context) {
  const std::lock_guard lock(mutex_);
  const std::pair entry{check, context};
  if (std::ranges::find(checks_, entry) == checks_.end()) checks_.push_back(entry);
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
    const RandomState state = all_draws().last(*patch.draws);
    uint64_t& value = arguments_[patch.argument].value;
    if (patch.part == RandomPart::kKeyLow) value = state.seed & 0xffffffffu;
    if (patch.part == RandomPart::kKeyHigh) value = state.seed >> 32;
    if (patch.part == RandomPart::kOffset) value = state.offset + patch.blocks;
  }
}

graft_status Recording::give(const graft_driver_table& table, graft_stream stream,
                             const Command& command, std::string_view* out_slot) const {
  const Overloaded visitor{
      [&](const Copy& copy) {
        *out_slot = "copy";
        const graft_status status =
            Driver::call(table.copy, stream, copy.to, copy.from, copy.bytes, copy.kind, copy.tag);
        if (writes_are_watched() && copy.kind != GRAFT_DEVICE_TO_HOST) note_write(device_, copy.to);
        return status;
      },
      [&](const Fill& fill) {
        *out_slot = "fill";
        const graft_status status = Driver::call(table.fill, stream, fill.to, fill.bytes,
                                                 fill.pattern.data(), fill.pattern_bytes, fill.tag);
        if (writes_are_watched()) note_write(device_, fill.to);
        return status;
      },
      [&](const Launch& recorded) {
        *out_slot = "kernel_launch";
        graft_launch launch = recorded.launch;
        launch.arguments = arguments_.data() + recorded.first;
        const graft_status status =
            Driver::call(table.kernel_launch, stream, recorded.kernel, &launch);
        if (writes_are_watched()) note_launch(device_, launch);
        return status;
      },
      [&](const Call& call) {
        *out_slot = call.slot;
        const graft_status status = call.call(stream);
        if (writes_are_watched()) note_any_write(device_);  // nobody knows what the plan writes
        return status;
      },
  };
  return std::visit(visitor, command);
}

graft_status Recording::run(const graft_driver_table& table, Stream& stream,
                            std::string_view* out_slot) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::find(replayed_on_, &stream) == replayed_on_.end()) {
    replayed_on_.push_back(&stream);
  }
  patch_random();
  for (const Command& command : commands_) {
    const graft_status status = give(table, stream.handle(), command, out_slot);
    if (status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}

std::string Recording::text() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const Overloaded visitor{
      [&](const Copy& copy) {
        text += "copy of " + std::to_string(copy.bytes) + " bytes " + kind_text(copy.kind) + ", " +
                op_name(copy.tag);
      },
      [&](const Fill& fill) {
        text += "fill of " + std::to_string(fill.bytes) + " bytes, " + op_name(fill.tag);
      },
      [&](const Launch& launch) {
        text += "launch over " + std::to_string(launch.launch.grid[0]) + " items, " +
                op_name(launch.launch.tag);
      },
      [&](const Call& call) { text += call.slot + ", " + op_name(call.tag); },
  };
  for (size_t i = 0; i < commands_.size(); ++i) {
    text += std::to_string(i) + ": ";
    std::visit(visitor, commands_[i]);
    text += "\n";
  }
  return text;
}

}  // namespace graft
