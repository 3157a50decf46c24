// A session without a user is asked for its user's name.
#include <stdlib.h>

struct user {
    int id;
    const char *name;
};
struct session {
    int number;
    struct user *user;
};

__attribute__((noinline, noipa)) static const char *user_name(const struct session *session)
{
    // WANT: null-pointer read:@LINE+1
    return session->user->name;
}

int main(void)
{
    struct session *session = calloc(1, sizeof *session);
    session->number = 7;
#ifdef FIXED
    static struct user someone = {1, "someone"};
    session->user = &someone;
#endif
    return user_name(session) == NULL;
}
