// Datagrams, several at a time, with names and descriptors.
// ENDS: SIGABRT
// EVENTS: syscall 15
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"

#define MANY 100

static void descriptors(int from, int to)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr header;
	} control = { .bytes = { 0 } };
	char text[16];
	struct iovec v = { "two pipes", 9 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int ends[2], got[2];

	check(pipe(ends));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(ends));
	memcpy(CMSG_DATA(c), ends, sizeof(ends));
	must(check(sendmsg(from, &m, 0)) == 9);
	memset(&control, 0, sizeof(control));
	v = (struct iovec){ text, sizeof(text) };
	must(check(recvmsg(to, &m, 0)) == 9 && !memcmp(text, "two pipes", 9));
	c = CMSG_FIRSTHDR(&m);
	must(c && c->cmsg_type == SCM_RIGHTS);
	memcpy(got, CMSG_DATA(c), sizeof(got));
	check(write(got[1], "through", 7));
	must(check(read(ends[0], text, 16)) == 7);
	fold_in(text, 7);
}

static struct mmsghdr headers[MANY];
static struct iovec vectors[MANY][3];
static char texts[MANY][3][16];
static struct sockaddr_un names[MANY];

static void prepare(int receive)
{
	for (int i = 0; i < MANY; i++) {
		for (int k = 0; k < 3; k++) {
			if (!receive)
				snprintf(texts[i][k], 16, "part %d.%d", i, k);
			vectors[i][k] = (struct iovec){ texts[i][k], receive ? 9 : strlen(texts[i][k]) };
		}
		headers[i].msg_hdr = (struct msghdr){
			.msg_iov = vectors[i], .msg_iovlen = 3, .msg_name = receive ? &names[i] : NULL,
			.msg_namelen = receive ? sizeof(names[i]) : 0,
		};
	}
}

/* More pieces than an event holds. */
static void many(int from, int to)
{
	int sent, got, all = 0;

	while (all < MANY) {
		prepare(0);
		sent = check(sendmmsg(from, headers, MANY - all < 8 ? MANY - all : 8, 0));
		memset(texts, 0, sizeof(texts));
		prepare(1);
		got = check(recvmmsg(to, headers, MANY, MSG_WAITFORONE, NULL));
		must(got == sent && headers[0].msg_len > 10);
		fold_in(texts, sizeof(texts));
		fold_in(names, sizeof(names));
		all += got;
	}
}

static void vectored(void)
{
	static char bytes[600];
	struct iovec v[300];
	int ends[2];

	check(pipe(ends));
	for (int i = 0; i < 600; i++)
		bytes[i] = (char)i;
	check(write(ends[1], bytes, 600));
	memset(bytes, 0, sizeof(bytes));
	for (int i = 0; i < 300; i++)
		v[i] = (struct iovec){ bytes + 2 * (299 - i), 2 };
	must(check(readv(ends[0], v, 300)) == 600 && bytes[598] == 0 && bytes[599] == 1);
	fold_in(bytes, sizeof(bytes));
}

int main(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "\0dgmessages" };
	int pair[2], receiver = check(socket(AF_UNIX, SOCK_DGRAM, 0)), sender = check(socket(AF_UNIX, SOCK_DGRAM, 0));
	socklen_t length = sizeof(name);
	char text[8];

	snprintf(name.sun_path + 1, 40, "dgmessages%d", getpid());
	check(bind(receiver, (struct sockaddr *)&name, sizeof(name)));
	check(connect(sender, (struct sockaddr *)&name, sizeof(name)));
	check(sendto(sender, "alone", 5, 0, (struct sockaddr *)&name, sizeof(name)));
	must(check(recvfrom(receiver, text, 3, MSG_TRUNC, (struct sockaddr *)&name, &length)) == 5);
	fold_in(text, 3);
	many(sender, receiver);
	check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	descriptors(pair[0], pair[1]);
	vectored();
	abort();
}
