// A frame of 200 kB is given back while the encoder still fills it in.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { FRAME = 200000 };

NOINLINE static void encode(char *frame)
{
    memcpy(frame + 64, "macroblock", 10);
    done();
}

int main(void)
{
    char *frame = hide((char *)malloc(FRAME)); // @made
    memset(frame, 0, FRAME);
#ifdef FIXED
    encode(frame);
    free(frame);
#else
    free(frame); // @freed
    encode(hide(frame));
#endif
    // WANT: use-after-free:nowhere
    // HEAP: use-after-free object=200000 offset=64 bytes=10 text=macroblock alloc:@made free:@freed call:nowhere
    return 0;
}
