#include "fits.hpp"

#include <limits>

#include "../elementary.hpp"
#include "solve.hpp"

namespace certifit {
namespace {

constexpr size_t chunk = 256;        // rows whose columns are held at a time
constexpr size_t apart = chunk + 8;  // of two columns: a power of two would crowd them into the same lines of the cache
constexpr size_t queries_at_once = 8;      // of one block of work
constexpr double safe_condition = 1e7;     // of the correlations: beyond it the rows are rotated
constexpr double rank_tolerance = 1e-10;   // of the largest singular value: smaller ones count as zero
constexpr double constant_column = 1e-14;  // of its mean: a column of smaller spread is constant
constexpr double least_spread = 1e-3;      // of a sum of squares about the query: what is left of it about the mean
constexpr double none = std::numeric_limits<double>::quiet_NaN();

size_t padded(size_t n) { return (n + lanes - 1) / lanes * lanes; }

// Columns one after the other, each padded with zeros to whole vectors.
struct ColumnMajor {
  size_t n_padded, n_columns;
  std::vector<double> values;

  ColumnMajor(const double* rows, size_t n, size_t k) : n_padded(padded(n)), n_columns(k), values(n_padded * k, 0.0) {
    for (size_t j = 0; j < k; ++j)
      for (size_t i = 0; i < n; ++i) values[j * n_padded + i] = rows[i * k + j];
  }
  const double* column(size_t j) const { return values.data() + j * n_padded; }
};

double total(Vec v) { return (v[0] + v[2]) + (v[1] + v[3]); }

double dot(const double* a, const double* b, size_t n) {
  Vec sum = broadcast(0.0);
  for (size_t i = 0; i < n; i += lanes) sum = multiply_add(load(a + i), load(b + i), sum);
  return total(sum);
}

// Products of two columns with four others.
void dot2x4(const double* a, const double* b, size_t stride, size_t n, double* first, double* second) {
  Vec s0 = broadcast(0.0), s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0;
  for (size_t i = 0; i < n; i += lanes) {
    const Vec x = load(a + i), y = load(a + stride + i);
    const Vec b0 = load(b + i), b1 = load(b + stride + i);
    s0 = multiply_add(x, b0, s0);
    t0 = multiply_add(y, b0, t0);
    s1 = multiply_add(x, b1, s1);
    t1 = multiply_add(y, b1, t1);
    const Vec b2 = load(b + 2 * stride + i), b3 = load(b + 3 * stride + i);
    s2 = multiply_add(x, b2, s2);
    t2 = multiply_add(y, b2, t2);
    s3 = multiply_add(x, b3, s3);
    t3 = multiply_add(y, b3, t3);
  }
  first[0] += total(s0), first[1] += total(s1), first[2] += total(s2), first[3] += total(s3);
  second[0] += total(t0), second[1] += total(t1), second[2] += total(t2), second[3] += total(t3);
}

// What all threads read.
struct Shared {
  const LocalRows& rows;
  const LocalQueries& queries;
  LocalWeight kind;
  ColumnMajor points, columns;
  std::vector<double> y, weight;

  Shared(const LocalRows& r, const LocalQueries& q, LocalWeight k)
      : rows(r),
        queries(q),
        kind(k),
        points(r.points, r.n, r.d),
        columns(r.columns, r.has_basis() ? r.n : 0, r.n_columns),
        y(padded(r.n), 0.0),
        weight(padded(r.n), 1.0) {
    std::copy(r.y, r.y + r.n, y.begin());
    std::copy(r.weight, r.weight + r.n, weight.begin());
  }
};

// Sums over rows of one query and tau: of the columns, and of their products, lower triangle. The last is the target.
struct Sums {
  size_t stride;
  std::vector<double> products, columns;
  double weight = 0;

