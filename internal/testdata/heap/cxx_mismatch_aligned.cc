// An over-aligned matrix from new is given back to free.
// FLAGS: -std=c++17
#include <cstdint>
#include <cstdlib>

#include "lib/hide.h"

struct alignas(64) Matrix {
    float cells[16];
};

int main()
{
    Matrix *m = hide(new Matrix()); // @made
    if (reinterpret_cast<std::uintptr_t>(m) % 64)
        return 3;
#ifdef FIXED
    delete m;
#else
    // WANT: mismatched-free:@LINE+2
    // HEAP: mismatched-free object=64 api=new alloc:@made call:@LINE+1
    std::free(m);
#endif
    return 0;
}
