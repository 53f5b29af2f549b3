// tests/drivers/check/collective_cases.cpp: the extension graft.collectives, with two ranks.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "check/cases.h"
#include "graft/extensions.h"

using graft::check::Failure;
using graft::check::Omitted;
using graft::check::Session;

namespace {

using Id = std::array<uint8_t, GRAFT_GROUP_ID_BYTES>;
constexpr int64_t kTimeout = 5'000'000'000;
constexpr uint32_t kRanks = 2;

// One of the two ranks, in a process of its own.
struct Rank {
  Session& session;
  const graft_collectives_table& table;
  const uint32_t rank;
  graft_stream stream = nullptr;
  graft_group group = nullptr;

  // Every element of a rank's data is one small number.
  graft_address numbers(uint64_t count, float value) const {
    std::vector<uint8_t> bytes(count * sizeof(float));
    for (uint64_t i = 0; i < count; ++i) std::memcpy(&bytes[i * 4], &value, sizeof value);
    const graft_address address = session.allocate(bytes.size());
    session.upload(stream, address, bytes);
    return address;
  }
  float own() const { return rank == 0 ? 3 : 5; }
  void expect(graft_address at, uint64_t count, float wanted, const char* what) const {
    const std::vector<uint8_t> bytes = session.download(stream, at, count * sizeof(float));
    for (uint64_t i = 0; i < count; ++i) {
      float got = 0;
      std::memcpy(&got, &bytes[i * 4], sizeof got);
      if (got == wanted) continue;  // the text of a failure takes longer than the comparison
      throw Failure(std::string(what) + " of " + std::to_string(count) + " float32: element " +
                    std::to_string(i) + " is " + std::to_string(got) + " instead of " +
                    std::to_string(wanted));
    }
  }
  void ok(graft_status status, const char* what) const { session.expect(status, GRAFT_OK, what); }
  graft_status synchronize() const { return session.table.stream_synchronize(stream); }
};

using Body = std::function<void(Rank&)>;

void open(Rank& rank) {
  uint32_t count = 0;
  rank.ok(rank.session.table.device_count(&count), "device_count");
  const uint32_t ordinal = rank.rank < count ? rank.rank : 0;
  rank.ok(rank.session.table.device_open(ordinal, &rank.session.device), "device_open");
  rank.stream = rank.session.stream();
}

void join_and_run(Rank& rank, const Id& id, const Body& body) {
  const graft_status status = rank.table.group_create(rank.session.device, id.data(), rank.rank,
                                                      kRanks, kTimeout, &rank.group);
  if (status == GRAFT_UNSUPPORTED) throw Omitted("two ranks on the devices here");
  rank.ok(status, "group_create");
  body(rank);
  rank.ok(rank.table.group_destroy(rank.group), "group_destroy");
}

// The other rank's process; does not outlive this object.
struct Child {
  pid_t pid;
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

[[noreturn]] void be_rank_1(Session& session, const int id_pipe, const int text_pipe,
                            const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string text = "p";
  try {
    Id id{};
    Rank rank{session, session.extension<graft_collectives_table>(), 1};
    open(rank);
    if (read(id_pipe, id.data(), id.size()) == ssize_t(id.size())) join_and_run(rank, id, body);
  } catch (const Omitted& omitted) {
    text = std::string("o") + omitted.what();
  } catch (const std::exception& error) {
    text = std::string("f") + error.what();
  }
  const ssize_t written = write(text_pipe, text.data(), text.size());
  _exit(written == ssize_t(text.size()) ? 0 : 1);
}

// Runs body as rank 0 here and as rank 1 in a child, each with a device. REQUIRES: none is open.
// dies: rank 1's body may end its process.
void in_two_ranks(Session& session, const Body& body, bool dies = false) {
  const auto& table = session.extension<graft_collectives_table>();
  int id_pipe[2], text_pipe[2];
  Session::require(pipe(id_pipe) == 0 && pipe(text_pipe) == 0, "no pipe could be made");
  const pid_t pid = fork();
  Session::require(pid >= 0, "no process could be made");
  if (pid == 0) be_rank_1(session, id_pipe[0], text_pipe[1], body);
  close(text_pipe[1]);
  const Child child{pid};
  Id id{};
  Rank rank{session, table, 0};
  open(rank);
  rank.ok(table.group_id(session.device, id.data()), "group_id");
  Session::require(write(id_pipe[1], id.data(), id.size()) == ssize_t(id.size()), "no pipe");
  join_and_run(rank, id, body);
  std::string text;
  char buffer[512];
  for (ssize_t got = 0; (got = read(text_pipe[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, size_t(got));
  }
  if (text[0] == 'o') throw Omitted(text.substr(1));
  if (text[0] == 'f') throw Failure("rank 1: " + text.substr(1));
  Session::require(dies || text == "p", "rank 1 crashed");
}

void check_reductions(Rank& r, uint64_t count) {
  const graft_address send = r.numbers(count, r.own()), receive = r.numbers(count, -1);
  const struct {
    graft_reduction reduction;
    float wanted;
  } rows[] = {{GRAFT_REDUCE_SUM, 8},
              {GRAFT_REDUCE_PRODUCT, 15},
              {GRAFT_REDUCE_MIN, 3},
              {GRAFT_REDUCE_MAX, 5},
              {GRAFT_REDUCE_AVERAGE, 4}};
  for (const auto& row : rows) {
    r.ok(r.table.all_reduce(r.stream, r.group, send, receive, count, GRAFT_FLOAT32, row.reduction,
                            0),
         "all_reduce");
    r.expect(receive, count, row.wanted, "all_reduce");
  }
  r.ok(r.table.reduce(r.stream, r.group, send, receive, count, GRAFT_FLOAT32, GRAFT_REDUCE_MAX, 1,
                      0),
       "reduce");
  if (r.rank == 1) r.expect(receive, count, 5, "reduce");
  r.ok(r.table.all_reduce(r.stream, r.group, send, send, count, GRAFT_FLOAT32, GRAFT_REDUCE_SUM, 0),
       "all_reduce in place");
  r.expect(send, count, 8, "all_reduce in place");
  const graft_address rows_in = r.numbers(kRanks * count, r.own());
  r.ok(r.table.reduce_scatter(r.stream, r.group, rows_in, receive, count, GRAFT_FLOAT32,
                              GRAFT_REDUCE_SUM, 0),
       "reduce_scatter");
  r.expect(receive, count, 8, "reduce_scatter");
}

void check_moves(Rank& r, uint64_t count) {
  const graft_address own = r.numbers(count, r.own()), receive = r.numbers(kRanks * count, -1);
  r.ok(r.table.broadcast(r.stream, r.group, own, receive, count, GRAFT_FLOAT32, 1, 0), "broadcast");
  r.expect(receive, count, 5, "broadcast");
  r.ok(r.table.all_gather(r.stream, r.group, own, receive, count, GRAFT_FLOAT32, 0), "all_gather");
  r.expect(receive, count, 3, "all_gather");
  r.expect(receive + count * sizeof(float), count, 5, "all_gather");
  const auto peer = [&](uint32_t sender) {
    return r.rank == sender
               ? r.table.send(r.stream, r.group, own, count, GRAFT_FLOAT32, 1 - sender, 0)
               : r.table.receive(r.stream, r.group, receive, count, GRAFT_FLOAT32, sender, 0);
  };
  r.ok(peer(0), "send or receive");
  if (r.rank == 1) r.expect(receive, count, 3, "receive");
  r.ok(r.table.batch_begin(r.group), "batch_begin");
  r.ok(peer(0), "send or receive in a batch");
  r.ok(peer(1), "send or receive in a batch");
  r.ok(r.table.batch_end(r.group), "batch_end");
  r.expect(receive, count, r.rank == 0 ? 5 : 3, "an exchange in a batch");
}

}  // namespace

DRIVER_CASE(ranks_reduce, "graft.collectives: reductions of two ranks", "extension", kLoaded) {
  in_two_ranks(session, [](Rank& rank) {
    for (uint64_t count : {1ull, 1000ull, 300001ull}) check_reductions(rank, count);
  });
}

DRIVER_CASE(ranks_move, "graft.collectives: broadcast, gather, send and receive", "extension",
            kLoaded) {
  in_two_ranks(session, [](Rank& rank) {
    for (uint64_t count : {1ull, 1000ull, 300001ull}) check_moves(rank, count);
  });
}

DRIVER_CASE(ranks_empty, "graft.collectives: no elements are fine", "extension", kLoaded) {
  in_two_ranks(session, [](Rank& r) {
    r.ok(r.table.all_reduce(r.stream, r.group, 0, 0, 0, GRAFT_FLOAT32, GRAFT_REDUCE_SUM, 0),
         "all_reduce of nothing");
    r.ok(r.table.all_gather(r.stream, r.group, 0, 0, 0, GRAFT_FLOAT32, 0), "all_gather of nothing");
    r.ok(r.synchronize(), "stream_synchronize");
  });
}

DRIVER_CASE(ranks_queue, "graft.collectives: commands run in the stream's order", "extension",
            kLoaded) {
  in_two_ranks(session, [](Rank& r) {
    const graft_address at = r.numbers(100, 0);
    r.session.delay(r.stream, r.rank == 0 ? 100 : 0);
    const float value = r.own();
    r.ok(r.session.table.fill(r.stream, at, 400, &value, 4, 0), "fill");
    r.ok(r.table.all_reduce(r.stream, r.group, at, at, 100, GRAFT_FLOAT32, GRAFT_REDUCE_SUM, 0),
         "all_reduce");
    r.expect(at, 100, 8, "all_reduce after a fill");
  });
}

DRIVER_CASE(ranks_differ, "graft.collectives: commands that differ fail late on both ranks",
            "extension", kLoaded) {
  in_two_ranks(session, [](Rank& r) {
    const graft_address at = r.numbers(100, r.own());
    r.ok(r.table.all_reduce(r.stream, r.group, at, at, 50 + r.rank, GRAFT_FLOAT32, GRAFT_REDUCE_SUM,
                            0),
         "all_reduce");
    const graft_status status = r.synchronize();
    Session::require(status == GRAFT_INVALID_ARGUMENT || status == GRAFT_TIMEOUT,
                     std::string("all_reduce of 50 and of 51 elements ended with ") +
                         graft::check::status_name(status));
  });
}

DRIVER_CASE(rank_dies, "graft.collectives: the death of a rank fails the others", "extension",
            kLoaded) {
  in_two_ranks(
      session,
      [](Rank& r) {
        const graft_address at = r.numbers(100, r.own());
        const auto sum = [&] {
          return r.table.all_reduce(r.stream, r.group, at, at, 100, GRAFT_FLOAT32, GRAFT_REDUCE_SUM,
                                    0);
        };
        r.ok(sum(), "all_reduce");
        r.ok(r.synchronize(), "stream_synchronize");
        if (r.rank == 1) _exit(0);
        r.ok(sum(), "all_reduce");
        r.session.expect(r.synchronize(), GRAFT_TIMEOUT, "an all_reduce without rank 1");
      },
      true);
}

DRIVER_CASE(rank_aborts, "graft.collectives: an abort ends what waits", "extension", kLoaded) {
  in_two_ranks(session, [](Rank& r) {
    const graft_address at = r.numbers(100, r.own());
    if (r.rank == 1) return usleep(200'000), void();
    r.ok(r.table.all_reduce(r.stream, r.group, at, at, 100, GRAFT_FLOAT32, GRAFT_REDUCE_SUM, 0),
         "all_reduce");
    r.ok(r.table.group_abort(r.group), "group_abort");
    r.session.expect(r.synchronize(), GRAFT_TIMEOUT, "an all_reduce that was aborted");
  });
}

DRIVER_CASE(rank_is_missing, "graft.collectives: a missing rank is a timeout", "extension", kOpen) {
  const auto& table = session.extension<graft_collectives_table>();
  Id id{};
  session.expect(table.group_id(session.device, id.data()), GRAFT_OK, "group_id");
  Id other{};
  session.expect(table.group_id(session.device, other.data()), GRAFT_OK, "group_id");
  Session::require(id != other, "group_id gave the same id twice");
  graft_group group = nullptr;
  session.expect(table.group_create(session.device, id.data(), 0, kRanks, 200'000'000, &group),
                 GRAFT_TIMEOUT, "group_create of one rank of two");
}
