// Memory that is not filled yet; large ones in large pages, where the system has them: it hands out fewer.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace certifit {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using Pages = std::unique_ptr<T[], Free>;

template <class T>
Pages<T> pages(size_t n) {
  constexpr size_t large = size_t{1} << 21;
  const size_t bytes = n * sizeof(T);
  void* memory = bytes < large ? std::malloc(std::max<size_t>(bytes, 1))
                               : std::aligned_alloc(large, (bytes + large - 1) / large * large);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (bytes >= large) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: refused, the pages are small
#endif
  return Pages<T>(static_cast<T*>(memory));
}

}  // namespace certifit
