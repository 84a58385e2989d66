// Of builds with sanitizers alone: there `new` ends the process where memory is out, and the core is to throw.
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

void* allocated(size_t size, size_t alignment) {
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment < sizeof(void*) ? sizeof(void*) : alignment, size ? size : 1) != 0)
    throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return allocated(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return allocated(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t alignment) { return allocated(size, static_cast<size_t>(alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
