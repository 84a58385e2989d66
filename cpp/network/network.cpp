#include "network.hpp"

#include <barrier>
#include <memory>
#include <thread>

#include "tile.hpp"
#include "update.hpp"

namespace certifit {
namespace {

constexpr size_t tile_rows = 128;         // most rows of a tile of a batch
constexpr size_t small_tile_rows = 1024;  // of a batch that one thread goes through
constexpr size_t least_work = 4'000'000;  // rows times parameters of a batch: smaller ones do not pay for waiting
constexpr size_t block_rows = 1024;       // rows whose gradient is one summand
constexpr size_t stretch = 2048;          // parameters that are stepped at a time: all that a step reads stays near

double step_at(const Pace& pace, int64_t t) {
  const double grown = 1 + pace.decay * static_cast<double>(t);
  if (pace.schedule == Pace::Schedule::inverse) return pace.step / grown;
  return pace.schedule == Pace::Schedule::inverse_root ? pace.step / std::sqrt(grown) : pace.step;
}

// Threads that go through the batches together; all wait for each other twice per batch.
template <class T>
class Team {
 public:
  Team(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, const NetworkRows<T>& rows,
       std::span<const int64_t> visits, const Pace& pace, Training<T>& state, Crew& crew)
      : layout_(layout),
        rows_(rows),
        visits_(visits),
        pace_(pace),
        state_(state),
        crew_(crew),
        is_small_(pace.batch * layout.n_parameters() < least_work) {
    const size_t rows_of_tile = is_small_ ? small_tile_rows : tile_rows;
    n_tiles_ = (pace.batch + rows_of_tile - 1) / rows_of_tile;
    const size_t most = (pace.batch + n_tiles_ - 1) / n_tiles_;
    for (size_t k = 0; k < n_tiles_; ++k) {
      tiles_.push_back(std::make_unique<Tile<T>>(gemm, layout, loss, most));
      gradients_.emplace_back(layout.n_parameters());
    }
    losses_.resize(n_tiles_);
  }

  void run(int n_threads) {
    const size_t n_helpers = is_small_ ? 0 : std::min<size_t>(std::max(n_threads, 1), n_tiles_) - 1;
    std::vector<std::thread> helpers;
    std::atomic<size_t> n_members{0};  // 0: not settled yet
    try {
      for (size_t k = 1; k <= n_helpers; ++k)
        helpers.emplace_back([this, k, &n_members] {
          n_members.wait(0);
          work(k, n_members.load());
        });
    } catch (const std::system_error&) {
      // The system gives no more threads: those already started and this one do the work.
    }
    barrier_ = std::make_unique<std::barrier<>>(static_cast<std::ptrdiff_t>(helpers.size() + 1));
    n_members.store(helpers.size() + 1);
    n_members.notify_all();
    work(0, helpers.size() + 1);
    for (auto& helper : helpers) helper.join();
    if (is_stopped_) throw Interrupted();
  }

 private:
  void work(size_t member, size_t n_members) {
    for (size_t begin = 0; begin < visits_.size(); begin += pace_.batch) {
      if (member == 0 && !crew_.keep_going()) is_stopped_ = true;
      const size_t n = std::min(pace_.batch, visits_.size() - begin);
      const size_t n_tiles = std::min(n_tiles_, n), each = (n + n_tiles - 1) / n_tiles;
      for (size_t k = member; k < n_tiles; k += n_members) {
        const size_t first = std::min(k * each, n), size = std::min(each, n - first);
        Tile<T>& tile = *tiles_[k];
        losses_[k] = 0;
        if (size == 0) {
          std::fill(gradients_[k].begin(), gradients_[k].end(), T(0));
          continue;
        }
        tile.read(rows_, visits_.data(), begin + first, size);
        tile.forward(state_.parameters.data());
        losses_[k] = tile.lose(1.0 / static_cast<double>(n));
        tile.backward(state_.parameters.data(), gradients_[k].data(), T(0));
      }
      barrier_->arrive_and_wait();
      if (is_stopped_) return;
      if (member == 0)
        for (size_t k = 0; k < n_tiles; ++k) state_.loss += losses_[k];
      const size_t size = state_.parameters.size(), from = size * member / n_members,
                   to = size * (member + 1) / n_members;
      update(n_tiles, from, to);
      barrier_->arrive_and_wait();
      if (member == 0) ++state_.n_steps;
    }
  }

  // One step of the parameters from `from` to `to`.
  void update(size_t n_tiles, size_t from, size_t to) {
    const int64_t t = state_.n_steps;
    const double step = step_at(pace_, t), n = static_cast<double>(t + 1);
    const Adam<T> adam{static_cast<T>(pace_.beta1), static_cast<T>(pace_.beta2),
                       static_cast<T>(step / (1 - std::pow(pace_.beta1, n))),
                       static_cast<T>(1 / (1 - std::pow(pace_.beta2, n))), static_cast<T>(pace_.epsilon)};
    T *w = state_.parameters.data(), *first = state_.first.data(), *second = state_.second.data();
    for (; from < to; from += stretch) {
      const size_t size = std::min(stretch, to - from);
      const T* g = slope(n_tiles, from, size);
      if (pace_.method == Pace::Method::adam) {
        adam(size, g, w + from, first + from, second + from);
      } else {
        descend(static_cast<T>(pace_.momentum), static_cast<T>(step), size, g, w + from, first + from);
      }
    }
  }

