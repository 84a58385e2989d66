#include <memory>

#include "../text/vocabulary.hpp"
#include "check.hpp"

namespace certifit::text {
namespace {

template <class T>
using Numbers = Array<T, 1>;

// Texts from Python: a list of str, or a tuple (bytes, begins and ends) of Arrow's buffers. Keeps what it reads alive.
// Half characters that str can hold and UTF-8 cannot become bytes that no decoder accepts.
class HeldTexts {
 public:
  Texts texts;

  explicit HeldTexts(const nb::object& from) {
    if (nb::isinstance<nb::list>(from))
      of_list(nb::cast<nb::list>(from));
    else
      of_buffers(nb::cast<nb::tuple>(from));
    check(texts.size() < none, "a call takes fewer than 2^32 - 1 texts");
    for (std::string_view text : texts) check(text.size() < none / 4, "a text must be shorter than 1 GB");
  }

 private:
  void of_list(const nb::list& list) {
    held_.push_back(nb::steal(PyList_AsTuple(list.ptr())));  // the list may change while threads read
    for (nb::handle item : nb::borrow<nb::tuple>(held_.back())) {
      check(PyUnicode_Check(item.ptr()), "texts must be str");
      Py_ssize_t size = 0;
      const char* data = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
      if (!data) {
        PyErr_Clear();
        held_.push_back(nb::steal(PyUnicode_AsEncodedString(item.ptr(), "utf-8", "surrogatepass")));
        char* bytes = nullptr;
        if (!held_.back().is_valid() || PyBytes_AsStringAndSize(held_.back().ptr(), &bytes, &size))
          throw nb::python_error();
        data = bytes;
      }
      texts.emplace_back(data, static_cast<size_t>(size));
    }
  }

  void of_buffers(const nb::tuple& parts) {
    check(parts.size() == 2, "texts are a list, or (bytes, offsets)");
    held_.push_back(parts);
    const auto bytes = nb::cast<Numbers<uint8_t>>(parts[0], false);
    const AnyArray offsets = nb::cast<AnyArray>(parts[1], false);
    const Dtype dtype = dtype_of(offsets);
    check(offsets.ndim() == 1 && offsets.shape(0) >= 1 && (offsets.shape(0) == 1 || offsets.stride(0) == 1),
          "offsets of texts must be a contiguous 1-D array of one more entry than texts");
    check(dtype == Dtype::i32 || dtype == Dtype::i64, "offsets of texts must be int32 or int64");
    const auto offset = [&](size_t i) {
      return dtype == Dtype::i64 ? static_cast<const int64_t*>(offsets.data())[i]
                                 : static_cast<const int32_t*>(offsets.data())[i];
    };
    texts.reserve(offsets.shape(0) - 1);
    for (size_t i = 0; i + 1 < offsets.shape(0); ++i) {
      const int64_t begin = offset(i), end = offset(i + 1);
      check(begin >= 0 && begin <= end && end <= static_cast<int64_t>(bytes.shape(0)),
            "offsets of texts must rise within their bytes");
      texts.emplace_back(reinterpret_cast<const char*>(bytes.data()) + begin, static_cast<size_t>(end - begin));
    }
  }

  std::vector<nb::object> held_;
};

// (lowercase, min_length, min_n, max_n)
Analysis checked_analysis(const nb::tuple& parts) {
  check(parts.size() == 4, "an analysis has four parts");
  const Analysis analysis = {nb::cast<bool>(parts[0]), nb::cast<uint32_t>(parts[1]), nb::cast<uint32_t>(parts[2]),
                             nb::cast<uint32_t>(parts[3])};
  check(analysis.min_length >= 1 && analysis.min_n >= 1 && analysis.max_n >= analysis.min_n,
        "an analysis needs min_length >= 1 and 1 <= min_n <= max_n");
  return analysis;
}

template <class T>
nb::object numbers(std::vector<T>&& values) {
  auto kept = std::make_unique<std::vector<T>>(std::move(values));
  const size_t shape[1] = {kept->size()};
  T* data = kept->data();
  nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  kept.release();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, 1, shape, owner));
}

nb::object bytes(std::vector<char>&& letters) { return numbers(std::vector<uint8_t>(letters.begin(), letters.end())); }

// (values, columns, offsets, first invalid row or -1)
nb::tuple to_tuple(Matrix&& matrix) {
  return nb::make_tuple(numbers(std::move(matrix.values)), numbers(std::move(matrix.columns)),
                        numbers(std::move(matrix.offsets)), matrix.invalid_row);
}

// (bytes, ends, documents, times)
nb::tuple to_tuple(TermTable&& table) {
  return nb::make_tuple(bytes(std::move(table.letters)), numbers(std::move(table.ends)),
                        numbers(std::move(table.documents)), numbers(std::move(table.times)));
}

