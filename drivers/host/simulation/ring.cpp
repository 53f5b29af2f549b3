// drivers/host/simulation/ring.cpp: how long collectives take over simulated links.
#include "ring.h"

#include <algorithm>
#include <cmath>

#include "collectives/reduction.h"

namespace graft::host {
namespace {

double entry_ns(const Link& link, double bytes) { return bytes / link.bytes_per_second * 1e9; }

// Link i leads from rank i to the next one.
std::vector<Link> ring(const Simulation& simulation, uint32_t ranks) {
  std::vector<Link> links;
  for (uint32_t i = 0; i < ranks; ++i) links.push_back(simulation.between(i, (i + 1) % ranks));
  return links;
}

// Every rank passes a part on, in each step the one that came in the step before.
double steps_ns(const std::vector<Link>& links, uint32_t steps, double part) {
  const size_t ranks = links.size();
  std::vector<double> has(ranks, 0), next(ranks, 0), clear(ranks, 0);
  for (uint32_t step = 0; step < steps; ++step) {
    for (size_t rank = 0; rank < ranks; ++rank) {
      clear[rank] = std::max(has[rank], clear[rank]) + entry_ns(links[rank], part);
      next[(rank + 1) % ranks] = clear[rank] + links[rank].latency_ns;
    }
    has.swap(next);
  }
  return *std::max_element(has.begin(), has.end());
}

// Parts go one behind the other from one rank to all others, along every link but one.
double chain_ns(const std::vector<Link>& links, uint32_t first, double part) {
  const size_t ranks = links.size();
  std::vector<double> has(ranks, 0);  // when each part came
  for (size_t hop = 0; hop + 1 < ranks; ++hop) {
    const Link& link = links[(first + hop) % ranks];
    double clear = 0;
    for (double& came : has) {
      clear = std::max(came, clear) + entry_ns(link, part);
      came = clear + link.latency_ns;
    }
  }
  return has.back();
}

}  // namespace

int64_t collective_ns(const Simulation& simulation, const CommandRecord& record, uint32_t ranks) {
  if (ranks < 2) return 0;
  const std::vector<Link> links = ring(simulation, ranks);
  const double bytes = double(record.count) * double(dtype_bytes(record.dtype));
  switch (CommandKind(record.kind)) {
    case CommandKind::kAllReduce:
      return std::llround(steps_ns(links, 2 * (ranks - 1), bytes / ranks));
    case CommandKind::kAllGather:
    case CommandKind::kReduceScatter:
      return std::llround(steps_ns(links, ranks - 1, bytes));
    case CommandKind::kBroadcast:
      return std::llround(chain_ns(links, record.root, bytes / ranks));
    case CommandKind::kReduce:
      return std::llround(chain_ns(links, record.root + 1, bytes / ranks));
    default:
      return 0;
  }
}

int64_t transfers_ns(const Simulation& simulation, const std::vector<Transfer>& transfers,
                     uint32_t rank) {
  double out = 0, in = 0, latency = 0;
  for (const Transfer& transfer : transfers) {
    if (transfer.peer == rank) continue;
    const Link link = simulation.between(rank, transfer.peer);
    const double bytes = double(transfer.count) * double(dtype_bytes(transfer.dtype));
    (transfer.sends ? out : in) += entry_ns(link, bytes);
    latency = std::max(latency, link.latency_ns);
  }
  return std::llround(std::max(out, in) + latency);
}

}  // namespace graft::host
