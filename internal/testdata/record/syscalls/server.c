// A server with epoll and clients in threads, over loopback.
// ENDS: SIGABRT
// EVENTS: syscall 200
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

#define CLIENTS 4
#define ROUNDS 10

static struct sockaddr_in address = { .sin_family = AF_INET };

static void *client(void *number)
{
	int fd = check(socket(AF_INET, SOCK_STREAM, 0)), one = 1;
	char text[64];

	check(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	check(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	for (int i = 0; i < ROUNDS; i++) {
		int n = snprintf(text, sizeof(text), "client %ld says %d", (long)number, i), got = 0;

		check(send(fd, text, (size_t)n, MSG_NOSIGNAL));
		while (got < n + 4)
			got += (int)check(recv(fd, text + got, sizeof(text) - (size_t)got, 0));
		must(!memcmp(text, "yes ", 4));
	}
	check(shutdown(fd, SHUT_RDWR));
	check(close(fd));
	return NULL;
}

static int greeting;

/* "yes " from a file, then the text, with one sendmsg. */
static void answer(int fd, char *text, long n)
{
	struct iovec v[2] = { { text, 1 }, { text + 1, (size_t)n - 1 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	off_t from = 0;

	must(check(sendfile(fd, greeting, &from, 4)) == 4 && from == 4);
	must(check(sendmsg(fd, &m, MSG_NOSIGNAL)) == n);
}

static int greeted(int listener, int poller)
{
	struct sockaddr_storage peer, same;
	socklen_t length = sizeof(peer), same_length = sizeof(same);
	struct epoll_event e = { .events = EPOLLIN };
	int fd = check(accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)), error;

	must(length == sizeof(struct sockaddr_in));
	check(getpeername(fd, (struct sockaddr *)&same, &same_length));
	must(same_length == length && !memcmp(&peer, &same, length));
	fold_in(&peer, length);
	length = sizeof(error);
	check(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
	must(!error);
	e.data.fd = fd;
	check(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e));
	return fd;
}

static void serve(int listener)
{
	int poller = check(epoll_create1(EPOLL_CLOEXEC)), gone = 0;
	struct epoll_event e = { .events = EPOLLIN, .data.fd = listener }, ready[8];
	char text[64];

	check(epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e));
	while (gone < CLIENTS) {
		int count = (int)check(epoll_wait(poller, ready, 8, -1));

		for (int i = 0; i < count; i++) {
			int fd = ready[i].data.fd;
			long n;

			if (fd == listener) {
				greeted(listener, poller);
				continue;
			}
			n = check(recvfrom(fd, text, sizeof(text), 0, NULL, NULL));
			fold_in(text, (unsigned long)n);
			if (n) {
				answer(fd, text, n);
				continue;
			}
			check(epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL));
			check(close(fd));
			gone++;
		}
	}
}

int main(void)
{
	int listener = check(socket(AF_INET, SOCK_STREAM, 0)), one = 1;
	socklen_t length = sizeof(address);
	pthread_t t[CLIENTS];
	char path[] = "/tmp/dgserverXXXXXX";

	greeting = check(mkstemp(path));
	check(write(greeting, "yes sir", 7));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	check(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	check(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	check(listen(listener, CLIENTS));
	check(getsockname(listener, (struct sockaddr *)&address, &length));
	for (long i = 0; i < CLIENTS; i++)
		must(!pthread_create(&t[i], NULL, client, (void *)i));
	serve(listener);
	for (int i = 0; i < CLIENTS; i++)
		must(!pthread_join(t[i], NULL));
	check(unlink(path));
	abort();
}
