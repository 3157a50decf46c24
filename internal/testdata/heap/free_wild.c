// The union holds a number, and its owner frees it as a text.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct value {
    enum { NUMBER, TEXT } kind;
    union {
        uint64_t number;
        char *text;
    };
};

NOINLINE static void clear(struct value *v)
{
#ifdef FIXED
    if (v->kind == TEXT)
#endif
        // WANT: invalid-free:@LINE+2
        // HEAP: invalid-free says=wild addr=0x123456789abc0 call:@LINE+1
        free(v->text);
    done();
}

int main(void)
{
    struct value number = {NUMBER, {0x123456789abc0}};
    struct value text = {TEXT, {0}};
    text.text = hide(strdup("seven"));
    clear(&text);
    clear(&number);
    return 0;
}
