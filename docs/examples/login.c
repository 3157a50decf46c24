// A small server with a bug: the logout of one client clears the user of a
// session that another thread is still serving.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct user {
    char name[32];
    int logins;
};

struct session {
    int id;
    struct user *user;
};

static struct user users[2] = {{"alice", 3}, {"bob", 0}};
static struct session sessions[2] = {{1, &users[0]}, {2, &users[1]}};
static int served;

static void handle_login(struct session *session, const char *from)
{
    served++;
    session->user->logins++;
    printf("%s from %s\n", session->user->name, from);
}

static void *worker(void *arg)
{
    struct session *session = arg;
    handle_login(session, "192.0.2.7");
    return NULL;
}

static void *idle(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void logout(struct session *session)
{
    session->user = NULL;
}

int main(void)
{
    pthread_t threads[2];
    logout(&sessions[1]);
    pthread_create(&threads[0], NULL, idle, NULL);
    pthread_create(&threads[1], NULL, worker, &sessions[1]);
    pthread_join(threads[1], NULL);
    return 0;
}
