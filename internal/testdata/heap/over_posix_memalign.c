// A page of its own for a register block that is two words larger.
#include <stdint.h>
#include <stdlib.h>

#include "lib/hide.h"

enum { PAGE = 4096, REGISTERS = 514 };

int main(void)
{
    void *block = NULL;
#ifdef FIXED
    size_t size = REGISTERS * sizeof(uint64_t);
#else
    size_t size = PAGE;
#endif
    if (posix_memalign(&block, PAGE, size)) // @made
        return 2;
    uint64_t *registers = hide((uint64_t *)block);
    if ((uintptr_t)registers % PAGE)
        return 3;
    for (int i = 0; i < REGISTERS; i++)
        registers[i] = 0x6666666666666666;
    done();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=4096 offset=4096 bytes=16 text=ffffffff alloc:@made call:@LINE+1
    free(registers);
    return 0;
}
