// A function that realigns its stack for vectors calls one that crashes.
// FLAGS: -mavx2
#include <immintrin.h>

static int *volatile cell;
static int real[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__attribute__((noinline, noipa)) static void load(int *to, const int *from)
{
    for (int i = 0; i < 8; i++)
        // WANT: null-pointer read:@LINE+1
        to[i] = from[i];
}

__attribute__((noinline, noipa)) static int sum(const int *from, int scale)
{
    __attribute__((aligned(32))) int lanes[8];
    __attribute__((aligned(64))) int copy[16];
    load(lanes, from);
    __m256i v = _mm256_load_si256((const __m256i *)lanes);
    _mm256_store_si256((__m256i *)copy, _mm256_add_epi32(v, _mm256_set1_epi32(scale)));
    load(copy + 8, copy);
    return copy[0] + copy[15];
}

int main(void)
{
#ifdef FIXED
    cell = real;
#endif
    return sum(cell, 1) != 11;
}
