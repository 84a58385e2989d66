// What every binding needs: arrays checked before the GIL is released, Ctrl-C, vectors handed to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../parallel.hpp"
#include "../tile.hpp"

namespace certifit {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;

// Rows of numbers in C order. A type of its own for its name: the compiler joins the names of all arguments of a
// binding letter by letter, and that of an ndarray has a hundred.
template <typename T, size_t ndim>
struct Array : nb::ndarray<const T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu> {
  using Base = nb::ndarray<const T, nb::ndim<ndim>, nb::c_contig, nb::device::cpu>;
  Array() = default;
  explicit Array(Base&& array) : Base(std::move(array)) {}
};

}  // namespace certifit

template <typename T, size_t ndim>
struct nanobind::detail::type_caster<certifit::Array<T, ndim>> {
  using Own = certifit::Array<T, ndim>;
  NB_TYPE_CASTER(Own, const_name("array"))

  template <typename Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    make_caster<typename Own::Base> caster;
    if (!caster.from_python(source, flags, cleanup)) return false;
    value = Own(std::move(caster.value));
    return true;
  }
};

namespace certifit {

using Vector = Array<double, 1>;
using Matrix = Array<double, 2>;

// Of a message that is there already no string is made, which would cost more than a look at a row.
inline void check(bool claim, const char* message) {
  if (!claim) throw nb::value_error(message);
}
inline void check(bool claim, const std::string& message) { check(claim, message.c_str()); }

inline void check_size(const char* name, size_t got, size_t wanted) {
  if (got == wanted) return;
  check(false, std::string(name) + " has " + std::to_string(got) + " entries, needs " + std::to_string(wanted));
}

inline Dtype dtype_of(const AnyArray& array) {
  const auto type = array.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(type.code);
  using Code = nb::dlpack::dtype_code;
  if (code == Code::Float && type.bits == 64) return Dtype::f64;
  if (code == Code::Float && type.bits == 32) return Dtype::f32;
  if (code == Code::Bool) return Dtype::u8;
  const bool is_signed = code == Code::Int;
  check(is_signed || code == Code::UInt, "rows must be float32, float64, integers or bool");
  switch (type.bits) {
    case 64: return is_signed ? Dtype::i64 : Dtype::u64;
    case 32: return is_signed ? Dtype::i32 : Dtype::u32;
    case 16: return is_signed ? Dtype::i16 : Dtype::u16;
    default: return is_signed ? Dtype::i8 : Dtype::u8;
  }
}

// Rows from Python: a list of segments, each a tuple that starts with its kind (see data/columns.py). Indices of CSR
// and codes are checked as they are read, which costs less than a look at them here. Keeps the arrays alive.
class HeldRows {
 public:
  Rows rows;

  explicit HeldRows(const nb::list& segments) {
    bool first = true;
    for (nb::handle item : segments) {
      nb::tuple parts = nb::cast<nb::tuple>(item);
      check(parts.size() > 0, "a segment is an empty tuple");
      const std::string kind = nb::cast<std::string>(parts[0]);
      check_parts(kind, parts.size());
      if (kind == "rows") {  // bitmaps alone do not tell how many rows there are
        check(first, "the number of rows must come before the segments");
        rows.n_rows = nb::cast<size_t>(parts[1]);
        check(rows.n_rows <= most_rows, "rows are more than 2^48");
        first = false;
        continue;
      }
      Segment segment;
      n_rows_.reset();
      if (kind == "dense") {
        segment = dense(parts);
      } else if (kind == "csr") {
        segment = csr(parts);
      } else if (kind == "number" || kind == "bits") {
        segment = number(parts, kind == "bits");
      } else if (kind == "missing") {
        segment.kind = Segment::Kind::missing;
        segment.valid = bits(parts[1], parts[2]);
      } else {
        segment = codes(parts);
      }
      if (n_rows_) {
        if (first) rows.n_rows = *n_rows_;
        if (*n_rows_ != rows.n_rows)
          check(false, "segments have " + std::to_string(*n_rows_) + " and " + std::to_string(rows.n_rows) + " rows");
        first = false;
      }
      check(segment.n_columns <= most_columns - rows.n_columns, "columns are 2^31 or more");
      rows.add(segment);
    }
    check(!first, "rows need at least one segment with values");
    for (const auto& [size, offset] : bitmaps_)
      check(offset <= size * 8 && size * 8 - offset >= rows.n_rows, "a bitmap is shorter than its rows");
  }

 private:
  static constexpr size_t most_rows = size_t{1} << 48;
  static constexpr size_t most_columns = (size_t{1} << 31) - 1;

  static void check_parts(const std::string& kind, size_t n_parts) {
    static const std::map<std::string, size_t> wanted = {{"rows", 2}, {"dense", 2},   {"csr", 5},  {"number", 5},
                                                         {"bits", 6}, {"missing", 3}, {"codes", 7}};
    auto found = wanted.find(kind);
    if (found == wanted.end()) check(false, "unknown kind of segment: " + kind);
    if (found->second != n_parts)
      check(false,
            "a " + kind + " segment has " + std::to_string(n_parts) + " parts, needs " + std::to_string(found->second));
  }

  AnyArray hold(nb::handle object) {
    held_.push_back(nb::cast<AnyArray>(object, false));
    return held_.back();
  }

  AnyArray vector(nb::handle object) {
    AnyArray array = hold(object);
    check(array.ndim() == 1 && (array.shape(0) < 2 || array.stride(0) == 1), "segments need contiguous 1-D arrays");
    return array;
  }

