// tests/emulated/veda/request/link.cpp: requests over a channel to a device, as slow as the
// settings say.
#include "tests/emulated/veda/request/link.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace emulated {

void Link::delay(std::size_t bytes) const {
  double microseconds = static_cast<double>(latency_);
  if (bandwidth_ > 0) microseconds += 1e6 * static_cast<double>(bytes) / bandwidth_;
  if (microseconds > 0) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(microseconds));
  }
}

void Link::begin(Command command, std::initializer_list<std::uint64_t> words, std::size_t size) {
  Request request = {};
  request.command = command;
  request.payload = size;
  std::copy(words.begin(), words.end(), request.words);
  delay(size);
  send(&request, sizeof request);
}

void Link::send(const void* data, std::size_t size) {
  if (!channel_->send(data, size)) throw Lost{};
}

Reply Link::finish() {
  Reply reply = {};
  receive(&reply, sizeof reply);
  if (bandwidth_ > 0 && reply.payload > 0) delay(reply.payload);
  return reply;
}

void Link::receive(void* data, std::size_t size) {
  if (!channel_->receive(data, size)) throw Lost{};
}

Reply Link::ask(Command command, std::initializer_list<std::uint64_t> words, const void* payload,
                std::size_t size) {
  begin(command, words, size);
  send(payload, size);
  return finish();
}

}  // namespace emulated