  // The gradient of the batch's mean loss and of the penalty, summed in the order of the tiles into the first one's.
  const T* slope(size_t n_tiles, size_t from, size_t size) {
    T* g = gradients_[0].data() + from;
    for (size_t k = 1; k < n_tiles; ++k) {
      const T* other = gradients_[k].data() + from;
      for (size_t i = 0; i < size; ++i) g[i] += other[i];
    }
    const T* w = state_.parameters.data();
    const auto alpha = static_cast<T>(pace_.alpha);
    for (size_t t = 0; t < layout_.n_layers(); ++t) {
      const size_t begin = std::max(layout_.weights_at(t), from), end = std::min(layout_.bias_at(t), from + size);
      for (size_t i = begin; i < end; ++i) gradients_[0][i] += alpha * w[i];
    }
    return g;
  }

  const NetworkLayout& layout_;
  const NetworkRows<T>& rows_;
  std::span<const int64_t> visits_;
  const Pace& pace_;
  Training<T>& state_;
  Crew& crew_;
  bool is_small_;  // by sizes alone, so that tiles do not depend on the number of threads
  size_t n_tiles_;
  std::vector<std::unique_ptr<Tile<T>>> tiles_;
  std::vector<std::vector<T>> gradients_;
  std::vector<double> losses_;
  std::unique_ptr<std::barrier<>> barrier_;
  std::atomic<bool> is_stopped_{false};
};

// Tiles that blocks take and give back: one per thread, and not one per block, whose memory would have to be cleared.
template <class T>
class Tiles {
 public:
  Tiles(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss)
      : gemm_(gemm), layout_(layout), loss_(loss) {}

  std::unique_ptr<Tile<T>> take() {
    std::lock_guard<std::mutex> hold(lock_);
    if (free_.empty()) return std::make_unique<Tile<T>>(gemm_, layout_, loss_, tile_rows);
    std::unique_ptr<Tile<T>> tile = std::move(free_.back());
    free_.pop_back();
    return tile;
  }

  void give_back(std::unique_ptr<Tile<T>> tile) {
    std::lock_guard<std::mutex> hold(lock_);
    free_.push_back(std::move(tile));
  }

 private:
  GemmOf<T> gemm_;
  const NetworkLayout& layout_;
  const NetworkLoss loss_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Tile<T>>> free_;
};

struct BlockGradient {
  double loss = 0;
  std::vector<double> gradient;
  void add(const BlockGradient& other) {
    loss += other.loss;
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += other.gradient[i];
  }
};

}  // namespace

template <class T>
void train(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, const NetworkRows<T>& rows,
           std::span<const int64_t> visits, const Pace& pace, Training<T>& state, int n_threads, Crew& crew) {
  Team<T>(gemm, layout, loss, rows, visits, pace, state, crew).run(n_threads);
}

template <class T, class R>
double gradient(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkLoss& loss, const NetworkRows<R>& rows,
                std::span<const T> parameters, std::vector<double>& out, Crew& crew) {
  const size_t n_blocks = (rows.n + block_rows - 1) / block_rows;
  SumTree<BlockGradient> tree(n_blocks);
  Tiles<T> tiles(gemm, layout, loss);
  crew.for_each_block(n_blocks, [&](size_t block) {
    const size_t begin = block * block_rows, end = std::min(rows.n, begin + block_rows);
    std::unique_ptr<Tile<T>> tile = tiles.take();
    std::vector<T> sum(layout.n_parameters(), T(0));
    BlockGradient part;
    for (size_t first = begin; first < end; first += tile_rows) {
      tile->read(rows, nullptr, first, std::min(tile_rows, end - first));
      tile->forward(parameters.data());
      part.loss += tile->lose(1.0);
      tile->backward(parameters.data(), sum.data(), T(1));
    }
    tiles.give_back(std::move(tile));
    if constexpr (std::is_same_v<T, double>) {
      part.gradient = std::move(sum);
    } else {
      part.gradient.assign(sum.begin(), sum.end());
    }
    tree.add(block, std::move(part));
  });
  out = n_blocks == 0 ? std::vector<double>(layout.n_parameters(), 0.0) : std::move(tree.root().gradient);
  return tree.root().loss;
}

template <class T>
void scores(GemmOf<T> gemm, const NetworkLayout& layout, const NetworkRows<T>& rows, std::span<const T> parameters,
            T* out, Crew& crew) {
  const size_t k = layout.sizes.back();
  Tiles<T> tiles(gemm, layout, NetworkLoss{});
  crew.for_each_block((rows.n + tile_rows - 1) / tile_rows, [&](size_t block) {
    const size_t first = block * tile_rows, n = std::min(tile_rows, rows.n - first);
    std::unique_ptr<Tile<T>> tile = tiles.take();
    tile->read(rows, nullptr, first, n);
    tile->forward(parameters.data());
    std::copy(tile->output(), tile->output() + n * k, out + first * k);
    tiles.give_back(std::move(tile));
  });
}

#define CERTIFIT_GRADIENT(T, R)                                                                              \
  template double gradient<T, R>(GemmOf<T>, const NetworkLayout&, const NetworkLoss&, const NetworkRows<R>&, \
                                 std::span<const T>, std::vector<double>&, Crew&);
CERTIFIT_GRADIENT(float, float)
CERTIFIT_GRADIENT(double, double)
CERTIFIT_GRADIENT(double, float)
#undef CERTIFIT_GRADIENT

#define CERTIFIT_NETWORK(T)                                                                          \
  template void train<T>(GemmOf<T>, const NetworkLayout&, const NetworkLoss&, const NetworkRows<T>&, \
                         std::span<const int64_t>, const Pace&, Training<T>&, int, Crew&);           \
  template void scores<T>(GemmOf<T>, const NetworkLayout&, const NetworkRows<T>&, std::span<const T>, T*, Crew&);
CERTIFIT_NETWORK(float)
CERTIFIT_NETWORK(double)
#undef CERTIFIT_NETWORK

}  // namespace certifit
