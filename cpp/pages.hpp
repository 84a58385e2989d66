// Memory that is not filled yet; in large pages, where the system has them, it is handed out at once. A virtual machine
// whose host takes free large pages back pays for them again at every fit, 2 s per gigabyte against 0.1 (0.5 in small
// pages): memory of gigabytes that is read in order is asked for in small ones.
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
Pages<T> pages(size_t n, bool are_large = true) {
  constexpr size_t large = size_t{1} << 21;
  const size_t bytes = n * sizeof(T);
  are_large = are_large && bytes >= large;
  void* memory = are_large ? std::aligned_alloc(large, (bytes + large - 1) / large * large)
                           : std::malloc(std::max<size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (are_large) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: refused, the pages are small
#endif
  return Pages<T>(static_cast<T*>(memory));
}

}  // namespace certifit
