// Two sessions share a certificate, and each gives it back.
#include <stdlib.h>
#include <string.h>

#include "lib/hide.h"

struct session {
    char *certificate;
    int owner;
};

NOINLINE static void end(struct session *s)
{
#ifdef FIXED
    if (!s->owner)
        return;
#endif
    // WANT: double-free:@LINE+2
    // HEAP: double-free object=1000 alloc:@made free:@LINE+1<@one call:@LINE+1<@two
    free(s->certificate);
    done();
}

int main(void)
{
    char *certificate = hide((char *)malloc(1000)); // @made
    memset(certificate, 'c', 1000);
    struct session one = {certificate, 1}, two = {certificate, 0};
    end(&one); // @one
    end(&two); // @two
    return 0;
}
