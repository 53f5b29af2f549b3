// drivers/trace/objects/probes.cpp: tickets, small copies that the layer queues to see when work is
// done.
#include "objects/probes.h"

#include <array>
#include <bit>
#include <utility>

#include "objects/landing.h"

namespace graft::trace {
namespace {

constexpr uint32_t kTickets = 16384;  // more than a stream holds at a time
using TicketTable = std::array<uint32_t, kTickets>;

const TicketTable& ticket_numbers() {
  static const TicketTable* numbers = [] {
    auto* made = new TicketTable;
    for (uint32_t i = 0; i < kTickets; ++i) (*made)[i] = i;
    return made;
  }();
  return *numbers;
}

graft_address make_table(TraceLayer& layer, graft_device device, graft_stream handle) {
  const graft_driver_table& driver = layer.driver();
  graft_address table = 0;
  const auto from = reinterpret_cast<uint64_t>(ticket_numbers().data());
  if (driver.memory_allocate(device, sizeof(TicketTable), &table) != GRAFT_OK) return 0;
  if (driver.copy(handle, table, from, sizeof(TicketTable), GRAFT_HOST_TO_DEVICE, 0) == GRAFT_OK &&
      driver.stream_synchronize(handle) == GRAFT_OK) {
    return table;
  }
  driver.memory_free(device, table);
  return 0;
}

// The word changes while it is read, by design.
__attribute__((no_sanitize("thread"))) uint32_t word_of(const StreamRecord& stream) {
  return *stream.word;
}

}  // namespace

void prepare_tickets(TraceLayer& layer, graft_device device, graft_stream handle) {
  if (!layer.settings.probe || !layer.settings.rules) return;
  bool first = false;
  {
    const std::lock_guard lock(layer.mutex);
    const auto found = layer.ledger.devices.find(device);
    if (found == layer.ledger.devices.end()) return;
    first = !std::exchange(found->second.tried_tickets, true);
  }
  const graft_address made = first ? make_table(layer, device, handle) : 0;
  const std::lock_guard lock(layer.mutex);
  const auto found = layer.ledger.devices.find(device);
  if (found == layer.ledger.devices.end()) return;
  if (made != 0) found->second.tickets = made;
  const auto stream = layer.ledger.streams.find(handle);
  if (found->second.tickets == 0 || stream == layer.ledger.streams.end()) return;
  if (stream->second->word == nullptr) {
    const auto word = std::make_shared<uint32_t>(0);
    layer.ledger.lent.push_back(word);
    stream->second->word = word.get();
  }
  stream->second->ticket_table = found->second.tickets;
}

void free_tickets(TraceLayer& layer, graft_device device) {
  graft_address table = 0;
  {
    const std::lock_guard lock(layer.mutex);
    const auto found = layer.ledger.devices.find(device);
    if (found != layer.ledger.devices.end()) table = std::exchange(found->second.tickets, 0);
  }
  if (table != 0) layer.driver().memory_free(device, table);
}

uint32_t queue_ticket(TraceCall& call) {
  if (call.stream == nullptr || call.stream->word == nullptr || call.stream->count != 1) return 0;
  StreamRecord& stream = *call.stream;
  const uint32_t ticket = stream.tickets + 1;
  const auto to = reinterpret_cast<uint64_t>(stream.word);
  const graft_address from = stream.ticket_table + sizeof(uint32_t) * (ticket % kTickets);
  if (call.layer.driver().copy(call.stream_handle, to, from, sizeof(uint32_t), GRAFT_DEVICE_TO_HOST,
                               0) != GRAFT_OK) {
    call.layer.forget_failure();
    return 0;
  }
  stream.tickets = ticket;
  stream.ticketed = stream.queued.load();
  return ticket;
}

uint32_t latest_ticket(TraceCall& call) {
  if (call.stream == nullptr) return 0;
  const StreamRecord& stream = *call.stream;
  const bool covered = stream.ticketed == stream.queued || stream.thread != calling_thread();
  return covered ? stream.tickets.load() : queue_ticket(call);
}

void queue_between(TraceCall& call) {
  uint64_t open = 0;
  {
    const std::lock_guard lock(call.layer.mutex);
    open = call.stream->queued - call.stream->done;
  }
  if (call.stream->ticketed < call.stream->queued && std::has_single_bit(open)) queue_ticket(call);
}

bool has_arrived(const StreamRecord& stream, uint32_t ticket) {
  if (ticket == 0 || stream.word == nullptr || ticket <= stream.untrusted) return true;
  const uint32_t ahead = (ticket - word_of(stream)) % kTickets;
  return ahead == 0 || ahead >= kTickets / 2;
}

// What the stream's finished waits for marks of other streams show.
static void check_waits(TraceCall& call, const StreamRecord& stream, uint64_t number,
                        bool errors_told) {
  for (const StreamWait& wait : stream.waits) {
    if (wait.must_fail && errors_told && wait.command <= number) {
      call.driver_broke("lost-error",
                        "OK, but a stream for whose event this one waited had failed before it",
                        "Pass an error on to each stream that waits for the mark.");
    }
    const auto other = call.layer.ledger.stream_ids.find(wait.mark.stream);
    if (other == call.layer.ledger.stream_ids.end() || wait.ticket == 0) continue;
    if (wait.ticket <= stream.untrusted || !has_arrived(stream, wait.ticket)) continue;
    if (!has_arrived(*other->second, wait.mark_ticket)) {
      call.driver_broke("unordered",
                        "commands behind stream_wait_event ran before the event's mark was passed",
                        "Hold the stream back until the mark is passed.");
    }
  }
}

void note_done(TraceCall& call, StreamRecord& stream, uint64_t number, uint32_t ticket,
               Answer answer) {
  const bool certain = answer == Answer::kWhole;
  check_waits(call, stream, number, certain);
  const bool landed = have_landed(stream, number);
  const char* const early = landed ? "reported work as done that had not run yet"
                                   : "reported a copy as done that had not written its range yet";
  if (!has_arrived(stream, ticket) || !landed) {
    if (certain) {
      call.driver_broke("early", early, "Wait for every earlier command of the stream.");
    } else {
      stream.suspicions.push_back(
          {slot_name(call.table, call.slot), call.text(), std::string(early)});
    }
  }
  if (certain) {
    for (const Suspicion& one : std::exchange(stream.suspicions, {})) {
      call.layer.findings.add(one.slot, {Culprit::kDriver, "early", one.call, one.text,
                                         "Set the mark behind the stream's earlier commands."});
    }
  }
  call.layer.ledger.complete(stream, number, ticket, answer != Answer::kDone);
  settle_marks(call.layer.ledger);
}

void note_failed(TraceCall& call, StreamRecord& stream, uint64_t number) {
  stream.suspicions.clear();
  stream.landings.clear();
  for (Result& one : std::exchange(stream.results, {})) {
    if (one.kept != nullptr) call.layer.ledger.lent.push_back(std::move(one.kept));
  }
  stream.failed_tags.clear();
  for (const CommandTag& one : stream.tags) stream.failed_tags.push_back(one.tag);
  std::erase_if(stream.tags, [&](const CommandTag& one) { return one.command <= number; });
  stream.untrusted = stream.tickets.load();
  call.layer.ledger.complete(stream, number);
}

void check_error(TraceCall& call, StreamRecord& stream) {
  const bool nothing_new = stream.good == stream.queued && stream.good_ticket == stream.tickets;
  if (nothing_new && stream.queued != 0 && stream.count == 1) {
    call.driver_broke("lost-error",
                      stream.told ? "reported an error twice"
                                  : "reported an error of commands that an earlier wait, for this "
                                    "stream or for one that waits for it, reported as done",
                      "Report an error once, by the first wait for the failed command.");
  }
  for (const auto& [id, other] : call.layer.ledger.stream_ids) {
    for (StreamWait& wait : other->waits) {
      wait.must_fail =
          wait.must_fail || (wait.mark.stream == stream.id && wait.mark.number == stream.queued &&
                             wait.mark_ticket == stream.tickets && !stream.told);
    }
  }
  stream.good = stream.queued;
  stream.good_ticket = stream.tickets;
  stream.told = true;
}

void settle_marks(ObjectLedger& ledger) {
  if (ledger.timed_marks.empty()) return;
  std::erase_if(ledger.timed_marks, [&](graft_event handle) {
    const auto event = ledger.events.find(handle);
    if (event == ledger.events.end()) return true;
    Mark& mark = event->second.mark;
    const auto stream = ledger.stream_ids.find(mark.place.stream);
    if (!mark.set || mark.passed_ns != 0 || stream == ledger.stream_ids.end()) return true;
    const bool arrived = mark.ticket_behind > stream->second->untrusted &&
                         has_arrived(*stream->second, mark.ticket_behind);
    if (!arrived && stream->second->done < mark.place.number) return false;
    mark.passed_ns = steady_ns();
    return true;
  });
}

}  // namespace graft::trace
