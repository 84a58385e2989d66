#include "signs.hpp"

#include "../twofold.hpp"

namespace certifit {
namespace {

constexpr double smallest = 0x1p-900;  // products below lose bits that no second number holds

// A sum of doubles without rounding: parts that do not overlap, the largest last. Shewchuk, "Adaptive precision
// floating-point arithmetic and fast robust geometric predicates", 1997.
class ExactSum {
 public:
  void clear() { parts_.clear(); }

  void add(double x) {
    size_t kept = 0;
    for (const double part : parts_) {
      const Twofold<double> both = two_sum(x, part);
      if (both.lo != 0) parts_[kept++] = both.lo;
      x = both.hi;
    }
    parts_.resize(kept);
    if (x != 0) parts_.push_back(x);
  }

  int8_t sign() const { return parts_.empty() ? 0 : (parts_.back() > 0 ? 1 : -1); }

 private:
  std::vector<double> parts_;
};

class RowSign {
 public:
  RowSign(const Rows& rows, const double* weights, double intercept)
      : rows_(rows), weights_(weights), dense_(of_dense(rows, weights)), intercept_(intercept) {}

  int8_t operator()(size_t row, const double* x, double* ratio) {
    double sum = intercept_, size = std::fabs(intercept_);
    size_t n_terms = 1;
    for_each_term(row, x, [&](double value, double weight) {
      const double product = value * weight;
      sum += product;
      size += std::fabs(product);
      ++n_terms;
    });
    *ratio = size > 0 ? sum / size : 0.0;
    // |rounding| <= n_terms 2^-53 size (1 + ...), for sizes far from the ends of the range.
    if (std::isfinite(size) && size > smallest && std::fabs(sum) > static_cast<double>(n_terms) * 0x1p-51 * size)
      return sum > 0 ? 1 : -1;
    return exact(row, x);
  }

 private:
  template <class Use>
  void for_each_term(size_t row, const double* x, Use use) const {
    for (size_t j = 0; j < rows_.n_dense; ++j)
      if (dense_[j] != 0) use(x[j], dense_[j]);
    rows_.for_each_entry(row, [&](size_t j, double value) {
      if (weights_[j] != 0) use(value, weights_[j]);
    });
  }

  int8_t exact(size_t row, const double* x) {
    bool is_known = std::isfinite(intercept_);
    sum_.clear();
    sum_.add(intercept_);
    for_each_term(row, x, [&](double value, double weight) {
      if (value == 0) return;
      const Twofold<double> product = two_product(value, weight);
      const double size = std::fabs(product.hi);
      is_known = is_known && size > smallest && size < 1 / smallest;
      sum_.add(product.lo);
      sum_.add(product.hi);
    });
    return is_known ? sum_.sign() : Signs::unknown;
  }

  const Rows& rows_;
  const double* weights_;
  std::vector<double> dense_;
  double intercept_;
  ExactSum sum_;
};

}  // namespace

Signs exact_signs(const Rows& rows, const double* weights, double intercept, Crew& crew) {
  constexpr size_t chunk = 1024;
  Signs out{std::vector<int8_t>(rows.n_rows), std::vector<double>(rows.n_rows)};
  crew.for_each_block((rows.n_rows + chunk - 1) / chunk, [&](size_t block) {
    RowSign sign_of(rows, weights, intercept);
    std::vector<double> scratch;
    const size_t begin = block * chunk, count = std::min(chunk, rows.n_rows - begin);
    const Tile tile = read_tile(rows, begin, count, scratch);
    for (size_t k = 0; k < count; ++k) out.sign[begin + k] = sign_of(begin + k, tile.row(k), &out.ratio[begin + k]);
  });
  return out;
}

}  // namespace certifit
