// A registry of devices: a new one is in the list before its driver is known,
// and whoever walks over the list finds none.
// CAUSE kind=order-violation variable="devices->probe|*malloc at @OBJECT*|*probe|calloc at @OBJECT*" pattern=RW
// FAILS signal=SIGABRT says="had no driver"
// RUNS fail: 20
// RUNS pass: 150
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct device {
	struct device *next;
	int number;
	int (*probe)(const struct device *);
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;
static int alive, without;

static int ping(const struct device *d)
{
	return d->number >= 0;
}

/* Which driver a device has is in a file on the network. */
static int (*find_driver(int number))(const struct device *)
{
	char line[40];
	int n = snprintf(line, sizeof(line), "driver of device %d\n", number);

	write(1, line, (size_t)n);
	usleep(60000);
	return ping;
}

static void add_device(int number)
{
	struct device *d = calloc(1, sizeof(*d)); // OBJECT

	d->number = number;
#ifdef FIXED
	d->probe = find_driver(number);
#endif
	pthread_mutex_lock(&list_lock);
	d->next = devices;
	devices = d;
	pthread_mutex_unlock(&list_lock);
#ifndef FIXED
	d->probe = find_driver(number); // BUG 2
#endif
}

static void *hotplug(void *arg)
{
	(void)arg;
	add_device(2);
	return NULL;
}

static void poll_devices(int last)
{
	pthread_mutex_lock(&list_lock);
	for (struct device *d = devices; d; d = d->next) {
		int (*probe)(const struct device *) = d->probe; // BUG 1

		if (probe)
			alive += probe(d);
		else
			without = d->number;
	}
	if (last && without) {
		fprintf(stderr, "device %d had no driver\n", without);
		abort();
	}
	pthread_mutex_unlock(&list_lock);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	add_device(1);
	pthread_create(&thread, NULL, hotplug, NULL);
	usleep((useconds_t)(argc > 1 ? atoi(argv[1]) : 150) * 1000);
	poll_devices(0);
	pthread_join(thread, NULL);
	poll_devices(1);
	printf("%d alive\n", alive);
	return alive < 1;
}
