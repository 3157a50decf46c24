// A withdrawal looks at the balance and takes from it in two sections: two tellers may both find enough.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCOUNTS = 4, ROUNDS = 12 };
struct account {
	pthread_mutex_t lock;
	long balance, visits;
};
static struct account *accounts;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER, fee_lock = PTHREAD_MUTEX_INITIALIZER;
static long logged, fees, paid[2];
static char last[64];

static void note(int who, int from, long amount)
{
	pthread_mutex_lock(&log_lock);
	logged++;
	snprintf(last, sizeof last, "%d took %ld from %d", who, amount, from);
	pthread_mutex_unlock(&log_lock);
}

static int withdraw(int who, int from, long amount)
{
	struct account *a = &accounts[from];
	pthread_mutex_lock(&a->lock);
	long left = a->balance; // BUG
	a->visits++;
	pthread_mutex_unlock(&a->lock);
	if (left < amount)
		return 0;
	if (from == 2)
		usleep(200);
	pthread_mutex_lock(&a->lock);
	a->balance -= amount; // BUG
	pthread_mutex_unlock(&a->lock);
	note(who, from, amount);
	return 1;
}

static void *teller(void *arg)
{
	int who = (int)(intptr_t)arg;
	for (int i = 0; i < ROUNDS; i++) {
		usleep(30 + 50 * who);
		int from = (i + who) % ACCOUNTS;
		if (withdraw(who, from, 40)) {
			pthread_mutex_lock(&fee_lock);
			fees += 1;
			paid[who] += 40;
			pthread_mutex_unlock(&fee_lock);
		}
	}
	return NULL;
}

int main(void)
{
	pthread_t t[2];
	accounts = calloc(ACCOUNTS, sizeof *accounts);
	for (int i = 0; i < ACCOUNTS; i++) {
		pthread_mutex_init(&accounts[i].lock, NULL);
		accounts[i].balance = 100;
	}
	for (int i = 0; i < 2; i++) {
		pthread_create(&t[i], NULL, teller, (void *)(intptr_t)i);
		usleep(getpid() % 5 * 150);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	long sum = 0;
	for (int i = 0; i < ACCOUNTS; i++) {
		sum += accounts[i].balance;
		assert(accounts[i].balance >= 0);
	}
	printf("%ld %ld %ld %s\n", sum, fees, logged, last);
	return 0;
}
