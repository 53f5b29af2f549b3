// drivers/trace/objects/trials.cpp: short programs of the layer's own, for what no command of the
// caller's shows.
#include "objects/trials.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace graft::trace {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kHoldUpBytes = 4 << 20;
constexpr int kHoldUpCopies = 16;

constexpr std::chrono::milliseconds kALittle(10);
void sleep_a_little(void*) { std::this_thread::sleep_for(kALittle); }

// A stream with its memory and events. After a failure it queues nothing more.
class TrialStream {
 public:
  TrialStream(const graft_driver_table& driver, graft_device device)
      : driver_(driver), device_(device) {
    note(driver_.stream_create(device_, 0, &stream_));
  }
  TrialStream(const TrialStream&) = delete;
  TrialStream& operator=(const TrialStream&) = delete;
  ~TrialStream() {
    if (stream_ != nullptr) driver_.stream_destroy(stream_);
    for (const graft_event event : events_) driver_.event_destroy(event);
    for (const graft_address address : memory_) driver_.memory_free(device_, address);
  }

  bool works() const { return works_; }
  graft_stream handle() const { return stream_; }
  void note(graft_status status) { works_ = works_ && status == GRAFT_OK; }

  graft_address allocate(uint64_t bytes) {
    graft_address address = 0;
    if (works_) note(driver_.memory_allocate(device_, bytes, &address));
    if (address != 0) memory_.push_back(address);
    return address;
  }

  graft_event record() {
    graft_event event = nullptr;
    if (works_) note(driver_.event_create(device_, 0, &event));
    if (!works_) return nullptr;
    events_.push_back(event);
    note(driver_.event_record(event, stream_));
    return event;
  }

  void wait_for(graft_event event) {
    if (works_) note(driver_.stream_wait_event(stream_, event));
  }

  // By a function that sleeps, or by copies, which take milliseconds in a processor's memory.
  void hold_up() {
    if (works_ && driver_.host_callback != nullptr) {
      const auto begin = std::chrono::steady_clock::now();
      note(driver_.host_callback(stream_, sleep_a_little, nullptr));
      if (std::chrono::steady_clock::now() - begin < kALittle / 2) return;  // it sleeps later
    }
    if (held_up_ == 0) held_up_ = allocate(2 * kHoldUpBytes);
    for (int i = 0; works_ && i < kHoldUpCopies; ++i) {
      note(driver_.copy(stream_, held_up_ + (i % 2) * kHoldUpBytes,
                        held_up_ + (1 - i % 2) * kHoldUpBytes, kHoldUpBytes, GRAFT_DEVICE_TO_DEVICE,
                        0));
    }
  }

  void write(graft_address to, const Bytes& from) {
    if (!works_) return;
    note(driver_.copy(stream_, to, reinterpret_cast<uint64_t>(from.data()), from.size(),
                      GRAFT_HOST_TO_DEVICE, 0));
  }

  void read(Bytes& to, graft_address from) {
    if (!works_) return;
    note(driver_.copy(stream_, reinterpret_cast<uint64_t>(to.data()), from, to.size(),
                      GRAFT_DEVICE_TO_HOST, 0));
  }

  void copy(graft_address to, graft_address from, uint64_t bytes) {
    if (works_) note(driver_.copy(stream_, to, from, bytes, GRAFT_DEVICE_TO_DEVICE, 0));
  }

  void copy_from(graft_device peer, graft_address to, graft_address from, uint64_t bytes) {
    if (works_) note(driver_.peer_copy(stream_, to, peer, from, bytes, 0));
  }

  // Of one work-item.
  void launch(graft_kernel kernel, graft_address address, uint64_t bytes) {
    graft_argument argument{};
    argument.kind = GRAFT_ARGUMENT_ADDRESS;
    argument.access = GRAFT_ACCESS_READ | GRAFT_ACCESS_WRITE;
    argument.value = address;
    argument.bytes = bytes;
    graft_launch launch{};
    launch.struct_size = sizeof launch;
    for (int i = 0; i < 3; ++i) launch.grid[i] = launch.group[i] = 1;
    launch.argument_count = 1;
    launch.arguments = &argument;
    if (works_) note(driver_.kernel_launch(stream_, kernel, &launch));
  }

