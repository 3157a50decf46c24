// The parent of a heap's root is at index -1 when one counts from 0.
#include "lib/hide.h"

NOINLINE static void sift(long *heap, int i)
{
#ifdef FIXED
    while (i > 0) {
#else
    while (i >= 0) {
#endif
        int parent = (i + 1) / 2 - 1;
        if (heap[parent] <= heap[i] && i > 0)
            break;
        heap[parent] = heap[i];
        i = parent;
    }
}

int main()
{
    long *heap = hide(new long[150]()); // @made
    heap[0] = 0x6865617021212121;
    sift(heap, 0);
    // WANT: heap-underflow:@LINE+2
    // HEAP: heap-underflow object=1200 offset=-8 bytes=8 text=!!!!paeh api=new[] alloc:@made call:@LINE+1
    delete[] heap;
    return 0;
}
