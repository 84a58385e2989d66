// Threads of one call. Blocks are handed out in order; what a block contributes belongs to the block, never to
// the thread, and block sums are added in a binary tree by block number: any number of threads gives the same bits.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace certifit {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// The calling thread asks `poll` now and then whether to stop (Ctrl-C); the others only look at the flag.
class Crew {
 public:
  Crew(int n_threads, std::function<bool()> poll) : n_threads_(std::max(1, n_threads)), poll_(std::move(poll)) {}

  bool keep_going() {
    if (stop_.load(std::memory_order_relaxed)) return false;
    if (std::this_thread::get_id() == caller_) {
      auto now = std::chrono::steady_clock::now();
      if (now - asked_ > std::chrono::milliseconds(30)) {
        asked_ = now;
        if (poll_ && poll_()) stop_.store(true);
      }
    }
    return !stop_.load(std::memory_order_relaxed);
  }

  ~Crew() {
    is_over_.store(true);
    call();
    for (auto& helper : helpers_) helper.join();
  }

  size_t n_threads() const { return static_cast<size_t>(n_threads_); }

  // work(block) for every block; rethrows the first exception, throws Interrupted after a stop. Inside a block another
  // call does its blocks alone.
  template <class Work>
  void for_each_block(size_t n_blocks, Work work) {
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    const std::function<void()> run = [&] {
      try {
        for (size_t block; keep_going() && (block = next.fetch_add(1)) < n_blocks;) work(block);
      } catch (...) {
        std::lock_guard<std::mutex> hold(failure_lock);
        if (!failure) failure = std::current_exception();
        stop_.store(true);
      }
    };
    if (n_threads_ == 1 || n_blocks < 2 || is_shared_.exchange(true)) {
      run();
    } else {
      hire(std::min(n_threads(), n_blocks) - 1);
      share(run);
      is_shared_.store(false);
    }
    if (failure) std::rethrow_exception(failure);
    if (stop_.load()) throw Interrupted();
  }

 private:
  // Helpers stay until the call ends: many short loops do not start threads again and again.
  void hire(size_t n_helpers) {
    try {
      while (helpers_.size() < n_helpers) helpers_.emplace_back([this, seen = turn_.load()] { help(seen); });
    } catch (const std::system_error&) {
      // The system gives no more threads: those already started and this one do the work.
    }
  }

  void share(const std::function<void()>& run) {
    job_ = &run;
    n_busy_.store(static_cast<uint32_t>(helpers_.size()));
    call();
    run();
    for (uint32_t busy; (busy = n_busy_.load()) != 0;) wait_while(n_busy_, busy);
  }

  void call() {
    turn_.fetch_add(1);
    turn_.notify_all();
  }

  void help(uint32_t seen) {
    for (;;) {
      wait_while(turn_, seen);
      ++seen;
      if (is_over_.load()) return;
      (*job_)();
      if (n_busy_.fetch_sub(1) == 1) n_busy_.notify_all();
    }
  }

  // The next loop often begins at once: a thread looks for it a while before it sleeps.
  static void wait_while(std::atomic<uint32_t>& number, uint32_t value) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (number.load() == value)
      if (std::chrono::steady_clock::now() > patience) return number.wait(value);
  }

  int n_threads_;
  std::function<bool()> poll_;
  std::atomic<bool> stop_{false}, is_shared_{false}, is_over_{false};
  std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  std::vector<std::thread> helpers_;
  const std::function<void()>* job_ = nullptr;
  std::atomic<uint32_t> turn_{0}, n_busy_{0};
};

// Sums states in a binary tree over block numbers: node (l, i) = node (l-1, 2i) + node (l-1, 2i+1),
// a node without a right neighbour passes up unchanged. Few states are alive at a time.
template <class State>
class SumTree {
 public:
  explicit SumTree(size_t n_blocks) : n_blocks_(n_blocks) {}

  void add(size_t block, State state) {
    size_t index = block;
    for (size_t level = 0, width = n_blocks_; width > 1; ++level, width = (width + 1) / 2, index /= 2) {
      size_t sibling = index ^ 1;
      if (sibling >= width) continue;
      State other;
      {
        std::lock_guard<std::mutex> hold(lock_);
        auto found = waiting_.find({level, sibling});
        if (found == waiting_.end()) {
          waiting_.emplace(std::pair{level, index}, std::move(state));
          return;
        }
        other = std::move(found->second);
        waiting_.erase(found);
      }
      if (index % 2 == 1) std::swap(state, other);
      state.add(other);
    }
    root_ = std::move(state);
  }

  State& root() { return root_; }

 private:
  size_t n_blocks_;
  std::mutex lock_;
  std::map<std::pair<size_t, size_t>, State> waiting_;
  State root_;
};

}  // namespace certifit
