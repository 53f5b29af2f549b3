// tests/emulated/veda/request/link.h: requests over a channel to a device, as slow as the settings
// say.
#ifndef GRAFT_TESTS_EMULATED_VEDA_LIBRARY_LINK_H_
#define GRAFT_TESTS_EMULATED_VEDA_LIBRARY_LINK_H_

#include <initializer_list>
#include <memory>

#include "tests/emulated/veda/channel.h"
#include "tests/emulated/veda/request/settings.h"

namespace emulated {

// The device's process is gone.
struct Lost {};

// One thread at a time; shut_down from any. Everything throws Lost.
class Link {
 public:
  Link(std::unique_ptr<Channel> channel, const Settings& settings)
      : channel_(std::move(channel)), bandwidth_(settings.bandwidth), latency_(settings.latency) {}

  // Sends command, its words and size bytes of payload, and waits for the reply. What follows the
  // reply is the caller's to receive.
  Reply ask(Command command, std::initializer_list<std::uint64_t> words,
            const void* payload = nullptr, std::size_t size = 0);

  // The parts of ask, for a payload of several pieces.
  void begin(Command command, std::initializer_list<std::uint64_t> words, std::size_t size);
  void send(const void* data, std::size_t size);
  Reply finish();

  void receive(void* data, std::size_t size);
  void shut_down() { channel_->shut_down(); }

 private:
  const std::unique_ptr<Channel> channel_;
  const std::int64_t bandwidth_;
  const std::int64_t latency_;

  void delay(std::size_t bytes) const;
};

}  // namespace emulated

#endif  // GRAFT_TESTS_EMULATED_VEDA_LIBRARY_LINK_H_