  Bits bits(nb::handle data, nb::handle offset) {
    if (data.is_none()) return {};
    AnyArray array = vector(data);
    check(dtype_of(array) == Dtype::u8, "a bitmap must be uint8");
    bitmaps_.push_back({array.shape(0), nb::cast<size_t>(offset)});
    return {static_cast<const uint8_t*>(array.data()), nb::cast<size_t>(offset)};
  }

  Segment dense(const nb::tuple& parts) {
    AnyArray array = hold(parts[1]);
    check(array.ndim() == 2, "rows must be a 2-D array");
    Segment s;
    s.n_columns = array.shape(1);
    s.dtype = dtype_of(array);
    s.values = array.data();
    s.row_stride = array.stride(0);
    s.column_stride = array.stride(1);
    n_rows_ = array.shape(0);
    return s;
  }

  Segment number(const nb::tuple& parts, bool is_bits) {
    Segment s;
    s.kind = Segment::Kind::column;
    const size_t at = is_bits ? 3 : 2;
    if (is_bits) {
      s.dtype = Dtype::bits;
      check(!parts[1].is_none(), "a bits segment needs its bitmap");
      s.bits = bits(parts[1], parts[2]);
    } else {
      AnyArray array = vector(parts[1]);
      s.dtype = dtype_of(array);
      s.values = array.data();
      n_rows_ = array.shape(0);
    }
    s.valid = bits(parts[at], parts[at + 1]);
    s.fill = nb::cast<double>(parts[at + 2]);
    return s;
  }

  Segment codes(const nb::tuple& parts) {
    AnyArray codes = vector(parts[1]), columns = vector(parts[2]);
    Segment s;
    s.kind = Segment::Kind::codes;
    s.dtype = dtype_of(codes);
    check(s.dtype != Dtype::f64 && s.dtype != Dtype::f32, "codes must be integers");
    check(dtype_of(columns) == Dtype::i32, "columns of codes must be int32");
    s.values = codes.data();
    s.columns = static_cast<const int32_t*>(columns.data());
    s.n_codes = columns.shape(0);
    s.n_columns = nb::cast<size_t>(parts[3]);
    s.valid = bits(parts[4], parts[5]);
    s.null_column = nb::cast<int32_t>(parts[6]);
    const auto limit = static_cast<int64_t>(std::min(s.n_columns, most_columns));
    bool within = s.null_column < limit;
    for (size_t k = 0; k < s.n_codes; ++k) within = within && s.columns[k] < limit;
    check(within, "a code stands for a column that is not there");
    n_rows_ = codes.shape(0);
    return s;
  }

  Segment csr(const nb::tuple& parts) {
    AnyArray values = vector(parts[1]), indices = vector(parts[2]), offsets = vector(parts[3]);
    Segment s;
    s.kind = Segment::Kind::csr;
    s.n_columns = nb::cast<size_t>(parts[4]);
    s.dtype = dtype_of(values);
    check(s.dtype == Dtype::f64 || s.dtype == Dtype::f32 || s.dtype == Dtype::i64 || s.dtype == Dtype::i32,
          "CSR values must be float32, float64, int32 or int64");
    const Dtype index = dtype_of(indices);
    check(index == dtype_of(offsets) && (index == Dtype::i32 || index == Dtype::i64),
          "CSR indices and offsets must both be int32 or both int64");
    check(offsets.shape(0) >= 1, "CSR offsets are empty");
    check_size("CSR indices", indices.shape(0), values.shape(0));
    s.wide_index = index == Dtype::i64;
    s.values = values.data();
    s.indices = indices.data();
    s.offsets = offsets.data();
    n_rows_ = offsets.shape(0) - 1;
    s.n_entries = static_cast<int64_t>(values.shape(0));
    check(s.offset(*n_rows_) <= s.n_entries, "CSR offsets point beyond the values");
    return s;
  }

  std::vector<AnyArray> held_;
  std::vector<std::pair<size_t, size_t>> bitmaps_;  // bytes, offset in bits
  std::optional<size_t> n_rows_;                    // of the last segment that knows
};

// Runs `work(crew)` without the GIL; a pending signal (Ctrl-C) ends it and its exception is raised.
template <class Work>
auto run(int n_threads, Work work) {
  auto poll = [] {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
  };
  try {
    nb::gil_scoped_release nogil;
    Crew crew(n_threads, poll);
    return work(crew);
  } catch (const Interrupted&) {
    if (PyErr_Occurred()) throw nb::python_error();
    throw;
  }
}

template <class T>
nb::object array_of(std::vector<T>&& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const size_t shape[1] = {kept->size()};
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), 1, shape, owner));
}

// One number of every item.
template <class T, class Item, class Get>
nb::object array_of(const std::vector<Item>& items, Get get) {
  std::vector<T> values;
  values.reserve(items.size());
  for (const Item& item : items) values.push_back(static_cast<T>(get(item)));
  return array_of(std::move(values));
}

template <size_t ndim>
nb::ndarray<nb::numpy, double, nb::ndim<ndim>> to_numpy(std::vector<double>&& values, const size_t (&shape)[ndim]) {
  auto* kept = new std::vector<double>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return nb::ndarray<nb::numpy, double, nb::ndim<ndim>>(kept->data(), ndim, shape, owner);
}
inline auto to_numpy(std::vector<double>&& values) {
  const size_t shape[1] = {values.size()};
  return to_numpy<1>(std::move(values), shape);
}

}  // namespace certifit