  void wait() {
    if (works_) note(driver_.stream_synchronize(stream_));
  }

 private:
  const graft_driver_table& driver_;
  graft_device device_;
  graft_stream stream_ = nullptr;
  graft_address held_up_ = 0;
  std::vector<graft_address> memory_;
  std::vector<graft_event> events_;
  bool works_ = true;
};

// What queries said of an event, asked again and again for so long, or until it was not BUSY.
graft_status polled(const graft_driver_table& driver, graft_event event,
                    std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  graft_status status = GRAFT_BUSY;
  while (std::chrono::steady_clock::now() < end) {
    status = driver.event_query(event);
    if (status != GRAFT_BUSY) break;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return status;
}

// A command and a mark behind it; chained: behind the mark of another stream's command, too.
struct MarkedCommand {
  MarkedCommand(const graft_driver_table& table, graft_device device, graft_kernel kernel,
                bool chained)
      : driver(table), first(table, device), stream(table, device) {
    if (chained) {
      queue(first, kernel);
      stream.wait_for(first.record());
    }
    queue(stream, kernel);
    mark = stream.record();
  }

  void queue(TrialStream& on, graft_kernel kernel) {
    const graft_address to = on.allocate(word.size());
    if (kernel == nullptr) {
      on.write(to, word);
    } else {
      on.launch(kernel, to, word.size());
    }
  }

  const graft_driver_table& driver;
  const Bytes word = Bytes(4, 1);
  TrialStream first, stream;
  graft_event mark = nullptr;
};

// A query says for half a second that the command is not done, which a wait then ends at once.
bool needs_a_wait(const graft_driver_table& driver, graft_device device, graft_kernel kernel,
                  bool chained) {
  using std::chrono::milliseconds;
  if (chained && driver.stream_wait_event == nullptr) return false;
  const auto trial = std::make_shared<MarkedCommand>(driver, device, kernel, chained);
  if (!trial->first.works() || !trial->stream.works()) return false;
  if (polled(driver, trial->mark, milliseconds(500)) != GRAFT_BUSY) return false;
  // In a thread of its own: a device that hangs for another reason may never end the wait.
  std::packaged_task<graft_status()> wait(
      [trial] { return trial->driver.stream_synchronize(trial->stream.handle()); });
  std::future<graft_status> ended = wait.get_future();
  std::thread(std::move(wait)).detach();
  return ended.wait_for(milliseconds(60)) == std::future_status::ready && ended.get() == GRAFT_OK;
}

// What a copy writes last, as a rule. It may be under way, by design.
__attribute__((no_sanitize("thread"))) uint8_t last_of(const Bytes& bytes) {
  return *(bytes.data() + bytes.size() - 1);
}

// As try_two_streams, with copies of so many bytes.
bool keep_apart(const graft_driver_table& driver, graft_device device, size_t bytes) {
  const Bytes ones(bytes, 0x11), twos(bytes, 0x22);
  Bytes first_found(bytes), second_found(bytes);
  TrialStream first(driver, device), second(driver, device);
  const graft_address a = first.allocate(bytes), b = second.allocate(bytes);
  const auto found_as_written = [&] {
    return !first.works() || !second.works() || (first_found == ones && second_found == twos);
  };
  first.hold_up();
  first.write(a, ones);
  second.write(b, twos);
  second.wait();
  first.wait();
  first.read(first_found, a);
  first.wait();
  second.read(second_found, b);
  second.wait();
  if (!found_as_written()) return false;
  first_found.assign(bytes, 0);
  second_found.assign(bytes, 0);
  first.hold_up();
  first.read(first_found, a);
  second.read(second_found, b);
  second.wait();
  first.wait();
  return found_as_written();
}

}  // namespace

