// The text of an unknown code is a literal, and the caller frees every text.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

NOINLINE static const char *text_of(int code)
{
    if (code < 100)
        return hide(strdup("informational"));
#ifdef FIXED
    return hide(strdup("unknown"));
#else
    return hide((const char *)"unknown");
#endif
}

int main(void)
{
    free((void *)text_of(7));
    // WANT: invalid-free:@LINE+2
    // HEAP: invalid-free says=global call:@LINE+1
    free((void *)text_of(700));
    return 0;
}
