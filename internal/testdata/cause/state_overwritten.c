// A camera that is started: its thread says that it is ready, and then main says
// that it is still starting, for good.
// CAUSE kind=order-violation variable=camera.state pattern=WW
// FAILS signal=SIGABRT says="never came"
// RUNS fail: 5 50
// RUNS pass: 60 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum state { OFF, STARTING, READY };

static struct {
	int number;
	enum state state;
	int pictures;
} camera;

static int opens_ms, logs_ms;

static void log_start(void)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "camera %d starts\n", camera.number);

	write(1, line, (size_t)n);
	usleep((useconds_t)logs_ms * 1000);
}

static void *drive(void *unused)
{
	(void)unused;
	usleep((useconds_t)opens_ms * 1000);
	__atomic_store_n(&camera.state, READY, __ATOMIC_RELEASE); // BUG 1
	write(1, "ready\n", 6);
	return NULL;
}

static pthread_t start_camera(int number)
{
	pthread_t thread;

	camera.number = number;
#ifdef FIXED
	log_start();
	__atomic_store_n(&camera.state, STARTING, __ATOMIC_RELEASE);
	pthread_create(&thread, NULL, drive, NULL);
#else
	pthread_create(&thread, NULL, drive, NULL);
	log_start();
	__atomic_store_n(&camera.state, STARTING, __ATOMIC_RELEASE); // BUG 2
#endif
	return thread;
}

static int take_picture(void)
{
	for (int tries = 0; tries < 20; tries++) {
		if (__atomic_load_n(&camera.state, __ATOMIC_ACQUIRE) == READY)
			return ++camera.pictures;
		usleep(20000);
	}
	fprintf(stderr, "camera %d never came\n", camera.number);
	abort();
}

int main(int argc, char **argv)
{
	pthread_t thread;

	opens_ms = argc > 1 ? atoi(argv[1]) : 60;
	logs_ms = argc > 2 ? atoi(argv[2]) : 5;
	thread = start_camera(3);
	take_picture();
	pthread_join(thread, NULL);
	return camera.pictures != 1;
}