  explicit Sums(size_t q) : stride(q + 8), products((q + 2) * (q + 8)), columns(q + 2) {}
  void clear() {
    std::fill(products.begin(), products.end(), 0.0);
    std::fill(columns.begin(), columns.end(), 0.0);
    weight = 0;
  }
  double& operator()(size_t j, size_t k) { return products[j * stride + k]; }
};

// One thread's fits. First for all taus at once with columns about the query; where that loses digits, or the system is
// nearly singular, again about the weighted means.
class Worker {
 public:
  Worker(const Shared& shared, std::span<const double> taus)
      : s_(shared),
        taus_(taus),
        n_(padded(shared.rows.n)),
        q_(shared.rows.n_terms()),
        n_linear_(shared.rows.has_basis()   ? shared.rows.n_columns
                  : shared.rows.degree == 0 ? 0
                                            : shared.rows.d),
        square_(n_),
        w_(n_),
        mean_(n_linear_),
        columns_((q_ + 8) * apart),
        products_((q_ + 2) * apart),
        sums_(taus.size(), Sums(q_)),
        again_(q_),
        f_(q_),
        beta_(q_),
        g_(q_),
        size_(q_) {}

  // Squared distances from query k, the least of them, and the sums of every tau.
  void prepare(size_t k) {
    query_ = k;
    const double* x = s_.queries.points + k * s_.rows.d;
    std::fill(square_.begin(), square_.end(), 0.0);
    for (size_t j = 0; j < s_.rows.d; ++j) {
      const double* column = s_.points.column(j);
      const Vec at = broadcast(x[j]);
      for (size_t i = 0; i < n_; i += lanes) {
        const Vec u = load(column + i) - at;
        store(&square_[i], multiply_add(u, u, load(&square_[i])));
      }
    }
    omitted_ = s_.queries.omitted == nullptr ? -1 : s_.queries.omitted[k];
    nearest_ = std::numeric_limits<double>::infinity();
    std::fill(square_.begin() + s_.rows.n, square_.end(), nearest_);
    if (omitted_ >= 0) square_[omitted_] = nearest_;
    Vec least = broadcast(nearest_);
    for (size_t i = 0; i < n_; i += lanes) least = -greater(-least, -load(&square_[i]));
    nearest_ = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
    std::fill(mean_.begin(), mean_.end(), 0.0);
    y_mean_ = 0;
    for (Sums& sums : sums_) sums.clear();
    for (size_t begin = 0; begin < n_; begin += chunk) {
      const size_t n = std::min(chunk, n_ - begin);
      bool is_filled = false;
      for (size_t t = 0; t < taus_.size(); ++t) {
        if (!weigh(begin, n, taus_[t])) continue;
        if (!is_filled) fill(begin, n);
        is_filled = true;
        add(begin, n, sums_[t]);
      }
    }
  }

  // The fit of the query with taus[t]; false where no row is left.
  bool fit(size_t t) {
    std::fill(mean_.begin(), mean_.end(), 0.0);
    y_mean_ = 0;
    current_ = &sums_[t];
    start();
    if (current_->weight > 0 && centre_sums() && (q_ == 0 || by_factor())) {
      finish();
      return true;
    }
    if (!weigh_all(taus_[t])) return false;
    find_means();
    again_.clear();
    for (size_t begin = 0; begin < n_; begin += chunk) {
      const size_t n = std::min(chunk, n_ - begin);
      if (!has_weight(begin, n)) continue;
      fill(begin, n);
      add(begin, n, again_);
    }
    current_ = &again_;
    start();
    centre_sums();
    if (q_ > 0 && !by_factor()) by_rotations();
    finish();
    return true;
  }

  // sum_i l_i^2 / a_i, the fit being l'y.
  double norm(size_t t) {
    weigh_all(taus_[t]);
    double sum = 0;
    for (size_t begin = 0; begin < n_; begin += chunk) {
      const size_t n = std::min(chunk, n_ - begin);
      if (!has_weight(begin, n)) continue;
      fill(begin, n);
      for (size_t i = 0; i < n; ++i) {
        const double w = w_[begin + i];
        if (w == 0) continue;
        double l = 1 / current_->weight;
        for (size_t j = 0; j < q_; ++j) l += g_[j] * (columns_[j * apart + i] - mean_of(j));
        sum += l * l * w * (w / s_.weight[begin + i]);
      }
    }
    return sum;
  }

  // Of 1 and every term; about the query, but for a basis.
  void coefficients(double* out) const {
    if (s_.rows.has_basis()) {
      out[0] = prediction;
      const double* at = s_.queries.at + query_ * q_;
      for (size_t j = 0; j < q_; ++j) out[0] -= at[j] * beta_[j], out[j + 1] = beta_[j];
      return;
    }
    out[0] = prediction;
    std::copy(beta_.begin(), beta_.end(), out + 1);
    if (s_.rows.degree < 2) return;
    const size_t d = s_.rows.d;
    size_t term = d;
    for (size_t j = 0; j < d; ++j)
      for (size_t k = j; k < d; ++k, ++term) {  // the slope of v_j v_k at the query, v = -mean
        out[1 + j] -= beta_[term] * mean_[k];
        out[1 + k] -= beta_[term] * mean_[j];
      }
  }

