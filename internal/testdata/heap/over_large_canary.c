// An image of 200,001 bytes, and one more: too little to reach the next page.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

enum { PIXELS = 200001 };

int main(void)
{
    unsigned char *image = hide((unsigned char *)malloc(PIXELS)); // @made
#ifdef FIXED
    memset(image, 0x42, PIXELS);
#else
    memset(image, 0x42, PIXELS + 1);
#endif
    done();
    // WANT: heap-overflow:@LINE+2
    // HEAP: heap-overflow object=200001 offset=200001 bytes=1 text=B alloc:@made call:@LINE+1
    free(image);
    return 0;
}
