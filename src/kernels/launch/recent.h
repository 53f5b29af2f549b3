// src/kernels/launch/recent.h: values by key, in the order of their last use.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace graft {

// Whoever adds drops the oldest. Values stay where they are in memory. Not thread-safe.
template <class Key, class Value>
class Recent {
 public:
  // The value of key, from now on the newest; null where there is none.
  Value* find(const Key& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Keeps it as the newest. REQUIRES: there is none of that key.
  Value& add(const Key& key, Value value) {
    entries_.emplace_front(key, std::move(value));
    places_.emplace(key, entries_.begin());
    return entries_.front().second;
  }

  // REQUIRES: size() > 0.
  Value drop_oldest() {
    Value oldest = std::move(entries_.back().second);
    places_.erase(entries_.back().first);
    entries_.pop_back();
    return oldest;
  }

  size_t size() const { return entries_.size(); }
  auto begin() const { return entries_.begin(); }  // pairs of key and value, newest first
  auto end() const { return entries_.end(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  Entries entries_;
  std::map<Key, typename Entries::iterator> places_;
};

}  // namespace graft