  double prediction = 0, leverage = 0, condition = 1;
  int32_t rank = 0;

 private:
  double mean_of(size_t j) const { return current_->columns[j] / current_->weight; }

  // K times the weights of the rows of a chunk; false where none has weight.
  bool weigh(size_t begin, size_t n, double tau) {
    double* w = &w_[begin];
    if (s_.kind == LocalWeight::gaussian) {
      const Vec factor = broadcast(-0.5 / (tau * tau)), least = broadcast(nearest_);
      for (size_t i = 0; i < n; i += lanes)
        store(w + i, exponential((load(&square_[begin + i]) - least) * factor) * load(&s_.weight[begin + i]));
    } else if (s_.kind == LocalWeight::tricube) {
      for (size_t i = 0; i < n; ++i) {
        const double u = std::sqrt(square_[begin + i]) / tau, c = std::max(1 - u * u * u, 0.0);
        w[i] = c * c * c * s_.weight[begin + i];
      }
    } else {
      const double* given = s_.queries.weights + query_ * s_.rows.n;
      for (size_t i = begin; i < std::min(begin + n, s_.rows.n); ++i) w_[i] = given[i] * s_.weight[i];
    }
    if (begin + n > s_.rows.n) std::fill(w_.begin() + s_.rows.n, w_.end(), 0.0);
    if (omitted_ >= static_cast<int64_t>(begin) && omitted_ < static_cast<int64_t>(begin + n)) w_[omitted_] = 0;
    return has_weight(begin, n);
  }

  double weight_of(size_t begin, size_t n) const {
    Vec sum = broadcast(0.0);
    for (size_t i = 0; i < n; i += lanes) sum = sum + load(&w_[begin + i]);
    return total(sum);
  }
  bool has_weight(size_t begin, size_t n) const { return weight_of(begin, n) > 0; }

  // Weights of all rows; of the nearest alone where no other has any. False where no row is left.
  bool weigh_all(double tau) {
    bool is_any = false;
    for (size_t begin = 0; begin < n_; begin += chunk)
      is_any = weigh(begin, std::min(chunk, n_ - begin), tau) || is_any;
    if (is_any) return true;
    for (size_t i = 0; i < s_.rows.n; ++i) {
      const bool is_nearest = square_[i] == nearest_ && static_cast<int64_t>(i) != omitted_;
      w_[i] = is_nearest ? s_.weight[i] : 0.0;
      is_any = is_any || is_nearest;
    }
    return is_any;
  }

  const double* linear(size_t j) const { return s_.rows.has_basis() ? s_.columns.column(j) : s_.points.column(j); }
  double origin(size_t j) const {
    return s_.rows.has_basis() ? s_.queries.at[query_ * q_ + j] : s_.queries.points[query_ * s_.rows.d + j];
  }

  // Weighted means of the linear columns, from the query, and of the target.
  void find_means() {
    double weight = 0;
    for (size_t i = 0; i < n_; ++i) weight += w_[i];
    for (size_t j = 0; j < n_linear_; ++j) {
      const double* column = linear(j);
      const Vec at = broadcast(origin(j));
      Vec sum = broadcast(0.0);
      for (size_t i = 0; i < n_; i += lanes) sum = multiply_add(load(column + i) - at, load(&w_[i]), sum);
      mean_[j] = total(sum) / weight;
    }
    y_mean_ = dot(s_.y.data(), w_.data(), n_) / weight;
  }

