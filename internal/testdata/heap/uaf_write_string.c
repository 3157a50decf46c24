// An error message is printed into a buffer that is gone, and then the program
// dies of the missing handler.
#include <stdio.h>
#include <stdlib.h>

#include "lib/hide.h"

struct session {
    char *message;
    int (*volatile on_error)(const char *);
};

static int print(const char *text)
{
    return text[0] != 'r';
}

NOINLINE static int fail(struct session *s, const char *who)
{
    snprintf(s->message, 64, "refused by %s", who);
    // WANT: null-pointer execute:@LINE+1
    int result = s->on_error(s->message);
    done();
    return result;
}

int main(void)
{
    static struct session s;
    s.message = hide((char *)malloc(64)); // @made
    s.message[0] = 0;
#ifdef FIXED
    s.on_error = print;
    return fail(&s, "peer");
#else
    free(s.message); // @freed
    // HEAP: use-after-free object=64 offset=0 bytes=16 hex=72656675736564206279207065657200 alloc:@made free:@freed
    return fail(&s, "peer") + (s.on_error == print);
#endif
}