std::string try_two_streams(const graft_driver_table& driver, graft_device device) {
  for (const size_t bytes : {1'000, 100'000, 2'000'000}) {
    if (keep_apart(driver, device, bytes)) continue;
    return "copies of " + std::to_string(bytes) +
           " bytes from and to the host's memory, on two streams of which one was busy, did not "
           "keep their bytes apart";
  }
  return "";
}

std::string try_peer_copies(const graft_driver_table& driver, graft_device to, graft_device from) {
  constexpr size_t kBytes = 100'003;
  const Bytes ones(kBytes, 0x11), twos(kBytes, 0x22);
  Bytes found(kBytes);
  TrialStream source(driver, from), target(driver, to);
  const graft_address origin = source.allocate(kBytes), goal = target.allocate(kBytes);
  const auto found_is_not = [&](const Bytes& expected) {
    target.read(found, goal);
    target.wait();
    return source.works() && target.works() && found != expected;
  };
  source.write(origin, ones);
  source.wait();
  if (driver.stream_wait_event != nullptr) {
    source.hold_up();
    source.write(origin, twos);
    target.wait_for(source.record());
    target.copy_from(from, goal, origin, kBytes);
    if (found_is_not(twos)) return "ran before the mark that its stream waits for was passed";
  }
  source.write(origin, twos);
  source.wait();
  target.hold_up();
  target.write(goal, ones);
  target.copy_from(from, goal, origin, kBytes);
  if (found_is_not(twos)) return "ran before its stream's earlier commands";
  target.hold_up();
  target.copy_from(from, goal, origin, kBytes);
  target.write(goal, ones);
  if (found_is_not(ones)) return "ran after its stream's later commands";
  return "";
}

std::string try_queries(const graft_driver_table& driver, graft_device device,
                        graft_kernel kernel) {
  for (const graft_kernel one : {graft_kernel{}, kernel}) {
    for (const bool chained : {false, true}) {
      if (!needs_a_wait(driver, device, one, chained)) continue;
      if (!needs_a_wait(driver, device, one, chained)) continue;
      return std::string("BUSY for half a second behind ") +
             (one == nullptr ? "a copy of 4 bytes" : "a launch of one work-item") +
             (chained ? ", which is behind another stream's mark" : "") +
             "; a wait then ended at once, twice";
    }
    if (kernel == nullptr) break;
  }
  return "";
}

std::string try_marks(const graft_driver_table& driver, graft_device device) {
  constexpr std::chrono::milliseconds kPatience(1000);
  for (const std::string way : {"from the host", "on the device", "to the host"}) {
    // Milliseconds to the host: there the copy is looked at while it may be under way.
    const size_t bytes = way == "to the host" ? 24'000'000 : 1'000'000;
    const Bytes ones(bytes, 0x11);
    Bytes found(bytes);
    TrialStream stream(driver, device), other(driver, device);
    const graft_address origin = stream.allocate(bytes), goal = stream.allocate(bytes);
    stream.write(origin, ones);
    if (way != "to the host") stream.write(goal, found);
    stream.wait();
    stream.hold_up();
    if (way == "from the host") stream.write(goal, ones);
    if (way == "on the device") stream.copy(goal, origin, bytes);
    if (way == "to the host") stream.read(found, origin);
    const graft_event mark = stream.record();
    if (!stream.works() || polled(driver, mark, kPatience) != GRAFT_OK) return "";
    if (way != "to the host") other.read(found, goal);
    if (way != "to the host") other.wait();
    const bool early = other.works() && last_of(found) != last_of(ones);
    stream.wait();
    if (!early) continue;
    return "a query said that a mark was passed, but the copy of " + std::to_string(bytes) +
           " bytes " + way + " in front of it was not done";
  }
  return "";
}

}  // namespace graft::trace