  // The columns of some rows, the linear ones about the query and `mean_`.
  void fill(size_t begin, size_t n) {
    for (size_t j = 0; j < n_linear_; ++j) {
      const double* column = linear(j) + begin;
      const Vec at = broadcast(origin(j)), mean = broadcast(mean_[j]);
      for (size_t i = 0; i < n; i += lanes) store(&columns_[j * apart + i], (load(column + i) - at) - mean);
    }
    if (q_ > n_linear_) {
      size_t term = n_linear_;
      for (size_t j = 0; j < n_linear_; ++j)
        for (size_t k = j; k < n_linear_; ++k, ++term)
          for (size_t i = 0; i < n; i += lanes)
            store(&columns_[term * apart + i], load(&columns_[j * apart + i]) * load(&columns_[k * apart + i]));
    }
    const Vec mean = broadcast(y_mean_);
    for (size_t i = 0; i < n; i += lanes) store(&columns_[q_ * apart + i], load(&s_.y[begin + i]) - mean);
  }

  void add(size_t begin, size_t n, Sums& sums) {
    const double* w = &w_[begin];
    sums.weight += weight_of(begin, n);
    for (size_t j = 0; j <= q_; ++j) {
      Vec sum = broadcast(0.0);
      for (size_t i = 0; i < n; i += lanes) {
        const Vec product = load(&columns_[j * apart + i]) * load(w + i);
        store(&products_[j * apart + i], product);
        sum = sum + product;
      }
      sums.columns[j] += total(sum);
    }
    for (size_t j = 0; j <= q_; j += 2)
      for (size_t k = 0; k <= j + 1; k += 4)
        dot2x4(&products_[j * apart], &columns_[k * apart], apart, n, &sums(j, k), &sums(j + 1, k));
  }

  void start() {
    rank = 0;
    condition = 1;
    std::fill(beta_.begin(), beta_.end(), 0.0);
    std::fill(g_.begin(), g_.end(), 0.0);
  }

  // Sums of products about the means of all columns, and the columns at the query; false where that loses digits.
  bool centre_sums() {
    Sums& sums = *current_;
    bool is_safe = true;
    for (size_t j = 0; j < n_linear_; ++j) f_[j] = -mean_[j];
    if (q_ > n_linear_) {
      size_t term = n_linear_;
      for (size_t j = 0; j < n_linear_; ++j)
        for (size_t k = j; k < n_linear_; ++k, ++term) f_[term] = f_[j] * f_[k];
    }
    for (size_t j = 0; j < q_; ++j) {
      const double raw = sums(j, j), spread = raw - sums.columns[j] * mean_of(j);
      is_safe = is_safe && spread > least_spread * raw;
      const double level = j < n_linear_ ? constant_column * mean_[j] : 0.0;
      size_[j] = spread > sums.weight * level * level && spread > constant_column * raw ? std::sqrt(spread) : 0.0;
      f_[j] -= mean_of(j);
    }
    if (!is_safe && current_ != &again_) return false;
    for (size_t j = 0; j <= q_; ++j)
      for (size_t k = 0; k <= j; ++k) sums(j, k) -= sums.columns[j] * mean_of(k);
    return true;
  }

  void finish() {
    double at = 0, quadratic = 0;
    for (size_t j = 0; j < q_; ++j) at += f_[j] * beta_[j], quadratic += f_[j] * g_[j];
    prediction = y_mean_ + mean_of(q_) + at;
    leverage = 1 / current_->weight + quadratic;
  }

  bool by_factor() {
    std::vector<double> R(q_ * q_);
    for (size_t j = 0; j < q_; ++j) {
      if (!(size_[j] > 0)) return false;
      for (size_t k = 0; k <= j; ++k)
        R[j * q_ + k] = R[k * q_ + j] = j == k ? 1.0 : (*current_)(j, k) / size_[j] / size_[k];
    }
    std::vector<double> L = R;
    if (!cholesky(L, q_)) return false;
    const double squared = condition_of(R, L, q_);
    if (!(squared <= safe_condition)) return false;
    for (size_t j = 0; j < q_; ++j) beta_[j] = (*current_)(q_, j) / size_[j], g_[j] = f_[j] / size_[j];
    solve_factor(L, q_, beta_.data());
    solve_factor(L, q_, g_.data());
    for (size_t j = 0; j < q_; ++j) beta_[j] /= size_[j], g_[j] /= size_[j];
    rank = static_cast<int32_t>(q_);
    condition = std::sqrt(squared);
    return true;
  }

