// tests/drivers/check/stream_cases.cpp: order within and across streams, waiting, callbacks,
// threads.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "check/cases.h"

using graft::check::Failure;
using graft::check::pattern;
using graft::check::Session;

namespace {

constexpr uint64_t kBytes = 1u << 20;

void fill_word(Session& session, graft_stream stream, graft_address to, uint32_t value) {
  session.expect(session.table.fill(stream, to, kBytes, &value, 4, 0), GRAFT_OK, "fill");
}

uint32_t first_word(const std::vector<uint8_t>& bytes) {
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<uint32_t>(bytes[3]) << 24;
}

}  // namespace

DRIVER_CASE(in_order, "stream: commands run in order", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address a = session.allocate(kBytes);
  const graft_address b = session.allocate(kBytes);
  session.delay(stream, 20);
  for (uint32_t i = 1; i <= 50; ++i) {
    fill_word(session, stream, a, i);
    session.expect(session.table.copy(stream, b, a, kBytes, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK,
                   "copy");
  }
  fill_word(session, stream, a, 99);
  session.require(first_word(session.download(stream, b, 4)) == 50,
                  "a later command overtook an earlier one");
}

DRIVER_CASE(waits, "stream: synchronize waits for all commands", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(kBytes);
  std::vector<uint8_t> got(4);
  session.delay(stream, 60);
  fill_word(session, stream, address, 77);
  session.expect(session.table.copy(stream, reinterpret_cast<uint64_t>(got.data()), address, 4,
                                    GRAFT_DEVICE_TO_HOST, 0),
                 GRAFT_OK, "copy to the host");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.require(first_word(got) == 77, "stream_synchronize returned before the work was done");
}

DRIVER_CASE(across, "stream: stream_wait_event orders two streams", "stream_wait_event", kOpen) {
  for (int round = 0; round < 5; ++round) {
    graft_stream first = session.stream();
    graft_stream second = session.stream();
    graft_event event = session.event();
    const graft_address a = session.allocate(kBytes);
    fill_word(session, first, a, 1);
    session.expect(session.table.stream_synchronize(first), GRAFT_OK, "stream_synchronize");
    session.delay(first, 40);
    fill_word(session, first, a, 2);
    session.expect(session.table.event_record(event, first), GRAFT_OK, "event_record");
    session.expect(session.table.stream_wait_event(second, event), GRAFT_OK, "stream_wait_event");
    session.require(first_word(session.download(second, a, 4)) == 2,
                    "a stream ran on before the event it waits for");
  }
}

DRIVER_CASE(wait_takes_mark, "stream: a wait means the mark of that moment",
            "stream_wait_event host_callback", kOpen) {
  graft_stream first = session.stream();
  graft_stream second = session.stream();
  graft_event event = session.event();
  session.expect(session.table.event_record(event, first), GRAFT_OK, "event_record");
  session.expect(session.table.stream_wait_event(second, event), GRAFT_OK, "stream_wait_event");
  session.delay(first, 300);
  session.expect(session.table.event_record(event, first), GRAFT_OK, "event_record again");
  const auto begin = std::chrono::steady_clock::now();
  session.expect(session.table.stream_synchronize(second), GRAFT_OK, "stream_synchronize");
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  session.require(waited.count() < 0.25, "a wait was moved to a mark that was set after it");
  session.expect(session.table.stream_synchronize(first), GRAFT_OK, "stream_synchronize");
}

DRIVER_CASE(query, "stream: query says busy, then done", "stream_query host_callback", kOpen) {
  graft_stream stream = session.stream();
  session.expect(session.table.stream_query(stream), GRAFT_OK, "stream_query of a new stream");
  session.delay(stream, 100);
  session.expect(session.table.stream_query(stream), GRAFT_BUSY, "stream_query of a busy stream");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.expect(session.table.stream_query(stream), GRAFT_OK, "stream_query after synchronize");
}

DRIVER_CASE(waits_within, "stream: synchronize_within ends in time",
            "stream_synchronize_within host_callback", kOpen) {
  graft_stream stream = session.stream();
  const auto within = [&](uint64_t milliseconds) {
    return session.table.stream_synchronize_within(stream, milliseconds * 1000000);
  };
  session.expect(within(0), GRAFT_OK, "stream_synchronize_within 0 of a new stream");
  session.delay(stream, 500);
  const auto begin = std::chrono::steady_clock::now();
  session.expect(within(0), GRAFT_BUSY, "stream_synchronize_within 0 of a busy stream");
  session.expect(within(20), GRAFT_BUSY, "stream_synchronize_within 20 ms of 500 ms of work");
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  session.require(waited.count() < 0.4, "stream_synchronize_within took longer than it was given");
  session.expect(within(20000), GRAFT_OK, "stream_synchronize_within 20 s of 500 ms of work");
  session.expect(within(0), GRAFT_OK, "stream_synchronize_within after the work");
}

DRIVER_CASE(priorities, "stream: every priority of the properties is accepted", "", kOpen) {
  for (int priority = session.properties.priority_highest;
       priority <= session.properties.priority_lowest; ++priority) {
    graft_stream stream = nullptr;
    session.expect(session.table.stream_create(session.device, priority, &stream), GRAFT_OK,
                   "stream_create with priority " + std::to_string(priority));
    session.expect(session.table.stream_destroy(stream), GRAFT_OK, "stream_destroy");
  }
}

DRIVER_CASE(destroy_waits, "stream: destroy waits for its commands", "", kOpen) {
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(kBytes);
  std::vector<uint8_t> got(4);
  session.delay(stream, 60);
  fill_word(session, stream, address, 5);
  session.expect(session.table.copy(stream, reinterpret_cast<uint64_t>(got.data()), address, 4,
                                    GRAFT_DEVICE_TO_HOST, 0),
                 GRAFT_OK, "copy to the host");
  session.expect(session.table.stream_destroy(stream), GRAFT_OK, "stream_destroy");
  session.require(first_word(got) == 5, "stream_destroy lost commands that were enqueued");
}

DRIVER_CASE(many_streams, "stream: 200 can be made and destroyed, 40 at once", "", kOpen) {
  for (int round = 0; round < 5; ++round) {
    std::vector<graft_stream> streams;
    for (int i = 0; i < 40; ++i) streams.push_back(session.stream());
    for (graft_stream stream : streams) {
      session.expect(session.table.stream_destroy(stream), GRAFT_OK, "stream_destroy");
    }
  }
}

DRIVER_CASE(callback, "stream: host_callback runs once, in order", "host_callback", kOpen) {
  struct State {
    std::atomic<int> calls{0};
    const uint8_t* bytes = nullptr;
    int seen = 0;
  } state;
  std::vector<uint8_t> got(4);
  state.bytes = got.data();
  graft_stream stream = session.stream();
  const graft_address address = session.allocate(kBytes);
  fill_word(session, stream, address, 8);
  session.expect(session.table.copy(stream, reinterpret_cast<uint64_t>(got.data()), address, 4,
                                    GRAFT_DEVICE_TO_HOST, 0),
                 GRAFT_OK, "copy to the host");
  auto call = [](void* context) {
    auto* s = static_cast<State*>(context);
    s->seen = s->bytes[0];
    s->calls.fetch_add(1);
  };
  session.expect(session.table.host_callback(stream, call, &state), GRAFT_OK, "host_callback");
  session.expect(session.table.stream_synchronize(stream), GRAFT_OK, "stream_synchronize");
  session.require(state.calls == 1, "the callback did not run exactly once");
  session.require(state.seen == 8, "the callback ran before an earlier command");
}

DRIVER_CASE(threads, "threads: streams of one device from several threads", "", kOpen) {
  std::vector<std::thread> threads;
  std::atomic<bool> wrong{false};
  for (uint8_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      try {
        graft_stream stream = session.stream();
        for (uint64_t round = 1; round <= 60; ++round) {
          const uint64_t bytes = 1000 * round + seed;
          const graft_address address = session.allocate(bytes);
          const auto sent = pattern(bytes, seed);
          session.upload(stream, address, sent);
          if (session.download(stream, address, bytes) != sent) wrong = true;
          session.expect(session.table.memory_free(session.device, address), GRAFT_OK,
                         "memory_free");
        }
      } catch (const Failure&) {
        wrong = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  session.require(!wrong, "streams used from four threads at once disturbed one another");
}

DRIVER_CASE(native_handle, "stream: two streams have two native handles", "stream_native_handle",
            kOpen) {
  uint64_t handles[2] = {0, 0};
  for (uint64_t& handle : handles) {
    session.expect(session.table.stream_native_handle(session.stream(), &handle), GRAFT_OK,
                   "stream_native_handle");
  }
  session.require(handles[0] != handles[1], "two streams share one native handle");
}

DRIVER_CASE(wrapped, "stream: stream_wrap takes a stream and leaves it its owner",
            "stream_native_handle stream_wrap", kOpen) {
  const graft_driver_table& table = session.table;
  graft_stream own = session.stream(), wrapped = nullptr;
  uint64_t handle = 0;
  session.expect(table.stream_native_handle(own, &handle), GRAFT_OK, "stream_native_handle");
  session.expect(table.stream_wrap(session.device, handle, &wrapped), GRAFT_OK, "stream_wrap");
  session.require(wrapped != nullptr, "stream_wrap returned OK but no stream");
  const std::vector<uint8_t> first = pattern(4096, 1), second = pattern(4096, 2);
  const graft_address address = session.allocate(4096);
  session.upload(wrapped, address, first);
  session.require(session.download(own, address, 4096) == first,
                  "what a wrapped stream copied is not there");
  session.expect(table.stream_destroy(wrapped), GRAFT_OK, "stream_destroy of a wrapped stream");
  session.upload(own, address, second);
  session.require(session.download(own, address, 4096) == second,
                  "the owner's stream does not work after stream_destroy of a wrapped one");
  session.expect(table.stream_destroy(own), GRAFT_OK, "stream_destroy of the owner's stream");
  session.expect(table.stream_wrap(session.device, 0, &wrapped), GRAFT_INVALID_ARGUMENT,
                 "stream_wrap of the handle 0");
}
