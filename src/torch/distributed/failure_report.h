// src/torch/distributed/failure_report.h: finds out which ranks of a group are gone, through the
// group's store.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "torch/version/c10d.h"

namespace graft::binding {

// A rank whose collective fails writes so into the store; every rank that waits looks there now and
// then, and answers. Ranks that do not answer are listed. If the store is unreachable, callers wait
// at most one second. Made by std::make_shared. Thread-safe; nothing throws.
class FailureReport : public std::enable_shared_from_this<FailureReport> {
 public:
  // global_ranks: the names of the ranks in messages; empty where they are 0, 1, 2 and so on.
  FailureReport(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                std::vector<uint64_t> global_ranks);

  // The first failure of any rank of the group, for those who wait. Asks the store.
  std::optional<std::string> failure() noexcept;

  // Reports a failure of this rank and waits, at most for patience, for the others; 0: for none.
  // Returns what happened for the user: the failure, and who did not answer or what another rank
  // reported first.
  std::string report(const std::string& what, std::chrono::milliseconds patience) noexcept;

  // "rank 1, rank 3", as the user calls them.
  std::string names(const std::vector<int>& ranks) const;

  // The text of the failure that this rank has reported, none before.
  std::optional<std::string> reported() const;

 private:
  using Found = std::optional<std::string>;

  std::shared_future<Found> in_background(std::function<Found(FailureReport&)> ask);
  Found look();
  std::string keep(std::string text);
  std::string call(const std::string& what, std::chrono::milliseconds patience);
  std::vector<int> silent(std::chrono::milliseconds patience);
  std::string name(int rank) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const int rank_;
  const int size_;
  const std::vector<uint64_t> global_ranks_;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<std::string> reported_;
  std::shared_future<Found> looking_;
};

}  // namespace graft::binding