  // The solution of least norm from singular values of the rows, in units of the widest linear column.
  void by_rotations() {
    double unit = 0;
    for (size_t j = 0; j < n_linear_; ++j) unit = std::max(unit, size_[j]);
    unit /= std::sqrt(current_->weight);
    if (!(unit > 0)) return;
    auto scale = [&](size_t j) { return j < n_linear_ ? 1 / unit : 1 / (unit * unit); };
    RowFactor factor(q_ + 1);
    std::vector<double> row(q_ + 1);
    for (size_t begin = 0; begin < n_; begin += chunk) {
      const size_t n = std::min(chunk, n_ - begin);
      if (!has_weight(begin, n)) continue;
      fill(begin, n);
      for (size_t i = 0; i < n; ++i) {
        const double root = std::sqrt(w_[begin + i]);
        if (root == 0) continue;
        for (size_t j = 0; j < q_; ++j) {
          const bool is_constant = j < n_linear_ && size_[j] == 0;
          row[j] = is_constant ? 0.0 : root * (columns_[j * apart + i] - mean_of(j)) * scale(j);
        }
        row[q_] = root * (columns_[q_ * apart + i] - mean_of(q_));
        factor.add(row);
      }
    }
    std::vector<double> columns(q_ * q_, 0.0);
    for (size_t j = 0; j < q_; ++j)
      for (size_t i = 0; i <= j; ++i) columns[j * q_ + i] = factor.at(i, j);
    from_singular_values(SingularValues(std::move(columns), q_), factor, scale);
  }

  template <class Scale>
  void from_singular_values(const SingularValues& parts, const RowFactor& factor, Scale scale) {
    const double largest = *std::max_element(parts.sizes.begin(), parts.sizes.end());
    double smallest = largest;
    for (size_t k = 0; k < q_; ++k) {
      const double size = parts.sizes[k];
      if (!(size > rank_tolerance * largest)) continue;
      ++rank;
      smallest = std::min(smallest, size);
      double of_y = 0, of_query = 0;
      for (size_t i = 0; i < q_; ++i) {
        of_y += parts.A[k * q_ + i] * factor.at(i, q_);
        of_query += parts.V[k * q_ + i] * f_[i] * scale(i);
      }
      for (size_t i = 0; i < q_; ++i) {
        beta_[i] += parts.V[k * q_ + i] * scale(i) * of_y / size / size;
        g_[i] += parts.V[k * q_ + i] * scale(i) * of_query / size / size;
      }
    }
    condition = rank == static_cast<int32_t>(q_) ? largest / smallest : std::numeric_limits<double>::infinity();
  }

  const Shared& s_;
  std::span<const double> taus_;
  size_t n_, q_, n_linear_, query_ = 0;
  int64_t omitted_ = -1;
  double nearest_ = 0, y_mean_ = 0;
  std::vector<double> square_, w_, mean_, columns_, products_;
  std::vector<Sums> sums_;
  Sums again_;
  Sums* current_ = nullptr;
  std::vector<double> f_, beta_, g_, size_;
};

}  // namespace

LocalFits local_fits(const LocalRows& rows, const LocalQueries& queries, LocalWeight kind, std::span<const double> taus,
                     bool with_norm, bool with_coefficients, Crew& crew) {
  const size_t m = queries.m, size = taus.size() * m, p = rows.n_terms() + 1;
  LocalFits fits{std::vector<double>(size, none),
                 std::vector<double>(size, none),
                 std::vector<double>(size, none),
                 std::vector<double>(size, none),
                 std::vector<double>(with_coefficients ? size * p : 0, none),
                 std::vector<int32_t>(size, -1)};
  const Shared shared(rows, queries, kind);
  crew.for_each_block((m + queries_at_once - 1) / queries_at_once, [&](size_t block) {
    Worker worker(shared, taus);
    for (size_t k = block * queries_at_once; k < std::min(m, (block + 1) * queries_at_once); ++k) {
      if (!crew.keep_going()) return;
      worker.prepare(k);
      for (size_t t = 0; t < taus.size(); ++t) {
        if (!worker.fit(t)) continue;
        const size_t at = t * m + k;
        fits.prediction[at] = worker.prediction;
        fits.leverage[at] = worker.leverage;
        fits.condition[at] = worker.condition;
        fits.rank[at] = worker.rank;
        if (with_norm) fits.norm[at] = worker.norm(t);
        if (with_coefficients) worker.coefficients(&fits.coefficients[at * p]);
      }
    }
  });
  return fits;
}

}  // namespace certifit
