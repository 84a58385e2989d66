// Threads of one call. Blocks are handed out in order; what a block contributes belongs to the block, never to
// the thread, and block sums are added in a binary tree by block number: any number of threads gives the same bits.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace certifit {

struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Where one thread offers jobs and others help. A job is open until its owner finds no block left: helpers inside are
// waited for; one that comes later, because others want the processor, finds the door closed and delays nobody.
class Workshop {
 public:
  void share(const std::function<void()>& job) {
    job_ = &job;
    state_.store((number_of(state_.load()) + 1) << 32 | is_open);
    wake();
    job();
    state_.fetch_and(~is_open);
    wait_until([this] { return n_inside(state_.load()) == 0; });
  }

  void close() {
    is_closed_.store(true);
    wake();
  }

  // Takes part in every job from now on, until the workshop is closed.
  void help() {
    for (uint64_t seen = 0; !is_closed_.load();) {
      uint64_t now = state_.load();
      while ((now & is_open) && number_of(now) != seen && !state_.compare_exchange_weak(now, now + 1)) {
      }
      if ((now & is_open) && number_of(now) != seen) {
        (*job_)();
        if (n_inside(state_.fetch_sub(1)) == 1) wake();
      }
      seen = number_of(now);
      wait_until([&] { return number_of(state_.load()) != seen || is_closed_.load(); });
    }
  }

 private:
  // What is waited for often comes at once: a thread looks a while before it sleeps. Not std::atomic's wait, which
  // gives the processor away first: where others want it, every loop then costs a slice of their time.
  template <class Ready>
  void wait_until(Ready ready) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
    while (!ready())
      if (std::chrono::steady_clock::now() > patience) {
        std::unique_lock<std::mutex> hold(asleep_);
        return awake_.wait(hold, ready);
      }
  }

  // With the lock taken once, a thread that has looked in vain is asleep and hears the call.
  void wake() {
    {
      std::lock_guard<std::mutex> hold(asleep_);
    }
    awake_.notify_all();
  }

  static constexpr uint64_t is_open = uint64_t{1} << 31;
  static uint64_t n_inside(uint64_t state) { return state & (is_open - 1); }
  static uint64_t number_of(uint64_t state) { return state >> 32; }

  const std::function<void()>* job_ = nullptr;
  std::atomic<uint64_t> state_{0};  // number of the job << 32, whether it is open, helpers inside
  std::atomic<bool> is_closed_{false};
  std::mutex asleep_;
  std::condition_variable awake_;
};

// Threads without a workshop. One stays a moment after its call, for the next is often near (a round of boosting is two
// calls), and to start a thread takes as long as a short loop.
class Idle {
 public:
  // A thread that waits is called to the workshop, or one is started.
  static void call(std::shared_ptr<Workshop> shop) {
    Idle& idle = of_this_process();
    {
      std::lock_guard<std::mutex> hold(idle.lock_);
      if (Seat* seat = idle.first_) {
        idle.first_ = seat->next;
        seat->shop = std::move(shop);
        return seat->called.notify_one();  // with the lock held: a thread takes it before its seat is gone
      }
    }
    std::thread([&idle, shop = std::move(shop)]() mutable { idle.stay(std::move(shop)); }).detach();
  }

 private:
  struct Seat {
    std::shared_ptr<Workshop> shop;
    std::condition_variable called;
    Seat* next = nullptr;
  };

  // Never destroyed: threads may wait there while the process ends. A forked process has none of them.
  static Idle& of_this_process() {
    static std::atomic<Idle*> here{nullptr};
    Idle* idle = here.load();
    if (idle && idle->process_ == getpid()) return *idle;
    Idle* fresh = new Idle;
    if (here.compare_exchange_strong(idle, fresh)) return *fresh;
    delete fresh;
    return *idle;
  }

  void stay(std::shared_ptr<Workshop> shop) {
    Seat seat;
    do {
      shop->help();
      shop.reset();
    } while ((shop = next_shop(seat)));
  }

  // None where no call came in time: the seat is then given up.
  std::shared_ptr<Workshop> next_shop(Seat& seat) {
    std::unique_lock<std::mutex> hold(lock_);
    seat.next = std::exchange(first_, &seat);
    if (!seat.called.wait_for(hold, std::chrono::milliseconds(5), [&] { return seat.shop != nullptr; })) {
      Seat** place = &first_;
      while (*place != &seat) place = &(*place)->next;
      *place = seat.next;
    }
    return std::move(seat.shop);
  }

  const pid_t process_ = getpid();
  std::mutex lock_;
  Seat* first_ = nullptr;  // of a list of those that wait
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

  ~Crew() { workshop_->close(); }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

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
      workshop_->share(run);
      is_shared_.store(false);
    }
    if (failure) std::rethrow_exception(failure);
    if (stop_.load()) throw Interrupted();
  }

 private:
  // Helpers stay until the call ends: many short loops do not start threads again and again. They are not joined: one
  // that has not begun yet must not hold up the end, and all that it touches is the workshop.
  void hire(size_t n_helpers) {
    try {
      for (; n_helpers_ < n_helpers; ++n_helpers_) Idle::call(workshop_);
    } catch (const std::system_error&) {
      // The system gives no more threads: those already started and this one do the work.
    }
  }

  int n_threads_;
  std::function<bool()> poll_;
  std::atomic<bool> stop_{false}, is_shared_{false};
  std::thread::id caller_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
  std::shared_ptr<Workshop> workshop_ = std::make_shared<Workshop>();
  size_t n_helpers_ = 0;
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
