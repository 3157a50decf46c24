/* A mailbox whose index still refers to a message that was expired: under the
 * agent the report names the message, who freed it and who allocated it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct message {
    int id;
    char *subject;
};

static struct message *mailbox[4];
static struct message *newest; /* a second way to one of them */

static struct message *deliver(int id, const char *subject)
{
    struct message *m = malloc(sizeof *m);
    m->id = id;
    m->subject = strdup(subject);
    mailbox[id] = newest = m;
    return m;
}

static void expire(int id)
{
    free(mailbox[id]->subject);
    free(mailbox[id]);
    mailbox[id] = NULL;
}

static void show_newest(void)
{
    printf("%d: %s\n", newest->id, newest->subject);
}

int main(void)
{
    deliver(1, "welcome");
    deliver(2, "minutes of the meeting");
    expire(2);
    show_newest();
    return 0;
}