TermTable checked_table(const nb::tuple& parts) {
  check(parts.size() == 4, "a table of terms has four parts");
  const auto letters = nb::cast<Numbers<uint8_t>>(parts[0], false);
  const auto vector = [](nb::handle part) {
    const auto array = nb::cast<Numbers<int64_t>>(part, false);
    return std::vector<int64_t>(array.data(), array.data() + array.shape(0));
  };
  TermTable table;
  table.letters.assign(letters.data(), letters.data() + letters.shape(0));
  table.ends = vector(parts[1]);
  table.documents = vector(parts[2]);
  table.times = vector(parts[3]);
  check_size("documents", table.documents.size(), table.ends.size());
  check_size("times", table.times.size(), table.ends.size());
  for (const auto* counts : {&table.documents, &table.times})
    for (int64_t count : *counts) check(count >= 0 && count < int64_t{1} << 62, "counts of terms must be in [0, 2^62)");
  int64_t begin = 0;
  for (int64_t end : table.ends) {
    check(begin <= end && end <= static_cast<int64_t>(table.letters.size()), "ends of terms must rise within them");
    begin = end;
  }
  return table;
}

nb::object find_terms_py(nb::object texts, nb::tuple analysis, nb::list stop_words, double low, double high,
                         int64_t most, bool binary, bool with_matrix, int threads) {
  const HeldTexts held(texts), stop(stop_words);
  const Analysis rules = checked_analysis(analysis);
  Found found = run(threads, [&](Crew& crew) {
    return find_terms(held.texts, rules, stop.texts, {low, high, most}, binary, with_matrix, crew);
  });
  return nb::make_tuple(to_tuple(std::move(found.terms)), to_tuple(std::move(found.matrix)));
}

nb::object vocabulary_py(nb::object columns, nb::list stop_words) {
  const HeldTexts held(columns), stop(stop_words);
  check(held.texts.size() < size_t{1} << 31, "a vocabulary has fewer than 2^31 terms");
  auto made = std::make_unique<Vocabulary>(held.texts, stop.texts);
  nb::capsule owner(made.get(), "certifit.vocabulary", [](void* p) noexcept { delete static_cast<Vocabulary*>(p); });
  made.release();
  return owner;
}

nb::object count_terms_py(nb::object texts, nb::tuple analysis, nb::capsule vocabulary, bool binary, int threads) {
  check(vocabulary.name() && std::string(vocabulary.name()) == "certifit.vocabulary", "this is no vocabulary");
  const HeldTexts held(texts);
  const Analysis rules = checked_analysis(analysis);
  const auto& known = *static_cast<const Vocabulary*>(vocabulary.data());
  return to_tuple(run(threads, [&](Crew& crew) { return count_terms(held.texts, rules, known, binary, crew); }));
}

nb::object hash_terms_py(nb::object texts, nb::tuple analysis, nb::list stop_words, uint32_t n_columns, bool is_signed,
                         bool binary, int threads) {
  check(n_columns >= 1 && n_columns <= uint32_t{1} << 31, "hashing needs 1 to 2^31 columns");
  const HeldTexts held(texts), stop(stop_words);
  const Analysis rules = checked_analysis(analysis);
  return to_tuple(run(threads, [&](Crew& crew) {
    return hash_terms(held.texts, rules, stop.texts, n_columns, is_signed, binary, crew);
  }));
}

// The words of each text, in order.
nb::list words_py(nb::object texts, nb::tuple analysis) {
  const HeldTexts held(texts);
  Tokenizer tokenizer(checked_analysis(analysis));
  nb::list rows;
  for (std::string_view text : held.texts) {
    nb::list row;
    tokenizer.read(text, [&](std::string_view word) {
      row.append(nb::str(word.data(), word.size()));
      return false;
    });
    rows.append(row);
  }
  return rows;
}

nb::tuple add_terms_py(nb::tuple a, nb::tuple b) {
  const TermTable first = checked_table(a), second = checked_table(b);
  return to_tuple(run(1, [&](Crew&) { return added(first, second); }));
}

}  // namespace
}  // namespace certifit::text

namespace certifit {

void bind_text(nb::module_& m) {
  using namespace text;
  using namespace nb::literals;
  m.def("find_terms", find_terms_py, "texts"_a, "analysis"_a, "stop_words"_a, "low"_a, "high"_a, "most"_a, "binary"_a,
        "with_matrix"_a, "threads"_a);
  m.def("vocabulary", vocabulary_py, "terms"_a, "stop_words"_a);
  m.def("count_terms", count_terms_py, "texts"_a, "analysis"_a, "vocabulary"_a, "binary"_a, "threads"_a);
  m.def("hash_terms", hash_terms_py, "texts"_a, "analysis"_a, "stop_words"_a, "n_columns"_a, "signed"_a, "binary"_a,
        "threads"_a);
  m.def("words", words_py, "texts"_a, "analysis"_a);
  m.def("add_terms", add_terms_py, "a"_a, "b"_a);
  m.attr("unicode_version") = unicode_version;
}

}  // namespace certifit
